"""Queries with aggregates in two parts: values of every kind, late rows, and who does what.

The plans of ``split_plans.py`` are tested as all others are, in ``test_engine.py`` and
``test_stages.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.aggregations import (
    DELAYS,
    SAMPLE,
    SEEDS,
    assert_same_groups,
    hard_row,
    scalar_calls,
    seeded,
)
from laws.arrivals import arrivals, emitted
from laws.pipeline import PIDS, Pipeline
from laws.split_plans import split_plans
from laws.test_mutants import fails
from physical.run import normal
from plans import implement
from streams import call
from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import Aggregate, Filter, Source, TimeWindow, Window
from tidemill.algebra.snapshot import Element, Reference
from tidemill.algebra.tree import share
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.ingest import Gate
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import polars_schema
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.physical.fold import folded
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Planned, Target
from tidemill.optimizer.planner import plan as planned
from tidemill.optimizer.planning import Planning
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.physical.fragments import build_graph
from tidemill.physical.interval import Combine
from tidemill.physical.plan import Apply, walk_physical
from tidemill.runtime.answers import Answer
from tidemill.runtime.spark.driver.delivery import refused_counts, watermarks
from tidemill.runtime.spark.state.batch_log import BatchLog, Ending
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.intake import Origin, Piece, take_in
from tidemill.runtime.spark.worker.stage import CONTROL
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import State
    from tidemill.physical.plan import PhysicalPlan

rarely = settings(max_examples=max(settings().max_examples // 4, 10))

LAST = 12
HORIZON = range(LAST + 16)
TIMED = Schema((*SAMPLE, Field("t", BIGINT)))
STREAM = StreamEntry("S", TIMED, ConnectorCall(Name("memory")), "t")


def scalar(chance: Random) -> Aggregate:
    """A scalar aggregate of columns of every kind, over a window that slides."""
    plan: Plan = Source(STREAM.name, TIMED)
    if chance.random() < 0.3:
        plan = Filter(plan, call("not", Column("b", BOOLEAN)))
    plan = Window(plan, TimeWindow(chance.randint(1, 6), chance.randint(2, 4)))
    return Aggregate(plan, (), scalar_calls(chance))


def grouped(chance: Random) -> Aggregate:
    """The same of groups, some of them filtered by what they are grouped by."""
    plan = scalar(chance)
    fields = chance.sample(SAMPLE.fields, chance.randint(1, 2))
    keys = tuple(Named(f"by {f.name}", Column(f.name, f.type)) for f in fields)
    return replace(plan, keys=keys)


def planned_for_many_rows(
    plan: Plan, delay: int | None, technique: Technique, partitions: int
) -> Planned:
    """The plan, made to believe that very many rows come, of which few groups are made."""
    known = Statistics({STREAM.name: Edge(0.0001, distinct=dict.fromkeys(TIMED.names, 3.0))})
    planning = Planning(max_delay=delay, technique=technique)
    return planned(plan, Target(partitions=partitions, whole=False), Context(planning, known))


def some_elements(chance: Random) -> tuple[Element, ...]:
    """Elements with their time as the last column, in no order."""
    times = [chance.randrange(LAST) for _ in range(chance.randrange(25))]
    return tuple(Element(t, i, (*hard_row(chance), t)) for i, t in enumerate(times))


def combines(plan: PhysicalPlan) -> list[Apply]:
    return [
        part
        for part in walk_physical([plan])
        if isinstance(part, Apply) and isinstance(part.operator, Combine)
    ]


@given(plan=split_plans() | SEEDS.map(lambda seed: scalar(seeded(seed))), delay=DELAYS)
def test_the_plans_of_these_laws_are_split(plan: Plan, delay: int | None) -> None:
    # Of groups in signed form, other aggregates are split, and in another way.
    made = partial(implement, share(plan), max_delay=delay, technique=Technique.DIRECT)
    assert combines(made())
    assert not combines(made(split=False))


@given(data=st.data(), seed=SEEDS, partitions=st.integers(1, 4), delay=DELAYS, reload=st.booleans())
def test_split_or_not_the_answer_is_the_same_to_the_last_bit(
    data: st.DataObject, seed: int, partitions: int, delay: int | None, *, reload: bool
) -> None:
    chance = seeded(seed)
    plan, elements = scalar(chance), some_elements(chance)
    arrival = data.draw(arrivals({STREAM.name: elements}, max(HORIZON)))
    answers = []
    for split in (True, False):
        answer = Answer(plan.schema)
        physical = implement(plan, max_delay=delay, split=split)
        answer.add(emitted(physical, {STREAM.name: TIMED}, {}, arrival, partitions, reload=reload))
        answers.append(answer)
    reference = Reference({STREAM.name: elements}, {})
    for time in HORIZON:
        in_parts, at_once = (bag(answer, time) for answer in answers)
        assert in_parts == at_once, time
        assert_same_groups(plan, in_parts, list(reference.snapshot(plan, time)))


@rarely
@given(
    data=st.data(),
    seed=SEEDS,
    partitions=st.integers(2, 4),
    delay=DELAYS,
    technique=st.sampled_from([Technique.PATTERN, Technique.DIRECT]),
    reload=st.booleans(),
)
def test_groups_in_two_parts_have_the_answer_of_the_reference(  # noqa: PLR0913 — all matter
    data: st.DataObject,
    seed: int,
    partitions: int,
    delay: int | None,
    technique: Technique,
    *,
    reload: bool,
) -> None:
    chance = seeded(seed)
    plan, elements = grouped(chance), some_elements(chance)
    arrival = data.draw(arrivals({STREAM.name: elements}, max(HORIZON)))
    made = planned_for_many_rows(plan, delay, technique, partitions)
    assert [one.chosen for one in made.decisions] == ["in two parts"]
    (combine,) = combines(made.physical)
    # Columns are called after what they are, whatever the query calls them (``canonical_names``).
    kinds = sorted(repr(key.expr.type) for key in plan.keys)
    assert sorted(repr(f.type) for f in combine.operator.schema) == kinds
    answer = Answer(plan.schema)
    streams = {STREAM.name: TIMED}
    answer.add(emitted(made.physical, streams, {}, arrival, partitions, reload=reload))
    reference = Reference({STREAM.name: elements}, {})
    for time in HORIZON:
        assert_same_groups(plan, bag(answer, time), list(reference.snapshot(plan, time)))


def test_the_law_finds_parts_that_do_not_tell_groups_apart() -> None:
    right = Combine.on_batch

    def wrong(self: Combine, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        for part in right(self, state, port, batch):
            first = [pl.col(name).first() for name in self.schema.names]
            yield part.with_columns(first)

    with patch.object(Combine, "on_batch", wrong):
        fails(test_groups_in_two_parts_have_the_answer_of_the_reference)


def bag(answer: Answer, time: int) -> Bag:
    """The snapshot of an answer."""
    return Counter(map(normal, answer.snapshot(time).iter_rows()))


# Late rows

Batches = list[list[list[tuple[int, "Row"]]]]
"""Rows with their time, by batch and task."""


def some_batches(chance: Random) -> Batches:
    """Batches of which each goes on by less than it is long, so that many rows are late."""
    return [
        [
            [(number * 3 + chance.randrange(6), hard_row(chance)) for _ in range(rows)]
            for rows in chance.choices(range(6), k=chance.randint(1, 3))
        ]
        for number in range(chance.randrange(5))
    ]


def frame(rows: list[tuple[int, Row]]) -> pl.DataFrame:
    timed = [(*row, time) for time, row in rows]
    return pl.DataFrame(timed, schema=polars_schema(TIMED), orient="row")


def admitted(batches: Batches) -> tuple[list[Element], int]:
    """What the gate of a single process lets through, and how many rows it does not."""
    gate, found = Gate(STREAM), list[Element]()
    for batch in batches:
        rows = [row for task in batch for row in task]
        for taken in gate.take(frame(rows), Time(0)).batches:
            found += [Element(row[-1], 0, row) for row in taken.select(TIMED.names).iter_rows()]
    return found, sum(gate.refused.counts.values())


@given(
    seed=SEEDS,
    partitions=st.integers(1, 4),
    stages=st.sampled_from([None, None, 1, 3]),
    reopen=st.booleans(),
)
def test_late_rows_are_left_out_before_anything_is_combined(
    seed: int, partitions: int, stages: int | None, *, reopen: bool
) -> None:
    chance = seeded(seed)
    plan, batches = scalar(chance), some_batches(chance)
    physical = implement(plan, max_delay=3)
    graph = build_graph({"q": physical if stages is None else folded(physical, stages)[0]})
    pids = PIDS[:partitions]
    deployed = Deployment(
        graph, {STREAM.name: STREAM}, {}, pids, stages or len(graph.fragments) - 1
    )
    answer, refused = Answer(plan.schema), 0
    end = [
        Message.of_facts(p, Kind.PULSE, CONTROL, {"latest": None, "now": 0, "ended": 1})
        for p in pids
    ]
    with TemporaryDirectory() as folder:
        pipeline, path = Pipeline(deployed, Path(folder)), Path(folder) / "batches.jsonl"
        batch_log = BatchLog(path)
        for number, batch in enumerate([*batches, None]):
            if reopen:
                batch_log = BatchLog(path)
            reached = batch_log.begin(number).watermarks.get(STREAM.name, 0)
            messages = end if batch is None else arrived(deployed, number, batch, reached)
            out = pipeline.step(number, messages, reopen=reopen)
            batch_log.end(number, Ending(watermarks(out)))
            for message in out:
                if message.kind is Kind.ANSWER:
                    answer.add([message.rows()])
            refused += sum(refused_counts(out).get(STREAM.name, {}).values())
    elements, late = admitted(batches)
    assert refused == late
    reference = Reference({STREAM.name: elements}, {})
    for time in HORIZON:
        assert_same_groups(plan, bag(answer, time), list(reference.snapshot(plan, time)))


def arrived(
    deployed: Deployment, number: int, batch: list[list[tuple[int, Row]]], reached: int
) -> list[Message]:
    """The messages of a batch, from several tasks."""
    return [
        message
        for task, rows in enumerate(batch)
        for message in take_in(
            deployed,
            STREAM.name,
            [Piece(0, frame(rows))],
            Origin(number, task, Time(0), Time(reached)),
        )
    ]
