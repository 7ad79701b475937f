"""How many bytes state takes: texts as they were measured, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.planner import plan
from tidemill.optimizer.statistics import Edge, Statistics, read_statistics, write_statistics
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.cost import PartCost

STREAMS = """
CREATE STREAM s (k BIGINT, short VARCHAR, long VARCHAR, t BIGINT) SOURCE memory('s') ORDERED BY t;
CREATE STREAM r (k BIGINT, t BIGINT) SOURCE memory('r') ORDERED BY t;
"""
DISTINCT = {"k": 100.0, "short": 10.0, "long": 1e6, "t": 1e6}
WIDTHS = {"k": 8.0, "short": 17.0, "long": 500.0, "t": 8.0}
SECOND = 1_000_000.0
KNOWN = Statistics(
    {
        "s": Edge(SECOND / 50, row_bytes=533.0, distinct=DISTINCT, is_measured=True, widths=WIDTHS),
        "r": Edge(SECOND / 50, row_bytes=16.0, distinct=DISTINCT, is_measured=True),
    }
)


def parts(sql: str, known: Statistics = KNOWN) -> Mapping[str, PartCost]:
    """What each kind of operator costs."""
    with tidemill.connect() as session:
        session.sql(STREAMS)
        made = plan(session.query(sql).plan).physical
    cost = plan_cost(made, known)
    return {
        type(part.operator).__name__: cost.parts[part.fingerprint]
        for part in walk_physical([made])
        if isinstance(part, Apply)
    }


def test_a_text_that_is_not_remembered_counts_for_nothing() -> None:
    sql = "SELECT s.{} AS x FROM s [RANGE 10 SECONDS] JOIN r [RANGE 10 SECONDS] ON s.k = r.k"
    short, long = (parts(sql.format(name))["Join"] for name in ("short", "long"))
    # 500 rows a side, with a key, a start and an end of 8 bytes each.
    assert short.state_rows == pytest.approx(1_000, rel=0.01)
    assert short.state_bytes == pytest.approx(1_000 * 24 + 500 * 17, rel=0.01)
    assert long.state_bytes == pytest.approx(1_000 * 24 + 500 * 500, rel=0.01)
    # Pairs have both keys.
    assert short.edge.row_bytes == 33
    assert long.edge.row_bytes == 516


def test_keys_of_groups_are_as_wide_as_they_are() -> None:
    sql = "SELECT {0}, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY {0}"
    wide, narrow = (parts(sql.format(name))["Aggregate"] for name in ("long", "short"))
    assert wide.state_bytes / wide.state_rows > 500
    assert narrow.state_bytes / narrow.state_rows < 80


def test_where_columns_are_not_known_rows_say_it() -> None:
    edge = Edge(SECOND / 50, row_bytes=4 * 64.0, distinct=DISTINCT)
    known = Statistics({"s": edge, "r": KNOWN.inputs["r"]})
    sql = "SELECT s.short AS x FROM s [RANGE 10 SECONDS] JOIN r [RANGE 10 SECONDS] ON s.k = r.k"
    # Texts of four times the usual length: the types say 64 bytes a row.
    found = parts(sql, known)["Join"].state_bytes
    assert found == pytest.approx(24_000 + 500 * 24 * 4, rel=0.01)


def test_what_is_known_is_kept_with_the_plan() -> None:
    assert read_statistics(write_statistics(KNOWN)) == KNOWN
    old = write_statistics(Statistics({"s": Edge(5.0)}))
    for name in ("counted", "widths"):
        del old["inputs"]["s"][name]
    assert read_statistics(old) == Statistics({"s": Edge(5.0)})
