"""A partition of the first stage: the gate of the streams. No Spark is needed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

import tidemill
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.fragments import build_graph
from tidemill.model.batch import polars_schema
from tidemill.model.time import Time
from tidemill.optimizer.implement import implement
from tidemill.runtime.spark.deployment import Deployment
from tidemill.runtime.spark.intake import Origin, first_id, take_in
from tidemill.runtime.spark.stage import WATERMARKS, Stage
from tidemill.runtime.spark.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable


def deployed(clauses: str, text: str) -> Deployment:
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t {clauses};"
        "CREATE STREAM quiet (k BIGINT, t BIGINT) SOURCE memory('q') ORDERED BY t "
        "IDLE AFTER 10;"
        "CREATE STREAM timeless (k BIGINT) SOURCE memory('u')"
    )
    query = session.sql(text)
    assert isinstance(query, tidemill.Query)
    graph = build_graph({"q": implement(query.plan)})
    streams = {}
    for input_ in graph.inputs:
        entry = session.catalog.find(input_.name)
        assert isinstance(entry, StreamEntry)
        streams[entry.name] = entry
    return Deployment(graph, streams, {}, (2,), max(1, len(graph.fragments) - 1), "v")


def came(  # noqa: PLR0913 — all that a task knows
    deployment: Deployment,
    name: str,
    rows: list[tuple[int | None, ...]],
    *,
    batch: int,
    now: int,
    watermark: int = 0,
) -> list[Message]:
    schema = polars_schema(deployment.streams[name].schema)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    piece = first_id(0, file=batch), frame
    origin = Origin(batch, 0, Time(now), Time(watermark))
    return list(take_in(deployment, name, [piece], origin))


def answers(messages: Iterable[Message]) -> list[tuple[object, ...]]:
    return [row for m in messages if m.kind is Kind.ANSWER for row in m.rows().rows()]


def test_late_rows_are_left_out_counted_and_kept() -> None:
    deployment = deployed("WITHIN 2 LATE QUARANTINE", "SELECT k, t FROM s WHERE k > 0")
    stage = Stage(deployment, 1, 2)
    first = list(stage.step(came(deployment, "s", [(1, 10)], batch=0, now=0)))
    (marks,) = (m.facts() for m in first if m.channel == WATERMARKS)
    assert marks == {"s": 8}
    late: list[tuple[int | None, ...]] = [(1, 7), (2, 8), (0, 3), (5, None)]
    out = list(stage.step(came(deployment, "s", late, batch=1, now=1, watermark=8)))
    assert [row[:2] for row in answers(out)] == [(2, 8)]
    kept = sorted((row for m in out if m.kind is Kind.KEPT for row in m.rows().rows()), key=str)
    assert kept == [(0, 3, "late"), (1, 7, "late"), (5, None, "time is NULL")]
    (counts,) = (m.facts() for m in out if m.channel == "stream s")
    refused = {"time is NULL": 1, "late": 2}
    assert counts == {"rows": 4, "files": 2, "latest": 8, "refused": refused}


def test_a_stream_that_is_silent_for_long_holds_nobody_back() -> None:
    deployment = deployed("", "SELECT k FROM s INTERSECT SELECT k FROM quiet")
    stage = Stage(deployment, 1, 2)
    both = came(deployment, "s", [(1, 1)], batch=0, now=100)
    both += came(deployment, "quiet", [(1, 1)], batch=0, now=100)
    assert answers(stage.step(both)) == []
    assert answers(stage.step(came(deployment, "s", [(1, 5)], batch=1, now=105))) == []
    # Ten microseconds after its last row it is taken to be idle.
    assert answers(stage.step(came(deployment, "s", [(1, 9)], batch=2, now=110))) == [(1, 1, 2)]


def test_a_file_without_rows_is_a_sign_of_life() -> None:
    deployment = deployed("", "SELECT k FROM s INTERSECT SELECT k FROM quiet")
    stage = Stage(deployment, 1, 2)
    both = came(deployment, "s", [(1, 1)], batch=0, now=100)
    both += came(deployment, "quiet", [(1, 1)], batch=0, now=100)
    assert answers(stage.step(both)) == []
    assert answers(stage.step(came(deployment, "quiet", [], batch=1, now=105))) == []
    assert answers(stage.step(came(deployment, "s", [(1, 9)], batch=2, now=110))) == []
    assert answers(stage.step(came(deployment, "s", [(1, 11)], batch=3, now=115))) == [(1, 1, 2)]


def test_a_stream_without_a_time_column_has_the_time_of_the_batch() -> None:
    deployment = deployed("", "SELECT k FROM timeless [RANGE 3]")
    stage = Stage(deployment, 1, 2)
    found = answers(stage.step(came(deployment, "timeless", [(7,), (8,)], batch=0, now=50)))
    assert sorted(found) == [(7, 50, 53), (8, 50, 53)]


def test_ids_follow_batches_tasks_and_rows() -> None:
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 3, 2)]
    ids = [first_id(row, origin=Origin(batch, task, Time(0))) for batch, task, row in places]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
