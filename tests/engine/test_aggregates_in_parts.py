"""A scalar aggregate in two parts: every partition does its share, and little travels."""

from __future__ import annotations

import polars as pl

import tidemill
from plans import implement
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.physical.fragments import build_graph
from tidemill.physical.interval import Aggregate, Combine
from tidemill.runtime.local.runner import LocalRunner

ROWS, STEPS, PARTITIONS, SLIDE = 1000, 5, 4, 50
QUERY = f"SELECT COUNT(*) AS n, SUM(x) AS total, MAX(x) AS top FROM s [RANGE 200 SLIDE {SLIDE}]"


def step_of(number: int) -> pl.DataFrame:
    """The rows of a step: one at every instant."""
    times = pl.int_range(number * ROWS, (number + 1) * ROWS, eager=True)
    columns = {"x": times * 0.1, "t": times, START: times, END: times + 1, ID: times}
    return pl.DataFrame(columns)


def test_every_partition_combines_its_share_and_few_rows_are_exchanged() -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (x DOUBLE, t BIGINT) SOURCE memory('s') ORDERED BY t")
    query = session.sql(QUERY)
    assert isinstance(query, tidemill.Query)
    runner = LocalRunner(build_graph({"q": implement(optimize(query.plan))}), partitions=PARTITIONS)
    for number in range(STEPS):
        runner.step({"s": Flow([step_of(number)], Time(number * ROWS))})
    runner.step({"s": Flow([], END_OF_TIME)})
    combined = rows(runner, Combine)
    assert combined == [(STEPS * ROWS // PARTITIONS, ROWS // SLIDE * STEPS)] * PARTITIONS
    taken = [taken for taken, _ in rows(runner, Aggregate)]
    assert taken == [sum(given for _, given in combined)], "it rests in the other partitions"


def rows(runner: LocalRunner, operator: type) -> list[tuple[int, int]]:
    """How many rows an operator has taken and given in each partition where it runs."""
    return [
        (engine.metrics[node.name].rows_in, engine.metrics[node.name].rows_out)
        for engines in runner.engines
        for engine in engines
        for node in engine.fragment.nodes
        if isinstance(node.apply.operator, operator) and node.name in engine.metrics
    ]
