"""One query, executed by several techniques over the same batches.

Law: no time counts before all sides have given the same answer. The sides take turns; what counts
is the least time of the processor.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.plans import implement
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.rules import Negation
    from tidemill.physical.plan import PhysicalPlan

__all__ = [
    "DIRECT",
    "NEGATIVE",
    "PATTERN",
    "Feed",
    "Measured",
    "by_technique",
    "compare",
    "declared",
    "drive",
    "feed_of",
    "planned",
]

DIRECT, NEGATIVE, PATTERN = Technique.DIRECT, Technique.NEGATIVE, Technique.PATTERN
_STATE_EVERY = 4


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes in, step by step.

    Attributes:
        steps: The rows and the watermark of each stream.
        counted: From which step on time and messages count.
    """

    steps: list[dict[str, Flow]]
    counted: int = 0


@dataclass(slots=True)
class Measured:
    """What became of a side.

    Attributes:
        seconds: The least time of the processor.
        rows_out: How many elements or changes the answer came in.
        messages: How many rows went into operators while it counted.
        state: The most rows that were remembered.
        by_operator: By which operators.
        first: After how many rows of input the first result came.
    """

    seconds: float = float("inf")
    rows_out: int = 0
    messages: int = 0
    state: int = 0
    by_operator: Counter[str] = field(default_factory=Counter)
    first: int | None = None


def declared(streams: Mapping[str, str]) -> tidemill.Session:
    """A session that knows some streams, given the columns of each besides its time."""
    session = tidemill.connect()
    for name, columns in streams.items():
        session.sql(
            f"CREATE STREAM {name} ({columns}, at BIGINT) SOURCE memory('{name}') ORDERED BY at"
        )
    return session


def planned(session: tidemill.Session, text: str) -> Plan:
    """What a query asks."""
    query = session.sql(text)
    assert isinstance(query, tidemill.Query), "the questions are queries"
    return query.plan


def by_technique(
    plan: Plan,
    *techniques: Technique,
    negation: Negation = "written",
    rewritten: bool = True,
) -> dict[str, PhysicalPlan]:
    """The plan of each technique."""
    best = optimize(plan, negation=negation) if rewritten else plan
    return {
        technique.value: implement(best, max_delay=None, split=False, technique=technique)
        for technique in techniques
    }


def feed_of(
    streams: Mapping[str, pl.DataFrame], steps: int, *, fill: int = 0, fill_steps: int = 0
) -> Feed:
    """Streams with a column ``at`` in some steps of equal length, and their end.

    Args:
        streams: The rows, in the order of time.
        steps: How many steps count.
        fill: Up to which time rows come in that only fill windows.
        fill_steps: In how many steps.
    """
    last = 1 + max(int(frame["at"][-1]) for frame in streams.values())
    edges = [fill * step // fill_steps for step in range(fill_steps)]
    edges += [fill + (last - fill) * step // steps for step in range(steps + 1)]
    parts: list[dict[str, Flow]] = []
    for low, high in pairwise(edges):
        flows = {}
        for name, frame in streams.items():
            some = frame.filter(pl.col("at") >= low, pl.col("at") < high)
            ids = pl.int_range(some.height, dtype=pl.Int64, eager=True) + low
            elements = some.with_columns(
                pl.col("at").alias(START), (pl.col("at") + 1).alias(END), ids.alias(ID)
            )
            flows[name] = Flow([elements], Time(high))
        parts.append(flows)
    return Feed(parts, fill_steps)


def compare(
    plan: Plan, sides: Mapping[str, PhysicalPlan], feed: Feed, repeat: int = 2
) -> dict[str, Measured]:
    """What becomes of each side.

    Raises:
        WrongAnswerError: Their answers differ.
    """
    measured = {side: Measured() for side in sides}
    expected: pl.DataFrame | None = None
    for side, made in sides.items():
        answer = Answer(plan.schema)
        drive(made, feed, answer, measured[side])
        elements = answer.elements()
        if expected is not None and not elements.equals(expected):
            raise WrongAnswerError(f"{side} gives another answer than {next(iter(sides))}")
        expected = elements
    for _ in range(repeat):
        for side, made in sides.items():
            drive(made, feed, None, measured[side])
    return measured


def drive(plan: PhysicalPlan, feed: Feed, answer: Answer | None, measured: Measured) -> None:
    """Run a plan once; without an answer to fill, the time counts."""
    runner = LocalRunner(build_graph({"q": plan}))
    names = {input_.name for input_ in runner.graph.inputs}
    seconds, rows_in, before = 0.0, 0, 0
    steps = [*feed.steps, {name: Flow([], END_OF_TIME) for name in feed.steps[0]}]
    for number, step in enumerate(steps):
        if number == feed.counted:
            before = _messages(runner)
        if number == len(feed.steps):
            measured.messages = _messages(runner) - before
        flows = {name: Flow(list(step[name].batches), step[name].watermark) for name in names}
        began = process_time()
        out = runner.step(flows)["q"]
        took = process_time() - began
        if feed.counted <= number < len(feed.steps):
            seconds += took
        if answer is not None:
            answer.add(out)
            rows_in += sum(b.height for flow in flows.values() for b in flow.batches)
            if out and measured.first is None and number < len(feed.steps):
                measured.first = rows_in
            if number % _STATE_EVERY == 0:
                _note_state(runner, measured)
    if answer is None:
        measured.seconds = min(measured.seconds, seconds)
    else:
        answer.known = END_OF_TIME
        measured.rows_out = answer.rows()


def _messages(runner: LocalRunner) -> int:
    """How many rows have gone into operators."""
    engines = (engine for stage in runner.engines for engine in stage)
    return sum(m.rows_in for engine in engines for m in engine.measure().values())


def _note_state(runner: LocalRunner, measured: Measured) -> None:
    found: Counter[str] = Counter()
    for engine in (engine for stage in runner.engines for engine in stage):
        kinds = {node.name: node.apply.operator for node in engine.fragment.nodes}
        for name, metrics in engine.measure().items():
            kind = type(kinds[name])
            found[f"{kind.__module__.split('.')[-2]}.{kind.__name__}"] += metrics.state_rows
    if found.total() > measured.state:
        measured.state, measured.by_operator = found.total(), found
