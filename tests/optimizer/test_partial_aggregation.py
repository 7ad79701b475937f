"""Aggregates are computed in two parts where few elements are left of many rows, by cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.engine.stacks import stacks_of
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.physical.implement import implement
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.optimizer.physical.split_aggregates import SUBJECT, split_aggregates, split_by_cost
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Planned, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING, Planning, Spread
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.physical.fragments import build_graph
from tidemill.physical.interval import Combine
from tidemill.physical.plan import Apply, PhysicalPlan, walk_physical

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.algebra.plan import Plan

WINDOW = "s [RANGE 10 SECONDS SLIDE 1 SECOND]"
GROUPS = f"SELECT k, COUNT(*) AS n, SUM(v) AS x FROM {WINDOW} GROUP BY k"
ALL = f"SELECT COUNT(*) AS n, SUM(v) AS x FROM {WINDOW}"
AT_ONCE = "SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS]"
TWICE = f"SELECT n, COUNT(*) AS often FROM ({GROUPS}) g GROUP BY n"
BESIDE = f"{ALL} UNION ALL SELECT SUM(v), COUNT(*) FROM s [RANGE 20 SECONDS SLIDE 1 SECOND]"
LOGICAL: dict[str, Plan] = {}
SPREAD = Planning(spread=Spread.KEYS)


def known(rate: float, keys: float, granule: float = 1.0) -> Statistics:
    return Statistics({"s": Edge(1_000_000 / rate, granule=granule, distinct={"k": keys})})


def planned(sql: str, statistics: Statistics, planning: Planning = SPREAD, n: int = 4) -> Planned:
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        bound = session.planned(session.query(sql).name).bound
    return plan(bound, Target(partitions=n), Context(planning, statistics))


def chosen(made: Planned) -> list[str]:
    return [one.chosen for one in made.decisions if one.subject == SUBJECT]


def combines(plan: PhysicalPlan) -> int:
    parts = (part for part in walk_physical([plan]) if isinstance(part, Apply))
    return sum(isinstance(part.operator, Combine) for part in parts)


@pytest.mark.parametrize(
    ("sql", "rate", "keys", "way"),
    [
        (GROUPS, 100_000, 10, "in two parts"),
        (GROUPS, 100_000, 1_000_000, "in one part"),
        (GROUPS, 10, 10, "in one part"),
        (ALL, 100_000, 10, "in two parts"),
        (AT_ONCE, 100_000, 10, "in one part"),
        (TWICE, 100_000, 10, "in two parts"),
    ],
)
def test_few_groups_of_many_rows_are_combined_first(
    sql: str, rate: float, keys: float, way: str
) -> None:
    made = planned(sql, known(rate, keys))
    assert chosen(made)[0] == way
    assert combines(made.physical) == (way == "in two parts")


def test_several_aggregates_are_combined_one_after_the_other() -> None:
    made = planned(BESIDE, known(100_000, 10))
    assert chosen(made) == ["in two parts", "in two parts"]
    assert combines(made.physical) == 2
    parts = walk_physical([made.physical])
    assert all(part.fingerprint in made.labels.patterns for part in parts)


def test_what_is_in_two_parts_is_not_split_again() -> None:
    windows = "s [RANGE 3 SECONDS] x FULL JOIN s [NOW] y USING (t)"
    query = f"SELECT MAX(x.k) AS a, MAX(y.v) AS b FROM {windows}"
    signed = Planning(spread=Spread.KEYS, technique=Technique.NEGATIVE)
    for rate in (1, 100_000):
        assert len(chosen(planned(query, known(rate, 2), signed))) == 1


def test_what_begins_together_is_combined_without_a_slide() -> None:
    made = planned(AT_ONCE, known(100_000, 10, granule=1_000_000))
    assert chosen(made) == ["in two parts"]


def test_what_is_not_known_is_as_usual() -> None:
    for sql, count in ((GROUPS, 0), (ALL, 1)):
        made = planned(sql, Statistics())
        assert chosen(made) == []
        assert combines(made.physical) == count


def test_a_setting_that_gathers_rows_leaves_nothing_to_choose() -> None:
    made = planned(GROUPS, known(100_000, 10), Planning(spread=Spread.ONE))
    assert chosen(made) == []
    assert chosen(planned(GROUPS, known(100_000, 10), n=1)) == []


def test_a_query_in_one_partition_tells_nothing_of_parts_it_has_not() -> None:
    made = planned(GROUPS, known(10, 10), PLANNING)
    assert [one.subject for one in made.decisions] == ["spread"]
    assert [one.subject for one in planned(GROUPS, known(100_000, 10), PLANNING).decisions] == [
        SUBJECT,
        "spread",
    ]


def test_parts_keep_to_a_limit_of_memory() -> None:
    found = known(100_000, 1_000)
    free = planned(GROUPS, found)
    (decision,) = (one for one in free.decisions if one.subject == SUBJECT)
    (other,) = decision.alternatives
    assert decision.chosen == "in two parts"
    assert decision.memory is not None
    assert other.memory is not None
    assert other.memory < decision.memory
    between = (decision.memory + other.memory) / 2
    assert chosen(planned(GROUPS, found, Planning(memory_limit=between))) == ["in one part"]


@given(
    st.sampled_from([GROUPS, ALL, AT_ONCE, TWICE]),
    st.floats(0.01, 1e7),
    st.floats(1, 1e7),
    st.sampled_from([1.0, 1e6]),
    st.integers(2, 16),
)
def test_the_choice_is_never_expected_to_cost_more(
    sql: str, rate: float, keys: float, granule: float, partitions: int
) -> None:
    if sql not in LOGICAL:
        LOGICAL[sql] = planned(sql, Statistics()).logical
    statistics, pace = known(rate, keys, granule), Pace(partitions=partitions)

    def cost(one: PhysicalPlan) -> float:
        return plan_cost(push_exchanges(one)[0], statistics, pace=pace).cpu

    made = implement(LOGICAL[sql], Technique.PATTERN).placed.plan
    usual = split_aggregates(made).plan
    done = split_by_cost(made, lambda one: plan_cost(one, statistics, pace=pace))
    assert cost(done.plan) <= cost(usual) * (1 + 1e-9)
    for one in done.decisions:
        (other,) = one.alternatives
        assert one.why
        assert {one.chosen, other.name} == {"in one part", "in two parts"}


DECLARED = """
    CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('rows/*.parquet') ORDERED BY t
    HINT (rate => {rate}, distinct(k) => 10, distinct(v) => 10)
"""
ALIKE = {
    "by_k": GROUPS,
    "by_v": f"SELECT v, COUNT(*) AS often, SUM(k) AS y FROM {WINDOW} GROUP BY v",
    "again": GROUPS.replace("10 SECONDS", "5 SECONDS"),
}


def rows(path: Path, number: int) -> None:
    """A file of rows of ten seconds."""
    (path / "rows").mkdir(exist_ok=True)
    n = pl.int_range(number * 500, (number + 1) * 500, eager=True)
    frame = pl.DataFrame({"k": n.hash(1) % 7, "v": n.hash(2) % 5, "t": n * 20_000})
    frame.cast(pl.Int64).write_parquet(path / f"rows/{number}.parquet")


def test_it_is_shown_with_its_cause_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows(tmp_path, 0)
    shown = []
    for rate in (100_000, 10):  # another session believes otherwise, and changes nothing
        with tidemill.connect(checkpoint="state", partitions=4) as session:
            session.sql(DECLARED.format(rate=rate))
            session.sql(f"CREATE QUERY q AS {GROUPS}")
            session.run()
            decisions = session.sql("SHOW DECISIONS FOR q")
            assert isinstance(decisions, pl.DataFrame)
            shown.append((decisions, session.sql("EXPLAIN PHYSICAL q")))
        rows(tmp_path, 1)
    assert shown[0][0].equals(shown[1][0])
    assert shown[0][1] == shown[1][1]
    split, spread = shown[0][0].to_dicts()
    assert (split["subject"], split["chosen"]) == (SUBJECT, "in two parts")
    assert split["why"] == "100,000 rows a second to exchange, or 40 parts"
    assert split["alternatives"][0].startswith("in one part at ")
    assert (spread["subject"], spread["chosen"]) == ("spread", "keys")


def test_alike_aggregates_of_parts_run_as_one_and_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows(tmp_path, 0)
    rows(tmp_path, 1)
    answers = []
    for optimize in (True, False):
        with tidemill.connect(partitions=3, spread="keys", optimize=optimize) as session:
            session.sql(DECLARED.format(rate=100_000))
            queries = [session.query(sql) for sql in ALIKE.values()]
            plans = [session.planned(query.name).physical for query in queries]
            assert [combines(one) for one in plans] == [int(optimize)] * 3
            nodes = [
                node
                for fragment in build_graph({str(i): one for i, one in enumerate(plans)}).fragments
                for node in fragment.nodes
            ]
            assert [len(stack.nodes) for stack in stacks_of(nodes)] == [3]
            session.run()
            answers.append([query.results().rows() for query in queries])
    assert answers[0] == answers[1]
    assert all(answers[0])
