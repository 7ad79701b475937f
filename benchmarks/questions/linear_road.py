"""How fast Linear Road answers, and at which scale: response times of all queries at once.

The scale L is the number of expressways; a result must be out 5 seconds after its event. The input
is that of our own simulator, with about 1,900 rows a second for a whole expressway. How time is
told is said in ``linear_road/live.py`` for the local engine, and in ``linear_road/on_spark.py``.
All answers are compared with those of the validator before a time counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.live import disturbed, quantile
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.linear_road import on_spark
from benchmarks.linear_road.live import LIMIT, Plan, drive, prepare, validated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from benchmarks.linear_road.live import Figures

QUICK, FULL = (1.0,), (1.0, 4.0, 6.0, 8.0, 10.0)
ON_SPARK = (0.25, 1.0, 2.0)
BUDGET = 600.0
"""After so many seconds no greater scale is begun."""


def _asked(
    plan: Plan, folder: Path, run: Callable[[Plan, Path], Figures]
) -> tuple[pl.DataFrame, Figures, int]:
    """Run in a process of its own, so that it has the memory of the run; then validate."""
    rows = prepare(plan, folder)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        figures = pool.submit(run, plan, folder).result()
    return rows, figures, validated(plan, folder, rows)


def _row(plan: Plan, rows: pl.DataFrame, figures: Figures, results: int) -> tuple[Cell, ...]:
    course = figures.course
    return (
        plan.scale,
        rows.filter(pl.col("time") >= plan.filled).height / plan.seconds,
        len(course.steps),
        quantile_of_steps(figures),
        max(step.seconds for step in course.steps),
        course.late(0.5),
        course.late(0.99),
        course.late(1),
        sustained(figures),
        course.share,
        figures.state_rows,
        figures.state_bytes // 10**6,
        figures.resident // 10**6,
        rows.height,
        results,
    )


def quantile_of_steps(figures: Figures) -> float:
    """The seconds of the step in the middle."""
    seconds = sorted(step.seconds for step in figures.course.steps)
    return seconds[len(seconds) // 2]


def sustained(figures: Figures) -> bool:
    """Whether no result was too late."""
    return figures.course.late(1) <= LIMIT


COLUMNS = (
    *("L", "rows/s", "steps", "step, median s", "step, max s", "p50 s", "p99 s", "max s"),
    *(
        "sustained",
        "core share",
        "state rows",
        "state MB",
        "process MB",
        "rows",
        "results validated",
    ),
)


def answers(context: Context) -> Iterator[Table]:
    """The scales one after another, as long as they are sustained; then Spark."""
    began, last = perf_counter(), None
    found: list[tuple[Cell, ...]] = []
    shares: list[float | None] = []
    minutes, seconds = 6, 60
    ended = "the grid has no greater scale"
    for scale in FULL if context.full else QUICK:
        if perf_counter() - began > BUDGET:
            ended = "the time is spent"
            break
        context.progress(f"Linear Road, L = {scale:g}")
        plan = Plan(scale, minutes, seconds, context.seed)
        rows, figures, results = _asked(plan, context.folder / f"{scale:g}", drive)
        found.append(_row(plan, rows, figures, results))
        shares.append(figures.course.share)
        if not sustained(figures):
            ended = f"L = {scale:g} is not sustained"
            break
        last = (plan, figures)
    best = "none" if last is None else f"{last[0].scale:g}"
    busy = disturbed(shares)
    yield Table(
        f"Linear Road live on the local engine, Q1 to Q9 in one session, {seconds} s of traffic "
        f"after {minutes} minutes",
        COLUMNS,
        tuple(found),
        (
            f"Largest L that is sustained (no result later than {LIMIT:g} s): {best}; {ended}.",
            *busy,
        ),
    )
    if last is not None:
        yield _by_query(*last)
    if context.full:
        yield _on_spark(context)


def _by_query(plan: Plan, figures: Figures) -> Table:
    return Table(
        f"Responses of each query at L = {plan.scale:g}, in seconds",
        ("query", "results", "p50", "p99", "max"),
        tuple(
            (name, given.len(), *(quantile(given, share) for share in (0.5, 0.99, 1)))
            for name, given in figures.by_query.items()
        ),
    )


def _on_spark(context: Context) -> Table:
    found: list[tuple[Cell, ...]] = []
    for scale in ON_SPARK:
        context.progress(f"Linear Road on Spark, L = {scale:g}")
        plan = Plan(scale, 6, 60, context.seed)
        rows, figures, results = _asked(plan, context.folder / f"spark{scale:g}", on_spark.drive)
        found.append(_row(plan, rows, figures, results))
        if not sustained(figures):
            break
    return Table(
        "Linear Road live on Spark, one partition, in real time: 60 s of traffic after 6 minutes",
        COLUMNS,
        tuple(found),
        ("The process is the driver's Python; Java and the workers are others.",),
    )


QUESTION = Question("linear_road", "How fast does Linear Road answer, and at which scale?", answers)
