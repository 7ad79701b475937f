"""What Zhu (E1 to E4) has found about join plans, and whether it is found here."""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from benchmarks.techniques.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.join_plans.at_random import Found
    from benchmarks.join_plans.engine import Run
    from benchmarks.join_plans.kinds import Rates
    from benchmarks.join_plans.settings import Course

__all__ = ["found_at_random", "found_in_time", "found_on_the_engine", "found_within_limits"]

_SAME = 0.05
_ENOUGH = 0.95
_NINE_OF_TEN = 0.9
_STEEP = 5.0
STRATEGIES = ("mjoin-init", "bjtree-init")


def found_in_time(courses: Mapping[int, Mapping[str, Course]]) -> Iterator[Shape]:
    """E1, in simulated time."""
    one, two, three, four = (courses[number] for number in (1, 2, 3, 4))
    yield Shape(
        "E1, setting 1: with enough of both, mjoin and binary tree are equally fast; nothing waits",
        _is_same(one["mjoin"].results, one["bjtree"].results)
        and one["mjoin"].waiting == one["bjtree"].waiting == 0,
        f"results {one['bjtree'].results / one['mjoin'].results:.2f} times, "
        f"waiting {one['bjtree'].waiting:.0f} and {one['mjoin'].waiting:.0f}",
    )
    yield Shape(
        "E1, setting 1: the tree keeps far more",
        one["bjtree"].state > 2 * one["mjoin"].state,
        f"{one['bjtree'].state:,.0f} rows and {one['mjoin'].state:,.0f}",
    )
    yield Shape(
        "E1, setting 2: with little CPU, the tree gives more than twice as many results",
        two["bjtree"].results > 2 * two["mjoin"].results,
        f"{two['bjtree'].results / two['mjoin'].results:.1f} times",
    )
    yield Shape(
        "E1, setting 2: rows wait for the mjoin, more and more, and for the tree they do not",
        two["mjoin"].rising and not two["bjtree"].rising,
        f"{two['mjoin'].waiting:,.0f} and {two['bjtree'].waiting:,.0f} in the end",
    )
    yield Shape(
        "E1, setting 3: with little memory, both give as much at first, but only the tree needs "
        "more than there is",
        _is_same(three["mjoin"].early, three["bjtree"].early)
        and three["mjoin"].over is None
        and three["bjtree"].over is not None,
        f"{three['bjtree'].state:,.0f} rows against {three['mjoin'].state:,.0f}, "
        f"over after {three['bjtree'].over or 0:.0f} s",
    )
    by_speed = [four[name].early for name in ("bjtree", "hybrid", "mjoin")]
    yield Shape(
        "E1, setting 4: with little of both, the tree is fastest and then over its memory; a "
        "hybrid never is, and is faster than the mjoin",
        all(a > b for a, b in pairwise(by_speed))
        and four["bjtree"].over is not None
        and four["hybrid"].over is None,
        "results in the first window, in millions: "
        + ", ".join(f"{results / 1e6:.0f}" for results in by_speed)
        + "; rows kept: "
        + ", ".join(f"{four[name].state:,.0f}" for name in ("bjtree", "hybrid", "mjoin")),
    )


def found_on_the_engine(runs: Mapping[int, Mapping[str, Run]]) -> Iterator[Shape]:
    """E1, where plans run."""
    shares = {n: of["bjtree"].state / of["mjoin"].state for n, of in runs.items()}
    times = {n: of["mjoin"].seconds / of["bjtree"].seconds for n, of in runs.items()}
    yield Shape(
        "E1 on this engine: the tree keeps more in all settings",
        min(shares.values()) > 1,
        ", ".join(f"{share:.1f}" for share in shares.values()) + " times",
    )
    yield Shape(
        "E1 on this engine: setting 2 is more than twice as fast with the tree",
        times[2] > 2,  # noqa: PLR2004 — twice
        "mjoin / tree, seconds: " + ", ".join(f"{share:.2f}" for share in times.values()),
        "values are searched, so a row costs what it matches and not what is kept; making the "
        "results, which are the same, is most of it",
    )


def found_at_random(found: Sequence[Found]) -> Iterator[Shape]:
    """E2 to E4."""
    known = [one for one in found if one.missed is not None]
    for name in STRATEGIES:
        least = min(known, key=lambda one: one.shares[name] / one.shares["all trees"])
        share = least.shares[name] / least.shares["all trees"]
        yield Shape(
            f"E2: {name} finds a plan nearly as often as a look at all trees does",
            share >= _ENOUGH,
            f"{share:.0%} of those there are at least, with {least.streams} streams",
            "limits are hit from both sides here: a plan between the two ends is missed",
        )
    missed = sum(one.missed or 0 for one in known)
    yield Shape(
        "Ours: best_tree finds a plan whenever there is one",
        missed == 0,
        f"{missed} missed",
        "it is a search as well",
    )
    yield from _times(found, known)
    first, last = found[0], found[-1]
    yield Shape(
        "E4: plans of mjoin-init keep less and cost more than those of bjtree-init",
        all(_or_one(one.memory) <= 1 <= _or_one(one.cpu) + 1e-9 for one in found[1:]),
        "memory "
        + ", ".join(f"{_or_one(one.memory):.2g}" for one in found)
        + "; CPU "
        + ", ".join(f"{_or_one(one.cpu):.3f}" for one in found),
        "mjoin-init goes on until its plan is qualified, and its plans cost as little",
    )
    yield Shape(
        "E4: the more streams, the further apart in memory",
        _or_one(last.memory) < _or_one(first.memory),
        f"{_or_one(first.memory):.2g} with {first.streams}, "
        f"{_or_one(last.memory):.2g} with {last.streams}",
    )
    yield Shape(
        "E4: the more streams, the further apart in CPU",
        _or_one(last.cpu) > max(_or_one(first.cpu), _or_one(found[1].cpu)),
        f"{_or_one(first.cpu):.3f} with {first.streams}, {_or_one(last.cpu):.3f} with "
        f"{last.streams}",
        "most of the cost is that of the last join, which makes the results, and is the same in "
        "both, as conditions of these selectivities let nearly everything through",
    )


def found_within_limits(kinds: Mapping[str, Rates]) -> Iterator[Shape]:
    """E2, where it is hard to keep to the limits."""
    least = min(min(one.mjoin, one.bjtree) for one in kinds.values())
    either = min(one.either for one in kinds.values())
    both = f"one of them {least:.0%} at least, one of the two {either:.0%}"
    yield Shape(
        "E2 with limits between what the best plans take: a strategy finds nearly all there are",
        least >= _ENOUGH,
        both,
        "a way from one end passes by plans that lie beside it; by drawn limits, as above, a plan "
        "is there if the mjoin or a tree that costs as much as it is one, and hardly otherwise",
    )
    ours = min(one.all_strategies for one in kinds.values())
    yield Shape(
        "Ours: best_tree, which goes several ways, finds nine of ten at least",
        ours >= _NINE_OF_TEN,
        f"{ours:.0%} at least",
    )


def _times(found: Sequence[Found], known: Sequence[Found]) -> Iterator[Shape]:
    """E3: how long searches take."""
    all_ = [one.milliseconds["all trees"] for one in known]
    growth = [b / a for a, b in pairwise(all_)]
    yield Shape(
        "E3: a look at all trees takes exponential time",
        all(times > 2 for times in growth),  # noqa: PLR2004 — doubles, at least
        "times for each stream more: " + ", ".join(f"{times:.1f}" for times in growth),
    )
    for name in STRATEGIES:
        first, last = found[0], found[-1]
        grown = last.milliseconds[name] / first.milliseconds[name]
        power = log(grown) / log(last.streams / first.streams)
        yield Shape(
            f"E3: {name} takes polynomial time",
            power <= _STEEP,
            f"about N to the {power:.1f}; {last.milliseconds[name]:.0f} ms with {last.streams}",
        )


def _is_same(one: float, other: float) -> bool:
    return abs(one / other - 1) <= _SAME


def _or_one(ratio: float | None) -> float:
    return 1.0 if ratio is None else ratio
