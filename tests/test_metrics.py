"""Metrics: one row an operator, in both runtimes; here those that need no Spark."""

from __future__ import annotations

import polars as pl
import pytest

import tidemill
from plans import implement
from tidemill.engine.engine import Flow, Metrics
from tidemill.model.batch import END, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import build_graph
from tidemill.physical.interval import Aggregate
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.metrics import Collector, metrics_frame

COLUMNS = {
    "queries": pl.List(pl.String()),
    "operator": pl.String(),
    "fingerprint": pl.String(),
    "stage": pl.Int64(),
    "rows_in": pl.Int64(),
    "rows_out": pl.Int64(),
    "seconds": pl.Float64(),
    "state_rows": pl.Int64(),
    "state_bytes": pl.Int64(),
    "watermark": pl.Int64(),
}
ROWS = pl.DataFrame({"k": [1, 2, 1, 3, 9], "v": [1, 5, 7, 9, 8], "t": [1, 2, 3, 40, 30]})
SUM = "SELECT k, SUM(v) AS total FROM s [RANGE 10] WHERE v > 4 GROUP BY k"


def connected(partitions: int = 1) -> tidemill.Session:
    session = tidemill.connect(partitions=partitions)
    session.put("s", ROWS)
    session.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    return session


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    found = session.sql(text)
    assert isinstance(found, tidemill.Query)
    return found


def counted(metrics: pl.DataFrame) -> list[tuple[object, ...]]:
    """Kind, queries, stage, rows in and rows out of each operator."""
    kind = pl.col("operator").str.extract(r"^(\w+\.\w+)")
    return metrics.select(kind, "queries", "stage", "rows_in", "rows_out").rows()


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_operator_has_a_row_where_rows_come_in_too(partitions: int) -> None:
    session = connected(partitions=partitions)
    query(session, f"CREATE QUERY a AS {SUM}")
    query(session, "CREATE QUERY b AS SELECT k FROM s WHERE v > 4")
    with pytest.raises(tidemill.RunError, match="nothing has been run yet") as caught:
        session.metrics()
    assert caught.value.hint == "call session.run()"
    session.run()
    metrics = session.metrics()
    assert metrics.schema == COLUMNS
    # The row at 30 is within what is read at once, so it is not late.
    assert counted(metrics) == [
        ("interval.Filter", ["a", "b"], 0, 5, 4),
        ("interval.Project", ["a"], 0, 4, 4),
        ("interval.Project", ["b"], 0, 4, 4),
        ("interval.TimeWindow", ["a"], 1, 4, 4),
        ("signed.Aggregate", ["a"], 1, 4, 8),
        ("signed.Project", ["a"], 1, 8, 8),
    ]
    assert set(metrics["watermark"]) == {END_OF_TIME}
    assert set(metrics["state_rows"]) == set(metrics["state_bytes"]) == {0}
    assert (metrics["seconds"] > 0).all()


def test_a_query_knows_its_own_operators() -> None:
    session = connected()
    a = query(session, f"CREATE QUERY a AS {SUM}")
    b = query(session, "CREATE QUERY b AS SELECT k FROM s WHERE v > 4")
    session.run()
    assert [row[0] for row in counted(b.metrics())] == ["interval.Filter", "interval.Project"]
    assert a.metrics().height == 5
    session.sql("DROP QUERY b")
    query(session, "CREATE QUERY b AS SELECT v FROM s")
    with pytest.raises(tidemill.RunError, match="was dropped"):
        b.metrics()


def test_the_text_is_that_of_the_plan() -> None:
    session = connected()
    query(session, f"CREATE QUERY a AS {SUM}")
    session.run()
    plan = session.sql(f"EXPLAIN PHYSICAL {SUM}")
    assert isinstance(plan, str)
    for text in session.metrics()["operator"]:
        assert text in plan


def test_metrics_and_progress_tell_the_same_while_it_runs() -> None:
    session = connected()
    seen: list[tuple[pl.DataFrame, int, int]] = []

    def look(rows: pl.DataFrame, batch: int) -> None:  # noqa: ARG001
        progress = session.progress()
        seen.append((session.metrics(), progress.state_rows, progress.state_bytes))

    session.callback("look", look)
    session.sql(f"CREATE QUERY a INTO callback('look') AS {SUM}")
    session.run()
    assert seen
    for metrics, rows, bytes_ in seen:
        assert (metrics["state_rows"].sum(), metrics["state_bytes"].sum()) == (rows, bytes_)
    assert session.progress().state_rows == 0


# The collector


def collecting(*texts: str, into: Collector | None = None) -> tuple[Collector, list[str]]:
    """A collector for some queries, and the names of their operators."""
    session = connected()
    plans = {found.name: implement(found.plan) for found in (query(session, t) for t in texts)}
    collector, graph = into or Collector(), build_graph(plans)
    collector.begin(graph)
    return collector, [node.name for fragment in graph.fragments for node in fragment.nodes]


BY_KEY = "SELECT k FROM s WHERE v > 4"


def test_partitions_add_up_and_the_watermark_is_that_of_the_last() -> None:
    collector, (name, *_) = collecting(BY_KEY)
    assert collector.metrics()[name].state_rows is None
    assert collector.state() == (0, 0)
    one = {name: Metrics(3, 2, 0.5, 10, 100, Time(7))}
    two = {name: Metrics(4, 1, 0.25, 20, 200, Time(5))}
    collector.take(0, [one, two], {"1 0": one, "1 1": two})
    found = collector.metrics()[name]
    assert (found.rows_in, found.rows_out, found.seconds) == (7, 3, 0.75)
    assert (found.state_rows, found.state_bytes, found.watermark) == (30, 300, 5)
    assert collector.state() == (30, 300)
    collector.take(1, [one], {"1 0": {name: Metrics(0, 0, 0.0, 1, 10, Time(9))}})
    found = collector.metrics()[name]
    assert (found.rows_in, found.state_rows, found.watermark) == (10, 21, 5)


def test_a_batch_that_is_delivered_again_counts_once_for_each_operator() -> None:
    collector, names = collecting(BY_KEY)
    done = {name: Metrics(rows_in=1) for name in names}
    for batch in (0, 1, 1):
        collector.take(batch, [done], {})
    collector, more = collecting(BY_KEY, "SELECT v FROM s", into=collector)
    assert set(names) < set(more)
    collector.take(1, [{name: Metrics(rows_in=1) for name in more}], {})
    counts = {name: m.rows_in for name, m in collector.metrics().items()}
    assert counts == {name: 2 if name in names else 1 for name in more}


def test_operators_that_are_gone_are_forgotten() -> None:
    collector, names = collecting(BY_KEY)
    figures = {name: Metrics(5, 5, 0.1, 3, 30) for name in names}
    collector.take(0, [figures], {"1 0": figures})
    collecting("SELECT v FROM s", into=collector)
    assert collector.state() == (0, 0)
    assert not collector.metrics().keys() & set(names)
    collector.take(1, [figures], {"1 0": figures})  # told late, by nobody that is known
    assert metrics_frame(collector.metrics().values())["rows_in"].sum() == 0


# Aggregations that run as one


def test_the_members_of_a_stack_remember_what_they_would_by_themselves() -> None:
    texts = [f"SELECT k, SUM(v) AS x FROM s [RANGE {size}] GROUP BY k" for size in (50, 20, 2)]
    together, alone = remembered(*texts), [remembered(text) for text in texts]
    assert len(together) == len(texts)
    assert together == {name: rows for found in alone for name, rows in found.items()}
    assert sorted(together.values()) == sorted(set(together.values())), "each has another share"


def remembered(*texts: str) -> dict[str, int]:
    """How many rows each aggregation remembers after some rows."""
    session = connected()
    plans = {found.name: implement(found.plan) for found in (query(session, t) for t in texts)}
    runner = LocalRunner(build_graph(plans))
    times = pl.int_range(0, 40, eager=True)
    rows = pl.DataFrame({"k": times % 5, "v": times, "t": times, START: times, END: times + 1})
    runner.step({"s": Flow([rows], Time(30))})
    (engine,) = (e for stage in runner.engines for e in stage if e.fragment.stage == 1)
    assert any(name.startswith("stack-") for name in engine.states) == (len(texts) > 1)
    nodes = {n.name for n in engine.fragment.nodes if isinstance(n.apply.operator, Aggregate)}
    return {name: m.state_rows for name, m in engine.drain().items() if name in nodes}
