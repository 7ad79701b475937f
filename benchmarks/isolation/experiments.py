"""The experiments C1 … C7 of Golab's thesis: the same queries under each scheduler, many times.

What the thesis gives as times is a property of its machine; what is looked for here is the order of
the schedulers, and how it moves with the number of sub-windows and their length.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from benchmarks.isolation.levels import Levels, levels
from benchmarks.isolation.load import Costs, Load, workload
from benchmarks.isolation.scheduling import Scheduler
from benchmarks.isolation.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from benchmarks.isolation.simulation import Answer, Outcome

__all__ = [
    "LONG",
    "SHORT",
    "Figures",
    "Sizes",
    "long_scans",
    "measured",
    "mixed",
    "periodic",
    "reached",
]

SHORT, LONG = 1_000.0, 5_000.0
"""The two lengths of a sub-window, in milliseconds."""
GAP = 2_000.0
"""The mean time between two one-time queries."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run.

    Attributes:
        counts: The numbers of sub-windows.
        runs: How many workloads there are, with seeds of their own.
        seed: The first seed.
    """

    counts: tuple[int, ...]
    runs: int
    seed: int = 1

    @property
    def seeds(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.runs)


@dataclass(frozen=True, slots=True)
class Figures:
    """The means of a number of runs, in milliseconds and answers per second.

    Attributes:
        aborts: Which share of the queries that began was aborted.
        staleness: How old answers of periodic queries are when they are given.
        between: The time between two answers of a periodic query.
        throughput: Answers per second, of all queries.
        response: How long one-time queries take; 0 if there are none.
        once_staleness: How old their answers are.
        waited: How long a slide waited at most.
        copies: How many overwritten sub-windows were kept at once, at most.
        reread: Sub-windows that were read again to be taken back, per answer.
        met: Slides that came while a query was running, at most.
    """

    aborts: float
    staleness: float
    between: float
    throughput: float
    response: float
    once_staleness: float
    waited: float
    copies: int
    reread: float
    met: int


def measured(
    load: Load, scheduler: Scheduler, seeds: Iterable[int], *, rereads: bool = False
) -> Figures:
    """What comes of a load under a scheduler, over some workloads."""
    outcomes = [simulate(workload(load, seed), scheduler, rereads=rereads) for seed in seeds]
    answers = [answer for outcome in outcomes for answer in outcome.answers]
    begun = len(answers) + sum(outcome.aborts for outcome in outcomes)
    once = [answer for answer in answers if answer.is_once]
    again = [answer for answer in answers if not answer.is_once]
    return Figures(
        aborts=sum(outcome.aborts for outcome in outcomes) / begun if begun else 0.0,
        staleness=_mean(answer.staleness for answer in again),
        between=_mean(gap for outcome in outcomes for gap in _gaps(outcome)),
        throughput=1_000 * len(answers) / sum(outcome.end for outcome in outcomes),
        response=_mean(answer.response for answer in once),
        once_staleness=_mean(answer.staleness for answer in once),
        waited=max(outcome.waited for outcome in outcomes),
        copies=max(outcome.copies for outcome in outcomes),
        reread=sum(outcome.reread for outcome in outcomes) / max(len(answers), 1),
        met=max(max(outcome.slides_met, default=0) for outcome in outcomes),
    )


def _mean(figures: Iterable[float]) -> float:
    found = list(figures)
    return mean(found) if found else 0.0


def _gaps(outcome: Outcome) -> Iterator[float]:
    """The times between two answers of a periodic query."""
    by_query: dict[str, list[Answer]] = {}
    for answer in outcome.answers:
        if not answer.is_once:
            by_query.setdefault(answer.query, []).append(answer)
    for answers in by_query.values():
        yield from (after.given - before.given for before, after in pairwise(answers))


def periodic(
    sizes: Sizes, progress: Callable[[str], None] = lambda _: None
) -> dict[tuple[float, int], dict[Scheduler, Figures]]:
    """C1 to C4: periodic queries alone, by the length of sub-windows and their number."""
    found = {}
    for t in (SHORT, LONG):
        for n in sizes.counts:
            progress(f"periodic queries, {n} sub-windows of {t / 1000:g} s")
            load = Load(n, t)
            found[t, n] = {s: measured(load, s, sizes.seeds) for s in Scheduler}
    return found


def mixed(
    sizes: Sizes, progress: Callable[[str], None] = lambda _: None
) -> dict[int, dict[Scheduler, Figures]]:
    """C5 to C7, and C1 once more: one-time queries come as well and go first."""
    found = {}
    for n in sizes.counts:
        progress(f"one-time queries too, {n} sub-windows")
        load = Load(n, LONG, gap=GAP)
        found[n] = {s: measured(load, s, sizes.seeds) for s in Scheduler}
    return found


def reached(sizes: Sizes) -> dict[Scheduler, Levels]:
    """The levels that the histories of all runs of a scheduler reach, with one-time queries."""
    loads = [Load(n, SHORT, gap=SHORT / 2) for n in sizes.counts]
    found = {}
    for scheduler in Scheduler:
        runs = (simulate(workload(load, seed), scheduler) for load in loads for seed in sizes.seeds)
        each = [levels(run.history) for run in runs]
        found[scheduler] = Levels(
            csr=all(one.csr for one in each),
            ws=all(one.ws for one in each),
            strong=all(one.strong for one in each),
            lws=all(one.lws for one in each),
            cps=all(one.cps for one in each),
        )
    return found


def long_scans(
    lengths: Iterable[float], runs: int, seed: int = 1
) -> dict[float, dict[tuple[Scheduler, bool], Figures]]:
    """Scans of the whole window that take so many times the time between two slides.

    Returns:
        By that, and by scheduler and whether old copies are read again instead of an abort.
    """
    n, seeds = 20, range(seed, seed + runs)
    sides = [(s, False) for s in Scheduler] + [(Scheduler.LWS, True), (Scheduler.TTU, True)]
    found = {}
    for length in lengths:
        # Half of it is for sub-windows, half for their rows: one a millisecond.
        costs = Costs(read=length * SHORT / n / 2, row=length / n / 2)
        load = Load(n, SHORT, groups=1, members=n, windows=10, costs=costs)
        found[length] = {(s, again): measured(load, s, seeds, rereads=again) for s, again in sides}
    return found
