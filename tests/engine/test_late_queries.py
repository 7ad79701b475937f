"""A query that comes later than others sees nothing withdrawn that it never saw."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tidemill
from laws.test_engine import snapshot
from laws.test_stacks import taken_over
from local import element_batch
from plans import physical
from tidemill.algebra.snapshot import Element
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.engine import Flow
from tidemill.model.batch import Batch
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Input, begun_in
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from tidemill.algebra.snapshot import Row

COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
LAST = "SELECT at, k FROM s [PARTITION BY k ROWS 1]"
LATE: dict[str, tuple[str, dict[Row, int]]] = {
    "the sum of groups": (f"SELECT SUM(n) AS g FROM ({COUNTS}) z", {(3,): 1}),
    "a join with groups": (
        f"SELECT a.at, z.n FROM s [RANGE 2] a JOIN ({COUNTS}) z ON a.k = z.k",
        {(20, 1): 3},
    ),
    "different groups": (f"SELECT DISTINCT n FROM ({COUNTS}) z", {(1,): 1}),
    "the groups themselves": (COUNTS, {(1, 1): 1, (2, 1): 1, (3, 1): 1}),
    "the last rows": (f"SELECT COUNT(*) AS n FROM ({LAST}) z", {(3,): 1}),
    "three of them": (
        f"""SELECT x.n AS p, y.n AS q, z.n AS r FROM ({COUNTS}) x, ({COUNTS}) y, ({COUNTS}) z
            WHERE x.k = y.k AND y.k = z.k""",
        {(1, 1, 1): 3},
    ),
}
STEPS: list[tuple[list[tuple[int, int]], int]] = [
    ([(1, 1)], 2),
    ([(3, 2)], 4),
    ([], 13),
    ([(20, 1), (20, 2), (20, 3)], 21),
    ([], END_OF_TIME),
]


@pytest.mark.parametrize("technique", Technique)
@pytest.mark.parametrize("name", LATE)
def test_it_is_right_when_what_was_before_has_gone(name: str, technique: Technique) -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (at BIGINT, k BIGINT) SOURCE memory('s') ORDERED BY at")
    planning = Planning(technique=technique, joins=Joins.MULTIWAY)
    first, last, late = (query(session, text) for text in (COUNTS, LAST, LATE[name][0]))
    running = {
        "first": physical(first.plan, planning),
        "last": physical(last.plan, planning),
    }
    second = begun_in(physical(late.plan, planning), 1, ())[0]
    runner, out = LocalRunner(build_graph(running)), list[Batch]()
    entry = session.catalog.find("s")
    assert isinstance(entry, StreamEntry)
    for number, (rows, watermark) in enumerate(STEPS):
        if number == 1:
            runner = taken_over(runner, build_graph({**running, "late": second}))
        elements = [Element(t, 10 * number + i, (t, k)) for i, (t, k) in enumerate(rows)]
        flow = Flow([element_batch(entry.schema, elements)], Time(watermark))
        out += runner.step({"s": flow}).get("late", [])
    assert snapshot(out, late.schema, 20) == Counter(LATE[name][1])


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def test_no_name_of_a_relation_is_that_of_another_in_an_epoch() -> None:
    schema = Schema((Field("k", BIGINT),))
    names = {"r", "r#1"}
    graph = build_graph(
        {
            "early": begun_in(Input("r#1", schema), 0, names)[0],
            "late": begun_in(Input("r", schema), 1, names)[0],
        }
    )
    assert len({input_.rows for input_ in graph.inputs}) == 2
    assert graph.answers["early"] != graph.answers["late"]
