"""Which join plan is best, and how it is found: Zhu's experiments E1 to E4, Golab's J1 to J5.

Their settings are followed in simulated time, or counted row by row, since what they print would
give millions of results a second; then on the engine, with rates scaled down. What is only a
question of how long a search takes, or how often it finds a plan, is measured as it is.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from typing import TYPE_CHECKING

from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.join_plans.at_random import found
from benchmarks.join_plans.engine import chain_run, one_join
from benchmarks.join_plans.findings import (
    found_at_random,
    found_in_time,
    found_on_the_engine,
    found_within_limits,
)
from benchmarks.join_plans.golab import Streams, Technique, joined
from benchmarks.join_plans.golab_experiments import (
    BUCKETS,
    ROUNDS,
    lagging,
    lost,
    orders,
    rounds,
    settings,
)
from benchmarks.join_plans.golab_findings import found_in_losses, found_in_orders, found_in_rounds
from benchmarks.join_plans.kinds import KINDS, rates
from benchmarks.join_plans.settings import SETTINGS, followed
from benchmarks.techniques.shapes import table_of
from tidemill.engine.pool import in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from benchmarks.join_plans.at_random import Found
    from benchmarks.join_plans.engine import Run
    from benchmarks.join_plans.kinds import Rates
    from benchmarks.join_plans.settings import Course, Setting
    from benchmarks.techniques.shapes import Shape

SCALES = {1: 1.0, 2: 1.0, 3: 0.4, 4: 0.1}
"""By which the rates of each setting are scaled on the engine."""

SHARES = (0.1, 0.25, 0.5, 1.0)
LAGS = (0, 50, 90, 99)
STEP = 10

_ASSUMED = (
    "Every pair that is compared costs. How much of CPU and memory there is, is not printed: it is "
    "set so that the settings are what is said of them."
)


def answers(context: Context) -> Iterator[Table]:
    """Zhu's settings, in time and on the engine; searches; then Golab's joins; what was found."""
    shapes: list[Shape] = []
    context.progress("four settings")
    courses = {one.number: _courses(one) for one in SETTINGS}
    yield _followed(courses)
    shapes += found_in_time(courses)
    runs = {one.number: _runs(one, context) for one in SETTINGS}
    yield _on_the_engine(runs)
    shapes += found_on_the_engine(runs)
    drawn = list(_drawn(context))
    yield _found(drawn)
    shapes += found_at_random(drawn)
    kinds = dict(_kinds(context))
    yield _by_kind(kinds, inputs=_inputs(context))
    shapes += found_within_limits(kinds)
    yield table_of("Join plans: Zhu's E1 to E4", shapes)
    yield from _golab(context)


# Zhu


def _courses(setting: Setting) -> Mapping[str, Course]:
    return {name: followed(setting, plan.tree) for name, plan in setting.plans.items()}


def _followed(courses: Mapping[int, Mapping[str, Course]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for number, plans in courses.items():
        setting = next(one for one in SETTINGS if one.number == number)
        for name, course in plans.items():
            cpu = setting.plans[name].cpu / setting.capacity
            seen = (course.early, course.results, course.waiting, course.state)
            rows.append((number, name, cpu, *(round(one) for one in seen), course.over))
    return Table(
        "Zhu's four settings, followed for four windows of simulated time",
        (
            *("setting", "plan", "CPU by what there is", "results in a window", "in four"),
            *("rows waiting", "rows kept", "over its memory after, s"),
        ),
        tuple(rows),
        (
            _ASSUMED,
            "The hybrid is the cheapest of all trees that keep within the memory.",
        ),
    )


def _runs(setting: Setting, context: Context) -> Mapping[str, Run]:
    context.progress(f"setting {setting.number} on the engine")
    scale = SCALES[setting.number] * (1.5 if context.full else 1.0)
    found: dict[str, Run] = {}
    for _ in range(3 if context.full else 2):
        for name in ("mjoin", "bjtree"):
            run = in_pool(chain_run)(setting, scale, multiway=name == "mjoin", seed=context.seed)
            best = found.get(name, run)
            found[name] = min(run, best, key=lambda one: one.seconds)
    if len({run.results for run in found.values()}) > 1:
        raise WrongAnswerError(f"setting {setting.number}: plans give different results")
    return found


def _on_the_engine(runs: Mapping[int, Mapping[str, Run]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for number, plans in runs.items():
        for name, run in plans.items():
            rows.append((number, name, run.results, run.seconds, run.state))
    return Table(
        "The same on this engine, with rates scaled down, for three windows",
        ("setting", "plan", "results", "seconds", "rows kept"),
        tuple(rows),
        ("Seconds of the processor, the least of some turns; a hundred steps.",),
    )


def _drawn(context: Context) -> Iterator[Found]:
    number = 100 if context.full else 12
    most, all_ = (20, 7) if context.full else (12, 6)
    for streams in [*range(3, all_ + 1), *range(all_ + 1, most + 1, 1 if context.full else 2)]:
        context.progress(f"{streams} streams")
        yield found(streams, number, context.seed, all_trees=streams <= all_)


def _found(drawn: list[Found]) -> Table:
    names = ("mjoin-init", "bjtree-init", "best_tree", "all trees")
    rows = tuple(
        (
            one.streams,
            *(one.shares.get(name) for name in names),
            *(one.milliseconds.get(name) for name in names),
            one.memory,
            one.cpu,
        )
        for one in drawn
    )
    return Table(
        "Settings drawn at random: in which share a plan is found, how long that takes, and which",
        (
            "streams",
            *(f"{name}: found" for name in names),
            *(f"{name}: ms" for name in names),
            *("memory, mjoin-init / bjtree-init", "CPU, likewise"),
        ),
        rows,
        ("As much CPU as the mjoin of the middle, as much memory as min-state of the middle.",),
    )


def _inputs(context: Context) -> int:
    return 5 if context.full else 4


def _kinds(context: Context) -> Iterator[tuple[str, Rates]]:
    for kind in KINDS:
        context.progress(kind)
        yield kind, rates(kind, _inputs(context), 100 if context.full else 15, context.seed)


def _by_kind(kinds: Mapping[str, Rates], inputs: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind, one in kinds.items():
        rows.append((kind, one.mjoin, one.bjtree, one.either, one.all_strategies, one.cheapest))
    return Table(
        f"Joins of {inputs} with limits that are hard to keep: of those with a plan, the share in "
        "which one is found",
        ("links", "mjoin-init", "bjtree-init", "one of the two", "best_tree", "at its cheapest"),
        tuple(rows),
        ("best_tree without a look at all trees; it looks at all where there are so few.",),
    )


# Golab


def _golab(context: Context) -> Iterator[Table]:
    rows, seeds = (10_000, 4) if context.full else (2_000, 2)
    context.progress("orders")
    drawn = settings(rows, context.seed)
    of_orders = {name: orders(streams, seeds) for name, streams in drawn.items()}
    context.progress("rounds")
    streams = Streams((4, 1, 2, 1), (200, 100, 200, 100), (20, 10, 30, 15), rows, context.seed)
    costs = rounds(streams, (1, 3, 0, 2))
    yield _rounds(costs)
    yield _operators(context)
    few = 5 if context.full else 2
    losses = lost(SHARES, 100, rows, few), lagging(LAGS, 100, 20, rows)
    shapes = [
        *found_in_orders(of_orders),
        *found_in_rounds(costs),
        *found_in_losses(SHARES, losses[0], [lag / 100 for lag in LAGS], losses[1]),
    ]
    yield table_of("Joins of many windows: Golab's J1 to J5", shapes)


def _rounds(costs: Mapping[tuple[int, Technique], list[int]]) -> Table:
    first = costs[BUCKETS[0], Technique.LAZY][0]
    return Table(
        "Four windows on one value: what each way costs as rounds get rarer, by eager and scanned",
        ("buckets", "way", *(f"Δ = {every}" for every in ROUNDS)),
        tuple(
            (buckets, way.value, *(cost / first for cost in line))
            for (buckets, way), line in costs.items()
        ),
        ("Comparisons, rows put in and removed, and parts touched count 1 each.",),
    )


def _operators(context: Context) -> Table:
    rows = 10_000 if context.full else 1_500
    streams = Streams((4, 1, 2, 1), (200, 100, 200, 100), (20, 10, 30, 15), rows, context.seed)
    whole = joined(streams, (0, 1, 2, 3), Technique.EAGER).results
    found: list[tuple[Cell, ...]] = []
    for name, order in (("best order", (3, 1, 2, 0)), ("worst order", (0, 2, 3, 1))):
        for every in (0, 40, 80):
            context.progress(f"{name}, Δ = {every}")
            run = in_pool(one_join)(streams, order, step=STEP, evaluation=every)
            if run.results != whole:
                raise WrongAnswerError(f"{name}: {run.results} results, not {whole}")
            found.append((name, every, run.seconds, run.state, run.results))
    return Table(
        "The same join as an operator of this engine, RESTORE, steps of ten instants",
        ("order", "Δ", "seconds", "rows kept", "results"),
        tuple(found),
        ("As many results as are counted row by row. Seconds of the processor.",),
    )


QUESTION = Question("join_plans", "Which join plan is best, and how it is found", answers)
