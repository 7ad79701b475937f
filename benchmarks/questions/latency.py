"""How long after an event its result is out, at 10, 50 and 90 % of the rate that is sustained.

Four reference queries; how they are driven is said in ``latency/local.py`` and, for Spark, in
``latency/on_spark.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from benchmarks.harness.live import disturbed
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.latency import on_spark
from benchmarks.latency.local import FASTEST, Sizes, drive, sustained_rate
from benchmarks.latency.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

P = ParamSpec("P")
T = TypeVar("T")

LOADS = (0.1, 0.5, 0.9)
SHORT = ("grouped SUM, SLIDE 1 s", "sliding equi-join")
"""The queries of a short run, and those on Spark."""
COLUMNS = (
    *("query", "load", "events/s", "steps", "events a step, median", "p50 ms", "p99 ms", "max ms"),
    *("core share", "state rows", "process MB", "results, as DuckDB"),
)


def answers(context: Context) -> Iterator[Table]:
    """Each query at each load, in a process of its own, so that memory is that of one drive."""
    sizes = Sizes(10, 5, context.seed) if context.full else Sizes(2, 1, context.seed)
    rates: list[float] = []
    probes: list[float] = []
    shares: list[float | None] = []
    found: list[tuple[Cell, ...]] = []
    queries = list(enumerate(QUERIES))
    if not context.full:
        queries = [(number, asked) for number, asked in queries if asked.name in SHORT]
    for number, asked in queries:
        context.progress(f"{asked.name}, sustained rate")
        rate, probe = _alone(sustained_rate, number, sizes)
        rates.append(rate)
        probes.append(probe)
        for load in LOADS:
            context.progress(f"{asked.name} at {load:.0%}")
            driven = _alone(drive, number, load * rates[-1], sizes)
            course = driven.course
            shares.append(course.share)
            sizes_of_steps = sorted(step.events for step in course.steps)
            found.append(
                (
                    asked.name,
                    f"{load:.0%}",
                    load * rates[-1],
                    len(course.steps),
                    sizes_of_steps[len(sizes_of_steps) // 2],
                    *(1000 * course.late(share) for share in (0.5, 0.99, 1)),
                    course.share,
                    driven.state_rows,
                    driven.resident // 10**6,
                    driven.results,
                )
            )
    yield Table(
        f"The rate that is sustained in steps of a second, windows of {sizes.window} s",
        ("query", "events/s", "core share"),
        tuple(zip((asked.name for _, asked in queries), rates, probes, strict=True)),
        (f"Rates above {FASTEST:,.0f} are not tried.", *disturbed(probes)),
    )
    yield Table(
        f"From event to result on the local engine, windows of {sizes.window} s, one core",
        COLUMNS,
        tuple(found),
        disturbed(shares),
    )
    if context.full:
        yield _on_spark(context)


def _on_spark(context: Context) -> Table:
    """The same on Spark, in real time."""
    sizes = Sizes(20, 20, context.seed)
    found: list[tuple[Cell, ...]] = []
    for number, asked in enumerate(QUERIES):
        if asked.name not in SHORT:
            continue
        context.progress(f"{asked.name} on Spark, sustained rate")
        folder = context.folder / f"spark{number}"
        rate = _alone(on_spark.sustained_rate, number, sizes, folder / "rate")
        for load in LOADS:
            context.progress(f"{asked.name} on Spark at {load:.0%}")
            place = folder / f"{load:g}"
            driven = _alone(on_spark.drive, number, load * rate, sizes, place)
            late = (driven.course.late(share) for share in (0.5, 0.99, 1))
            memory = driven.resident // 10**6
            found.append((asked.name, f"{load:.0%}", load * rate, *late, driven.state_rows, memory))
    return Table(
        f"From event to result on Spark, local[2], windows of {sizes.window} s, a file a second",
        ("query", "load", "events/s", "p50 s", "p99 s", "max s", "state rows", "process MB"),
        tuple(found),
        ("The process is the driver's Python; Java and the workers are others.",),
    )


def _alone(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **named).result()


QUESTION = Question("latency", "How long after an event is its result out?", answers)
