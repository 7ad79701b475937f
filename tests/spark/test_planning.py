"""Plans fit the partitions and stages there are, and rows that may go anywhere go everywhere.

No Spark is needed for it.
"""

from __future__ import annotations

import polars as pl
import pytest

import tidemill
from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import Time
from tidemill.optimizer.explain.physical import describe
from tidemill.optimizer.physical.fold import stages_needed
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import PhysicalPlan, walk_physical
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.intake import Origin, Piece, take_in
from tidemill.runtime.spark.worker.wire import Kind

SCALAR = "SELECT COUNT(*) AS n FROM s [RANGE 6 SLIDE 2]"
DEEP = """
    SELECT SUM(n) AS top FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 6 SLIDE 2] GROUP BY k) x"""


def planned(
    *texts: str, partitions: int, stages: int | None
) -> tuple[tidemill.Session, dict[str, PhysicalPlan]]:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    for text in texts:
        session.sql(text)
    entries = session.catalog.entries(ObjectKind.QUERY)
    queries = [entry for entry in entries if isinstance(entry, QueryEntry)]
    plans = {q.name: plan_entry(q, partitions=partitions, stages=stages).physical for q in queries}
    return session, plans


def is_split(plan: PhysicalPlan) -> bool:
    return any(describe(part).startswith("interval.Combine") for part in walk_physical([plan]))


@pytest.mark.parametrize(
    ("partitions", "stages", "expected"),
    [
        (4, None, [True, True]),
        (4, 2, [True, True]),
        (4, 1, [False, False]),  # there is no stage for a second part
        (1, None, [False, False]),  # and here nothing to be gained by it
    ],
)
def test_aggregates_are_split_if_there_are_partitions_and_stages_for_it(
    partitions: int, stages: int | None, expected: list[bool]
) -> None:
    _, plans = planned(SCALAR, DEEP, partitions=partitions, stages=stages)
    assert [is_split(plan) for plan in plans.values()] == expected


def test_the_plan_of_a_query_does_not_depend_on_the_others() -> None:
    _, alone = planned(SCALAR, partitions=4, stages=1)
    _, together = planned(SCALAR, DEEP, partitions=4, stages=1)
    assert [plan.fingerprint for plan in alone.values()] == [
        plan.fingerprint for plan in list(together.values())[:1]
    ]


def test_in_one_partition_a_new_pipeline_has_one_stage() -> None:
    assert SparkSettings().stages_with(1) == 1
    assert SparkSettings().stages_with(2) is None
    assert SparkSettings(stages=3).stages_with(1) == 3
    _, plans = planned(DEEP, partitions=1, stages=1)
    assert stages_needed(*plans.values()) == 1


def test_a_second_part_takes_a_stage() -> None:
    _, split = planned(SCALAR, partitions=4, stages=None)
    _, whole = planned(SCALAR, partitions=4, stages=1)
    assert (stages_needed(*split.values()), stages_needed(*whole.values())) == (2, 1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(20_000, [5000, 5000, 5000, 5000]), (5000, [0, 4096, 904, 0]), (7, [0, 7, 0, 0])],
)
def test_rows_that_may_go_anywhere_are_dealt_out(rows: int, expected: list[int]) -> None:
    session, plans = planned(SCALAR, partitions=4, stages=None)
    stream = session.catalog.find("s")
    assert isinstance(stream, StreamEntry)
    deployed = Deployment(build_graph(plans), {"s": stream}, {}, (2, 3, 4, 6), 2)
    frame = pl.DataFrame({"k": range(rows), "t": range(rows)})
    messages = list(take_in(deployed, "s", [Piece(0, frame)], Origin(0, 1, Time(0))))
    sent = dict.fromkeys(deployed.pids, 0)
    for message in messages:
        if message.kind is Kind.ROWS:
            sent[message.pid] += message.rows().height
    assert list(sent.values()) == expected
