"""How long after an event its result is out on the local engine, at a share of what it sustains.

The sustained rate is found with steps of a second: with as many events a second, evenly spaced, and
a full window, a step takes a second. Then events arrive one by one, at a share of that rate, on the
clock of ``harness/live.py``. The answer of every drive is compared with DuckDB's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import tidemill
from benchmarks.harness.comparable import like, same_rows
from benchmarks.harness.live import Course, Served, live
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.stepped import Stepped, instants, resident
from benchmarks.latency.queries import QUERIES, SECOND, Asked, Evenly, duckdb_answer, rows_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FASTEST", "Driven", "Sizes", "drive", "same", "sustained_rate"]

MOST = 500_000
"""How many events arrive live at most, if they last a second: more are not compared soon."""

FASTEST = 5_000_000.0
"""How many events a second are tried at most: more are not made soon."""

ROUNDS = 5
"""How often a sustained rate is asked for at most."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done.

    Attributes:
        window: The seconds of a window.
        seconds: For how long events arrive live.
        seed: Which keys and values.
    """

    window: int
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of a rate.

    Attributes:
        course: The steps and responses.
        state_rows: How many rows were remembered at the end.
        resident: How many bytes the process had, with the input and the answer.
        results: How many results DuckDB finds as well.
    """

    course: Course
    state_rows: int
    resident: int
    results: int


def opened(asked: Asked, window: int) -> Stepped:
    """The query, with nothing read yet."""
    session = tidemill.connect()
    for name in asked.streams:
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at BIGINT) "
            f"SOURCE memory('{name}') ORDERED BY at"
        )
    session.sql(f"CREATE QUERY q AS {asked.text(window)}")
    return Stepped(session)


def sustained_rate(number: int, sizes: Sizes) -> tuple[float, float]:
    """How many events a second take a second, in steps of a second with a full window.

    With it comes which share of a core the last steps got: the rate is one of wall time.

    What an event costs can depend on how many there are in the window, so it is asked again at
    each rate that is found, until that is within a fifth of the one that was driven; if it was too
    high before and is too low now, between the two. What is given was driven, or is less.
    """
    asked, rate, was_higher = QUERIES[number], 100_000.0, True
    for _ in range(ROUNDS):
        driven = rate
        seconds, share = _second(asked, driven, sizes)
        found = min(driven / seconds, FASTEST)
        if abs(found / driven - 1) < 0.2:  # noqa: PLR2004 — a fifth
            break
        is_higher = found > driven
        rate = found if is_higher is was_higher else (driven * found) ** 0.5
        was_higher = is_higher
    return min(driven, found), share


def _second(asked: Asked, rate: float, sizes: Sizes) -> tuple[float, float]:
    """How long a step of a second takes, and the share of a core it got.

    It is the one in the middle of three with a full window.

    A step that takes more than two seconds while the window fills says enough.
    """
    engine = opened(asked, sizes.window)
    fill = sizes.window if asked.has_window else 1
    size, taken = round(rate), list[tuple[float, float]]()
    for step in range(fill + 3):
        rows = rows_of(asked, step * size, (step + 1) * size, rate, sizes.seed)
        began, had = perf_counter(), process_time()
        engine.step(rows)
        seconds, processor = perf_counter() - began, process_time() - had
        taken.append((seconds, processor / seconds))
        engine.forget()
        if seconds > 2:  # noqa: PLR2004 — as said
            return taken[-1]
    return sorted(taken[fill:])[1]


def drive(number: int, rate: float, sizes: Sizes) -> Driven:
    """Let events arrive at a rate.

    Raises:
        WrongAnswerError: DuckDB finds another answer.
    """
    asked, engine = QUERIES[number], opened(QUERIES[number], sizes.window)
    seconds = range(sizes.window + 1) if asked.has_window else (0, 0.1)
    edges = [round(second * rate) for second in seconds]
    begin, count = edges[-1], round(min(sizes.seconds * rate, max(rate, MOST)))
    rows = rows_of(asked, 0, begin + count, rate, sizes.seed)
    turns = len(asked.streams)

    def some(first: int, after: int) -> dict[str, pl.DataFrame]:
        """The events from a number up to another; streams take turns."""
        return {
            name: frame[-(-(first - place) // turns) : -(-(after - place) // turns)]
            for place, (name, frame) in enumerate(rows.items())
        }

    for first, after in pairwise(edges):
        engine.step(some(first, after))

    def serve(first: int, after: int) -> Served:
        part = some(begin + first, begin + after)
        began, had = perf_counter(), process_time()
        out = engine.step(part)
        seconds, processor = perf_counter() - began, process_time() - had
        return Served(seconds, instants(out["q"]) / SECOND, processor)

    course = live(Evenly(begin, count, rate), serve)
    state_rows, _ = engine.state()
    memory = resident()
    engine.finish()
    wanted = duckdb_answer(asked, sizes.window, rows)
    elements = engine.elements("q")
    if elements is None or not same(wanted, elements):
        # They were cut, or withdrawn by messages: results puts them together, which takes long.
        results = engine.answers["q"].results()
        if not same(wanted, results):
            raise WrongAnswerError(
                f"{asked.name} at {rate:,.0f} events/s: {results.height:,} results, "
                f"and DuckDB has {wanted.height:,}"
            )
    return Driven(course, state_rows, memory, wanted.height)


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two frames hold the same bag of rows."""
    return same_rows(one, like(other, one))
