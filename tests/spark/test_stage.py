"""A partition of the first stage: the gate of the streams. No Spark is needed for it."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING
from unittest.mock import ANY

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from plans import implement
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.engine.ingest import relation_flow
from tidemill.model.batch import polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import Route, build_graph
from tidemill.physical.plan import begun_in
from tidemill.runtime.answers import Answer
from tidemill.runtime.measuring.sample import Sample
from tidemill.runtime.spark.driver.control import Word, said
from tidemill.runtime.spark.driver.delivery import files_read
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.intake import Origin, Piece, first_id, take_in
from tidemill.runtime.spark.worker.stage import CONTROL, WATERMARKS, Stage
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from tidemill.engine.engine import Flow
    from tidemill.model.schema import Schema


RELATION = pl.DataFrame({"k": [1, 2], "name": ["one", "two"]})


def deployed(clauses: str, *texts: str, epochs: tuple[int, ...] = ()) -> Deployment:
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t {clauses};"
        "CREATE STREAM quiet (k BIGINT, t BIGINT) SOURCE memory('q') ORDERED BY t "
        "IDLE AFTER 10;"
        "CREATE STREAM other (k BIGINT, t BIGINT) SOURCE memory('o') ORDERED BY t;"
        "CREATE STREAM timeless (k BIGINT) SOURCE memory('u');"
        "CREATE RELATION r (k BIGINT, name VARCHAR) SOURCE memory('r')"
    )
    plans = {}
    for text, epoch in zip_longest(texts, epochs, fillvalue=0):
        assert isinstance(text, str)
        assert isinstance(epoch, int)
        query = session.sql(text)
        assert isinstance(query, tidemill.Query)
        plans[query.name] = begun_in(implement(query.plan), epoch, ())[0]
    graph = build_graph(plans)
    streams, relations = {}, {}
    for input_ in graph.inputs:
        entry = session.catalog.find(input_.name)
        if isinstance(entry, RelationEntry):
            rows = Message.of_rows(0, Kind.ROWS, entry.name, RELATION)
            relations[entry.name] = entry, rows.blob
        else:
            assert isinstance(entry, StreamEntry)
            streams[entry.name] = entry
    return Deployment(graph, streams, relations, (2,), max(1, len(graph.fragments) - 1))


def schema_of(deployment: Deployment) -> Schema:
    (channel,) = (c for f in deployment.graph.fragments for c in f.writes if c.route is Route.QUERY)
    return channel.schema


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
    return list(take_in(deployment, name, [Piece(*piece)], origin))


def tick(deployment: Deployment, now: int) -> list[Message]:
    return list(said([{"number": 0, "word": Word.TICK}], deployment.pids, now))


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
    # The filter has had what was taken.
    figures = {node.name: [1, 1, ANY, 0, 0, 0] for node in deployment.graph.fragments[0].nodes}
    assert counts == {
        "rows": 4,
        "files": 2,
        "notes": 1,
        "latest": 8,
        "refused": refused,
        "operators": figures,
        "sample": ANY,
    }
    sample = Sample.read(counts["sample"])  # type: ignore[arg-type]
    assert (sample.rows, sample.latest) == (1, 8), "those that were taken are counted"


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


def test_a_row_without_a_time_enters_an_aggregate_at_once_and_leaves_it_as_time_passes() -> None:
    deployment = deployed("", "SELECT COUNT(*) AS n FROM timeless [RANGE 30]")
    stage, answer = Stage(deployment, 1, 2), Answer(schema_of(deployment))

    def step(messages: list[Message]) -> None:
        out = list(stage.step(messages))
        answer.add(m.rows() for m in out if m.kind is Kind.ANSWER)
        (marks,) = (m.facts() for m in out if m.channel == WATERMARKS)
        known.append(marks["timeless"])

    known: list[object] = []
    step(came(deployment, "timeless", [(7,), (8,)], batch=0, now=50))
    assert answer.snapshot(50).rows() == [(2,)]
    step(came(deployment, "timeless", [(9,)], batch=1, now=60))
    assert answer.snapshot(60).rows() == [(3,)]
    step(tick(deployment, 79))
    assert answer.snapshot(79).rows() == [(3,)]
    step(tick(deployment, 80))
    assert answer.snapshot(80).rows() == [(1,)]
    step(tick(deployment, 95))
    assert answer.results().rows() == [(2, 50, 60), (3, 60, 80), (1, 80, 90)]
    assert sum(state.rows() for e in stage.engines for state in e.states.values()) == 0
    assert known == [51, 61, 80, 81, 96]


def test_a_relation_is_computed_once_for_each_query_and_not_in_every_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[str] = []

    def counting(relation: RelationEntry, frame: pl.DataFrame, *, has_ids: bool) -> Flow:
        computed.append(relation.name)
        return relation_flow(relation, frame, has_ids=has_ids)

    monkeypatch.setattr("tidemill.runtime.spark.worker.stage.relation_flow", counting)
    join = "SELECT name FROM s JOIN r USING (k)"
    deployment = deployed("", join)
    stage = Stage(deployment, 1, 2)
    found: list[object] = []
    for batch in range(4):
        rows: list[tuple[int | None, ...]] = [(batch, batch)]
        found += answers(stage.step(came(deployment, "s", rows, batch=batch, now=batch)))
    found += answers(stage.step(tick(deployment, 10)))
    assert found == [("one", 1, 2), ("two", 2, 3)]
    assert computed == ["r"]
    # A query that comes later gets the rows, once; those that were there have had them.
    more = deployed("", join, "SELECT name FROM r WHERE k = 1")
    again = Stage(more, 1, 2)
    again.progress, before = stage.progress, list(stage.progress.fed)
    assert answers(again.step(tick(more, 11))) == [("one", 0, END_OF_TIME)]
    assert answers(again.step(tick(more, 12))) == []
    assert computed == ["r", "r"]
    assert again.progress.fed[: len(before)] == before
    assert len(again.progress.fed) == len(before) + 1


def test_a_tick_is_no_end() -> None:
    deployment = deployed("", "SELECT COUNT(*) AS n FROM s [RANGE 30]")
    stage = Stage(deployment, 1, 2)
    list(stage.step(came(deployment, "s", [(1, 5)], batch=0, now=50)))
    out = list(stage.step(tick(deployment, 90)))
    (marks,) = (m.facts() for m in out if m.channel == WATERMARKS)
    assert marks == {"s": 5}
    end: list[dict[str, object]] = [
        {"number": 1, "word": Word.TICK},
        {"number": 2, "word": Word.END},
    ]
    out = list(stage.step(list(said(end, deployment.pids, 91))))
    (marks,) = (m.facts() for m in out if m.channel == WATERMARKS)
    assert marks == {"s": END_OF_TIME}
    assert sorted(answers(out)) == [(1, 5, 1), (1, 35, -1)]
    assert files_read(out) == {CONTROL: 3}


def test_silence_is_noticed_without_rows_of_another_stream() -> None:
    deployment = deployed("", "SELECT k FROM s INTERSECT SELECT k FROM quiet")
    stage = Stage(deployment, 1, 2)
    both = came(deployment, "s", [(1, 1), (1, 9)], batch=0, now=100)
    both += came(deployment, "quiet", [(1, 1)], batch=0, now=100)
    assert answers(stage.step(both)) == []
    assert answers(stage.step(tick(deployment, 109))) == []
    assert answers(stage.step(tick(deployment, 110))) == [(1, 1, 2)]


def test_a_query_on_a_silent_stream_does_not_hold_others_back() -> None:
    """Nobody reads ``timeless`` or the silent ``s`` together with ``quiet`` and ``other``."""
    both = "SELECT k FROM other INTERSECT SELECT k FROM quiet"
    for texts in ((both,), (both, "SELECT COUNT(*) AS n FROM s [RANGE 5]")):
        deployment = deployed("", *texts)
        stage = Stage(deployment, 1, 2)
        first = came(deployment, "other", [(1, 1)], batch=0, now=100)
        first += came(deployment, "quiet", [(1, 1)], batch=0, now=100)
        if len(texts) > 1:
            first += came(deployment, "s", [(1, 1)], batch=0, now=100)
        assert answers(stage.step(first)) == []
        then = came(deployment, "other", [(1, 9)], batch=1, now=110, watermark=1)
        assert answers(stage.step(then)) == [(1, 1, 2)]


@given(
    arrivals=st.lists(
        st.tuples(st.sets(st.sampled_from(["s", "quiet", "other"])), st.integers(1, 12)),
        max_size=8,
    ),
    texts=st.sets(
        st.sampled_from(
            [
                "SELECT k FROM s INTERSECT SELECT k FROM quiet",
                "SELECT k FROM other INTERSECT SELECT k FROM quiet",
                "SELECT COUNT(*) AS n FROM s [RANGE 5]",
                "SELECT x.k FROM s [RANGE 5] x, other [RANGE 5] y, quiet z WHERE x.k = y.k",
            ]
        ),
        min_size=1,
    ),
)
def test_an_idle_stream_is_where_those_are_that_it_is_read_with(
    arrivals: list[tuple[set[str], int]], texts: set[str]
) -> None:
    """Against a model that knows nothing but the texts: every stream's time is its batch's."""
    deployment = deployed("", *sorted(texts))
    stage, now, marks = Stage(deployment, 1, 2), 100, dict.fromkeys(deployment.streams, 0)
    seen = dict[str, int]()
    reads = [{name for name in marks if re.search(rf"\b{name}\b", text)} for text in texts]
    for number, (names, pause) in enumerate(arrivals):
        now += pause
        messages = tick(deployment, now)
        for name in names & marks.keys():
            messages += came(
                deployment, name, [(1, now)], batch=number, now=now, watermark=marks[name]
            )
            marks[name], seen[name] = max(marks[name], now), now
        out = list(stage.step(messages))
        (told,) = (m.facts() for m in out if m.channel == WATERMARKS)
        idle = "quiet" in marks and now - seen.setdefault("quiet", now) >= 10
        for group in (group for group in reads if idle and "quiet" in group and len(group) > 1):
            awake = min(marks[name] for name in group - {"quiet"})
            marks["quiet"] = max(marks["quiet"], awake)
        assert {name: told.get(name, 0) for name in marks} == marks


def test_ids_follow_batches_tasks_and_rows() -> None:
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 3, 2)]
    ids = [first_id(row, origin=Origin(batch, task, Time(0))) for batch, task, row in places]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
