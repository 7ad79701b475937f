"""Adjacent rows are merged where that is expected to pay, and nowhere else (KB02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.optimizer.characteristics import Triple, coalesce
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.estimates.rows import repeated
from tidemill.optimizer.physical.merge_adjacent import SUBJECT
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Planned, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Planning
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.physical.interval import Coalesce, Project
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.algebra.plan import Plan

COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 60 SECONDS] GROUP BY k"
HOT = f"SELECT k FROM ({COUNTS}) c WHERE n > 3"
MANY = f"SELECT r.v FROM s [RANGE 5 SECONDS] r, ({HOT}) hot WHERE r.k = hot.k"
ALL = f"SELECT r.v, c.n FROM s [RANGE 5 SECONDS] r, ({COUNTS}) c WHERE r.k = c.k"
PLAIN = "SELECT a.v FROM s [RANGE 5 SECONDS] a, s [RANGE 1 SECOND] b WHERE a.k = b.k"
DIRECT = Planning(technique=Technique.DIRECT)


def known(rate: float, keys: float = 10) -> Statistics:
    return Statistics({"s": Edge(1_000_000 / rate, distinct={"k": keys, "v": 1_000})})


def bound(sql: str) -> Plan:
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        return session.planned(session.query(sql).name).bound


def planned(sql: str, statistics: Statistics, planning: Planning = DIRECT) -> Planned:
    return plan(bound(sql), Target(partitions=1), Context(planning, statistics))


def chosen(made: Planned) -> list[str]:
    return [one.chosen for one in made.decisions if one.subject == SUBJECT]


def merging(made: Planned) -> list[int]:
    parts = (part for part in walk_physical([made.physical]) if isinstance(part, Apply))
    return [p.operator.max_length for p in parts if isinstance(p.operator, Coalesce)]


@pytest.mark.parametrize(
    ("sql", "rate", "expected"),
    [
        (MANY, 10_000, ["below interval.Join"]),
        (MANY, 1, ["nowhere"]),  # steps cost calls
        (ALL, 10_000, []),  # each count is another row
        (PLAIN, 10_000, []),  # nothing waits, and nothing is to wait
    ],
)
def test_rows_that_stay_the_same_are_merged_where_many_come(
    sql: str, rate: float, expected: list[str]
) -> None:
    made = planned(sql, known(rate))
    assert chosen(made) == expected
    assert merging(made) == [60_000_000] * (expected == ["below interval.Join"])


def test_in_signed_form_there_is_nothing_to_merge() -> None:
    made = planned(MANY, known(10_000), Planning(technique=Technique.PATTERN))
    assert chosen(made) == []


def test_what_is_not_known_is_not_asked() -> None:
    made = planned(MANY, Statistics())
    assert (chosen(made), merging(made)) == ([], [])
    made = planned(MANY, known(10_000), Planning(technique=Technique.DIRECT, optimized=False))
    assert (chosen(made), merging(made)) == ([], [])


def test_nothing_is_held_for_longer_than_the_setting_says() -> None:
    short = Planning(technique=Technique.DIRECT, max_delay=2_000_000)
    assert merging(planned(MANY, known(10_000), short)) == [2_000_000]
    for_ever = Planning(technique=Technique.DIRECT, max_delay=None)
    assert merging(planned(MANY, known(10_000), for_ever)) == [60_000_000]
    at_once = Planning(technique=Technique.DIRECT, max_delay=0)
    assert merging(planned(MANY, known(10_000), at_once)) == []


@given(st.sampled_from([MANY, ALL, PLAIN]), st.floats(0.01, 1e6), st.floats(1, 1e6))
def test_it_is_never_expected_to_cost_more(sql: str, rate: float, keys: float) -> None:
    query = BOUND.setdefault(sql, bound(sql))
    statistics = known(rate, keys)
    made = plan(query, Target(partitions=1), Context(DIRECT, statistics))
    usual = plan(query, Target(partitions=1), Context(DIRECT, Statistics()))
    assert not merging(usual)
    cost, before = (plan_cost(one.physical, statistics).cpu for one in (made, usual))
    assert cost <= before * (1 + 1e-9)
    for one in made.decisions:
        costs = {other.name: other.cpu for other in one.alternatives}
        assert costs, "something else could have been done"
        assert one.chosen == "nowhere" or one.cpu < 0.8 * costs["nowhere"]


BOUND: dict[str, Plan] = {}


def test_how_often_rows_repeat() -> None:
    """Of ten groups, each is followed by itself, and after a filter nine times of ten."""
    shares = {}
    written = Planning(technique=Technique.DIRECT, optimized=False)
    for sql in (f"SELECT k FROM ({COUNTS}) c", HOT, COUNTS):
        made = plan(bound(sql), Target(whole=False), Context(written))
        works = estimate([made.physical], known(10_000))
        for part in walk_physical([made.physical]):
            if isinstance(part, Apply) and isinstance(part.operator, Project):
                shares[sql] = repeated(works[part.fingerprint].flow, part.schema)
    assert [round(share, 2) for share in shares.values()] == [1.0, 0.9, 0.01]
    assert tuple(coalesce(Triple(10, 1_000), 0.9, 60_000)) == pytest.approx((100, 10_000, 1))


def test_it_is_run_shown_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    n = pl.int_range(400, eager=True)
    frame = pl.DataFrame({"k": n.hash(1) % 3, "v": n.hash(2) % 50, "t": n * 100_000})
    frame = frame.cast(pl.Int64)
    frame[:200].write_parquet("rows/1.parquet")
    sql = MANY.replace("60 SECONDS", "4 SECONDS").replace("n > 3", "n > 12")
    shown = []
    for rate in (10_000, 1):  # another session believes otherwise, and changes nothing
        with tidemill.connect(checkpoint="state", technique="direct") as session:
            session.sql(f"""
                CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT)
                SOURCE parquet('rows/*.parquet') ORDERED BY t
                HINT (rate => {rate}, distinct(k) => 3);
                CREATE QUERY q AS {sql}
            """)
            session.run()
            shown.append(session.sql("SHOW DECISIONS FOR q"))
            assert "interval.Coalesce" in str(session.sql("EXPLAIN PHYSICAL q"))
        frame[200:].write_parquet("rows/2.parquet")
    first, second = shown
    assert isinstance(first, pl.DataFrame)
    assert isinstance(second, pl.DataFrame)
    assert first.equals(second)
    (row,) = first.to_dicts()
    assert (row["subject"], row["chosen"]) == (SUBJECT, "below interval.Join")
    assert row["why"] == "rows that stay the same come in pieces"
    assert row["alternatives"][0].startswith("nowhere at ")
