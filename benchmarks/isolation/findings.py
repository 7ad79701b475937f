"""What the thesis found in its experiments C1 … C7, and whether it is found here.

An order of schedulers is found if it holds for the largest window strictly, and for every other one
but for ``SAME`` (differences of so little are those of chance).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.isolation.experiments import LONG, SHORT
from benchmarks.isolation.scheduling import Scheduler
from benchmarks.techniques.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from benchmarks.isolation.experiments import Figures

    Group = Mapping[Scheduler, Figures]
    Measure = Callable[[Figures], float]

__all__ = ["SAME", "findings", "in_order"]

SAME = 0.03
"""Two figures are the same if they differ by this share at most."""

SERIAL, WS, LWS, TTU = Scheduler


def in_order(groups: Sequence[Group], order: Sequence[Scheduler], measure: Measure) -> bool:
    """Whether a figure rises along an order of schedulers: in the last group, strictly.

    Elsewhere it may be the same.
    """
    return all(
        measure(group[less]) < measure(group[more]) * (1 if group is groups[-1] else 1 + SAME)
        for group in groups
        for less, more in pairwise(order)
    )


def findings(
    alone: Mapping[tuple[float, int], Group], mixed: Mapping[int, Group]
) -> Iterator[Shape]:
    """C1 to C7 in their order.

    Args:
        alone: Periodic queries, by length and number of sub-windows.
        mixed: One-time queries too, by number of sub-windows.
    """
    by_length = [[g for (t, _), g in alone.items() if t == length] for length in (SHORT, LONG)]
    both = list(mixed.values())
    yield from _aborts(by_length, both)
    yield from _periodic(by_length)
    yield from _once(both)


def _aborts(alone: Sequence[Sequence[Group]], mixed: Sequence[Group]) -> Iterator[Shape]:
    short, long = ([group[LWS].aborts for group in groups] for groups in alone)
    yield Shape(
        "C1: LWS aborts more the more sub-windows there are, and the shorter they are",
        all(_rises(line) for line in (short, long))
        and all(less < more for less, more in zip(long, short, strict=True)),
        f"1 s: {_shares(short)}; 5 s: {_shares(long)}",
    )
    yield Shape(
        "C1: LWS aborts about half at worst",
        0.4 <= max(short) <= 0.6,  # noqa: PLR2004
        f"{max(short):.0%}; {short[-2]:.0%} for the next smaller window",
        "a third or so while scans are shorter than the time between two slides, since what begins "
        "anew at a slide is then done before the next; longer ones are hit again and again",
    )
    most = max(group[TTU].aborts for groups in alone for group in groups)
    yield Shape(
        "C1: TTU aborts nothing", most == 0, f"{most:.2g}", "slides came without a read in between"
    )
    most = max(group[TTU].aborts for group in mixed)
    yield Shape(
        "C1: TTU aborts nothing with one-time queries, either",
        most == 0,
        "nothing" if most == 0 else f"one in {1 / most:,.0f}",
        "while a one-time query was first, more slides came than another had left to read",
    )


def _periodic(alone: Sequence[Sequence[Group]]) -> Iterator[Shape]:
    ends = [groups[-1] for groups in alone]
    yield Shape(
        "C2: answers are freshest with TTU, then LWS, then SERIAL and WS",
        all(
            in_order(groups, order, lambda f: f.staleness)
            for groups in alone
            for order in ((TTU, LWS, SERIAL), (LWS, WS))
        )
        and all(_is_same(group, SERIAL, WS, lambda f: f.staleness) for group in ends),
        _against(ends, lambda f: f.staleness, of=TTU),
    )
    yield Shape(
        "C2: staleness grows with the length of sub-windows",
        all(
            short[s].staleness < long[s].staleness
            for short, long in zip(*alone, strict=True)
            for s in Scheduler
        ),
        f"TTU, 5 s / 1 s {ends[1][TTU].staleness / ends[0][TTU].staleness:.1f}",
    )
    yield Shape(
        "C2: staleness grows with their number",
        all(
            _rises([group[s].staleness for group in groups]) for groups in alone for s in Scheduler
        ),
        f"WS, 1 s: {_seconds(group[WS].staleness for group in alone[0])}; "
        f"TTU: {_seconds(group[TTU].staleness for group in alone[0])}",
        "it does with SERIAL and WS; with TTU an answer is half a sub-window old on average, "
        "however many there are",
    )
    yield Shape(
        "C3: the time between answers is that of SERIAL with TTU and WS, and longest with LWS",
        all(
            in_order(groups, (by, LWS), lambda f: f.between)
            for groups in alone
            for by in (SERIAL, WS, TTU)
        )
        and all(
            _is_same(group, SERIAL, by, lambda f: f.between) for group in ends for by in (WS, TTU)
        ),
        _against(ends, lambda f: f.between, of=SERIAL),
    )
    # The cost of a step and of a test is ours, so that the first share says little.
    kept = [[group[TTU].throughput / group[SERIAL].throughput for group in g] for g in alone]
    lost = [[group[LWS].throughput / group[SERIAL].throughput for group in g] for g in alone]
    yield Shape(
        "C4: TTU gives nearly as many answers as SERIAL; LWS the fewer, the more sub-windows",
        all(share >= 0.9 for line in kept for share in line)  # noqa: PLR2004
        and all(_rises([-share for share in line]) for line in lost),
        f"TTU / SERIAL {min(map(min, kept)):.3f} at least; LWS / SERIAL, 1 s: {_shares(lost[0])}",
    )


def _once(mixed: Sequence[Group]) -> Iterator[Shape]:
    end = mixed[-1:]
    yield Shape(
        "C5: one-time queries answer soonest with TTU and WS, later with LWS, last with SERIAL",
        all(in_order(mixed, (by, LWS, SERIAL), lambda f: f.response) for by in (TTU, WS))
        and all(_is_same(group, TTU, WS, lambda f: f.response) for group in mixed)
        and all(_rises([group[s].response for group in mixed]) for s in Scheduler),
        _against(end, lambda f: f.response, of=TTU),
    )
    yield Shape(
        "C6: their answers are freshest with TTU, then LWS; WS and SERIAL come last",
        all(in_order(mixed, (TTU, LWS, by), lambda f: f.once_staleness) for by in (WS, SERIAL)),
        _against(end, lambda f: f.once_staleness, of=TTU),
    )
    yield Shape(
        "C7: answers of periodic queries are then still freshest with TTU",
        all(in_order(mixed, (TTU, by), lambda f: f.staleness) for by in (SERIAL, WS, LWS)),
        _against(end, lambda f: f.staleness, of=TTU),
    )


def _is_same(group: Group, one: Scheduler, other: Scheduler, measure: Measure) -> bool:
    return abs(measure(group[one]) / measure(group[other]) - 1) <= SAME


def _rises(line: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(line))


def _against(groups: Sequence[Group], measure: Measure, *, of: Scheduler) -> str:
    """By how much the others have more, in each group."""
    return "; ".join(
        f"{s.value} / {of.value} "
        + ", ".join(f"{measure(group[s]) / measure(group[of]):.2f}" for group in groups)
        for s in Scheduler
        if s is not of
    )


def _shares(line: Sequence[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in line)


def _seconds(times: Iterable[float]) -> str:
    return ", ".join(f"{time / 1000:.2f}" for time in times) + " s"
