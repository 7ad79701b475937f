"""How long after an event its result is out, at 10, 50 and 90 % of the rate that is sustained.

Four reference queries; how they are driven is said in ``latency/local.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.latency.local import Sizes, drive, sustained_rate
from benchmarks.latency.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

P = ParamSpec("P")
T = TypeVar("T")

LOADS = (0.1, 0.5, 0.9)
COLUMNS = (
    *("query", "load", "events/s", "steps", "events a step, median", "p50 ms", "p99 ms", "max ms"),
    *("state rows", "process MB", "results, as DuckDB"),
)


def answers(context: Context) -> Iterator[Table]:
    """Each query at each load, in a process of its own, so that memory is that of one drive."""
    sizes = Sizes(60, 10, context.seed) if context.full else Sizes(2, 1, context.seed)
    rates: list[float] = []
    found: list[tuple[Cell, ...]] = []
    for number, asked in enumerate(QUERIES):
        context.progress(f"{asked.name}, sustained rate")
        rates.append(_alone(sustained_rate, number, sizes))
        for load in LOADS:
            context.progress(f"{asked.name} at {load:.0%}")
            driven = _alone(drive, number, load * rates[-1], sizes)
            course = driven.course
            sizes_of_steps = sorted(step.events for step in course.steps)
            found.append(
                (
                    asked.name,
                    f"{load:.0%}",
                    load * rates[-1],
                    len(course.steps),
                    sizes_of_steps[len(sizes_of_steps) // 2],
                    *(1000 * course.late(share) for share in (0.5, 0.99, 1)),
                    driven.state_rows,
                    driven.resident // 10**6,
                    driven.results,
                )
            )
    yield Table(
        f"The rate that is sustained in steps of a second, windows of {sizes.window} s",
        ("query", "events/s"),
        tuple((asked.name, rate) for asked, rate in zip(QUERIES, rates, strict=True)),
    )
    yield Table(
        f"From event to result on the local engine, windows of {sizes.window} s, one core",
        COLUMNS,
        tuple(found),
    )


def _alone(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **named).result()


QUESTION = Question("latency", "How long after an event is its result out?", answers)
