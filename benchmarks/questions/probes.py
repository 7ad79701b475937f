"""What a step of few rows costs in a join, as the windows that it probes grow.

Joins of intervals and of signs, of two, three and four inputs, as operators: windows are filled,
and then steps of so many rows of each input come. One side searches what it remembers, the other
goes through all of it; they take turns step by step, and what counts is the step in the middle, in
time of the processor. A row has about one partner in each other window. Where there are few keys
nothing matches: there a row that goes must be found among many of its key.

Then whole plans, ``joins="multiway"`` against ``joins="binary"``, which remembers what it has made.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import sys
from dataclasses import dataclass, field
from statistics import median
from time import process_time
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl

import tidemill
from benchmarks.harness.comparable import same_rows
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.stepped import Stepped
from benchmarks.harness.table import Table
from tidemill.algebra.expr import Call, Column, conjunction
from tidemill.engine.pool import in_pool
from tidemill.model.batch import END, SIGN, START, TIME, Form
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical import interval, signed
from tidemill.physical.state import segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import Operator, State

SCHEMA = Schema(tuple(Field(name, BIGINT) for name in "klv"))
STEPS = (10, 100, 1_000)
WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """A join and its rows.

    Attributes:
        name: What it is called.
        form: That of its inputs.
        inputs: How many there are.
        is_star: Whether all are linked by one key; otherwise each by another to the next.
        few: How many keys there are, each input with others, so that nothing matches; or as many
            as a window has rows.
    """

    name: str
    form: Form
    inputs: int
    is_star: bool = True
    few: int = 0

    def operator(self) -> Operator:
        """The join."""
        names = tuple(f"{c}{port}" for port in range(self.inputs) for c in "klv")
        links = [
            _equal("k0" if self.is_star else f"l{port - 1}", f"k{port}")
            for port in range(1, self.inputs)
        ]
        condition = conjunction(*links)
        ports = range(self.inputs)
        # Those before it go the way back, so that each step has a link.
        orders = tuple((*range(p + 1, len(ports)), *range(p - 1, -1, -1)) for p in ports)
        if self.inputs == 2:  # noqa: PLR2004 — left and right
            kind = signed.Join if self.form is Form.SIGNED else interval.Join
            return kind(SCHEMA, SCHEMA, names, condition)
        if self.form is Form.SIGNED:
            return signed.MultiJoin((SCHEMA,) * self.inputs, names, condition, orders)
        return interval.MultiJoin((SCHEMA,) * self.inputs, names, condition, orders)

    def batch(self, port: int, first: int, past: int, window: int) -> Batch:
        """What an input brings from one time up to another; a row at each."""
        came = self.rows(port, first, past, window)
        if self.form is Form.INTERVAL:
            return came.with_columns((pl.col("v") + window).alias(END)).rename({"at": START})
        went = self.rows(port, max(first - window, 0), max(past - window, 0), window)
        signs = (came, 0, 1), (went, window, -1)
        return pl.concat(
            rows.drop("at").with_columns(
                (pl.col("v") + later).alias(TIME), pl.lit(sign, pl.Int64).alias(SIGN)
            )
            for rows, later, sign in signs
        )

    def rows(self, port: int, first: int, past: int, window: int) -> pl.DataFrame:
        """The rows of an input with their times, from one time up to another."""
        numbers = pl.int_range(first, past, dtype=pl.Int64, eager=True)
        count = self.few or window
        keys = [(numbers.hash(seed=10 * port + i) % count).cast(pl.Int64) for i in (0, 1)]
        own = port * self.few
        return pl.DataFrame({"k": keys[0] + own, "l": keys[1], "v": numbers, "at": numbers})


SHAPES = (
    Shape("3 intervals, star", Form.INTERVAL, 3),
    Shape("4 intervals, chain", Form.INTERVAL, 4, is_star=False),
    Shape("2 signed", Form.SIGNED, 2),
    Shape("2 signed, 100 keys", Form.SIGNED, 2, few=100),
    Shape("3 signed, star", Form.SIGNED, 3),
    Shape("4 signed, chain", Form.SIGNED, 4, is_star=False),
)


def _equal(one: str, other: str) -> Call:
    return Call("=", (Column(one, BIGINT), Column(other, BIGINT)), BOOLEAN)


def answers(context: Context) -> Iterator[Table]:
    """Operators, then plans."""
    yield _operators(context)
    yield _plans(context)


# Operators


@dataclass(slots=True)
class _Side:
    """A join that searches what it remembers, or goes through it."""

    operator: Operator
    searches: bool
    state: State = field(init=False)
    now: int = 0

    def __post_init__(self) -> None:
        self.state = self.operator.new_state()

    def step(self, shape: Shape, rows: int, window: int) -> tuple[float, tuple[int, int]]:
        """Bring in so many rows of each input: how long it took, and the size and sum of it all."""
        past = self.now + rows
        batches = [shape.batch(p, self.now, past, window) for p in range(shape.inputs)]
        least = segment._FEWEST_ROWS if self.searches else sys.maxsize  # noqa: SLF001 — it measures
        with patch.object(segment, "_FEWEST_ROWS", least):
            began = process_time()
            found: list[Batch] = []
            for port, batch in enumerate(batches):
                found += self.operator.on_batch(self.state, port, batch)
            found += self.operator.on_watermark(self.state, Time(past))
            took = process_time() - began
        self.now = past
        total = sum(int(out.select(pl.col("v0").sum()).item() or 0) for out in found)
        return took, (sum(out.height for out in found), total)


def _operators(context: Context) -> Table:
    windows = (10_000, 100_000, 1_000_000) if context.full else (10_000, 100_000)
    rows: list[tuple[Cell, ...]] = []
    for shape in SHAPES:
        for window in windows:
            context.progress(f"{shape.name}, windows of {window:,}")
            rows += in_pool(_steps)(shape, window, 15 if context.full else 7)
    return Table(
        "Steps of few rows: milliseconds of the processor for a step of so many rows of each input",
        ("join", "window", "rows a step", "searched: ms", "gone through: ms", "times"),
        tuple(rows),
        ("Both sides give the same; they take turns, step by step.",),
    )


def _steps(shape: Shape, window: int, turns: int) -> list[tuple[Cell, ...]]:
    """A row for each size of a step; windows stay full."""
    sides = [_Side(shape.operator(), searches) for searches in (True, False)]
    while sides[0].now < window + window // 2:
        _in_turns(sides, shape, max(window // 8, STEPS[-1]), window)
    found: list[tuple[Cell, ...]] = []
    for size in STEPS:
        took = [_in_turns(sides, shape, size, window) for _ in range(WARM_UP + turns)][WARM_UP:]
        one, other = (median(times) * 1e3 for times in zip(*took, strict=True))
        found.append((shape.name, window, size, one, other, other / one))
    return found


def _in_turns(sides: list[_Side], shape: Shape, rows: int, window: int) -> list[float]:
    """How long a step takes each side.

    Raises:
        WrongAnswerError: They do not give the same.
    """
    took, given = zip(*(side.step(shape, rows, window) for side in sides), strict=True)
    if len(set(given)) > 1:
        raise WrongAnswerError(f"{shape.name}: a join that searches gives something else")
    return list(took)


# Plans

_LINKS = {
    "star of 4": ["s0.k = s1.k", "s0.k = s2.k", "s0.k = s3.k"],
    "chain of 4": ["s0.l = s1.k", "s1.l = s2.k", "s2.l = s3.k"],
}


def _plans(context: Context) -> Table:
    windows = (10_000, 100_000, 300_000) if context.full else (10_000, 100_000)
    rows: list[tuple[Cell, ...]] = []
    for name, links in _LINKS.items():
        for window in windows:
            for size in (10, 1_000):
                context.progress(f"{name}, windows of {window:,}, {size:,} rows a step")
                rows.append((name, window, size, *_joined(links, window, size)))
    return Table(
        "Many inputs in one operator, or one join on top of the other: milliseconds for a step",
        ("join", "window", "rows a step", "multiway: ms", "binary: ms", "times", "state rows"),
        tuple(rows),
        (
            "One join of all remembers its inputs only, and makes the rest again for each row.",
            "State rows: those of the one, and of the others.",
        ),
    )


def _joined(links: list[str], window: int, size: int) -> tuple[Cell, ...]:
    """What a step takes either way, and the rows remembered."""
    shape = Shape("", Form.INTERVAL, 4)
    froms = ", ".join(f"s{port} [RANGE {window}]" for port in range(4))
    values = ", ".join(f"s{port}.v AS v{port}" for port in range(4))
    ways: dict[Joins, Stepped] = {}
    for joins in (Joins.MULTIWAY, Joins.BINARY):
        session = tidemill.connect()
        for port in range(4):
            columns = "k BIGINT NOT NULL, l BIGINT NOT NULL, v BIGINT NOT NULL, at BIGINT"
            session.sql(f"CREATE STREAM s{port} ({columns}) SOURCE memory('s{port}') ORDERED BY at")
        where = " AND ".join(links)
        session.query(f"CREATE QUERY q AS SELECT {values} FROM {froms} WHERE {where}")
        ways[joins] = Stepped(session, planning=Planning(joins=joins))
    now, took = 0, {joins: list[float]() for joins in ways}
    sizes = [max(window // 8, 1_000)] * 12 + [size] * 20
    for rows in sizes:
        frames = {f"s{port}": shape.rows(port, now, now + rows, window) for port in range(4)}
        now += rows
        for joins, stepped in ways.items():
            began = process_time()
            in_pool(stepped.step)(frames)
            took[joins].append(process_time() - began)
    one, other = ways.values()
    last = [way.answers["q"].snapshot(Time(now - 1)) for way in (one, other)]
    if not same_rows(*last):
        raise WrongAnswerError("a join of many inputs gives something else")
    first, second = (median(times[-12:]) * 1e3 for times in took.values())
    held = " / ".join(f"{_held(way):,}" for way in (one, other))
    return first, second, second / first, held


def _held(stepped: Stepped) -> int:
    """How many rows are remembered."""
    engines = (engine for stage in stepped.runner.engines for engine in stage)
    return sum(state.rows() for engine in engines for state in engine.states.values())


QUESTION = Question("probes", "What a step of few rows costs in a join of long windows", answers)
