"""Golab's experiments: what orders cost, what happens as rounds get rarer, and what is lost then.

Costs are counted row by row (``golab.py``); the rounds are Δ, in instants. The settings are ours,
since those of the thesis cannot be read: streams that differ in values, in windows, in rates.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import correlation, fmean
from typing import TYPE_CHECKING, Final

from benchmarks.join_plans.golab import Streams, Technique, joined
from tidemill.optimizer.search.probe_orders import (
    InputStats,
    augmented_order,
    initial_order,
    order_cost,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BUCKETS",
    "ROUNDS",
    "WAYS",
    "Orders",
    "Way",
    "lagging",
    "lost",
    "orders",
    "rounds",
    "settings",
]

BUCKETS: Final = (1, 4, 20)
"""A window that is scanned, one of few parts, and one of many."""

ROUNDS: Final = (0, 5, 10, 20, 40, 80)
"""Δ: how often is removed, or joined; 0 is at once."""

_EVERY: Final = 20


@dataclass(frozen=True, slots=True)
class Way:
    """A way to join, as orders are compared in it."""

    technique: Technique
    every: int = 0
    buckets: int = 1


WAYS: Final = {
    "eager": Way(Technique.EAGER),
    "eager, lazy removal": Way(Technique.LAZY_EXPIRATION, _EVERY),
    "lazy": Way(Technique.LAZY, _EVERY),
    "lazy, restore": Way(Technique.RESTORE, _EVERY),
    "eager, hashed": Way(Technique.EAGER, 0, BUCKETS[1]),
}


def settings(rows: int, seed: int) -> dict[str, Streams]:
    """Four streams that differ in something."""
    even = (1.0,) * 4
    windows, values = (100, 200, 300, 400), (10, 20, 40, 80)
    return {
        "values": Streams(even, (200,) * 4, values, rows, seed),
        "windows": Streams(even, windows, (20,) * 4, rows, seed),
        "a fast stream": Streams((6.0, 1.0, 1.0, 1.0), (200,) * 4, (40, 20, 30, 10), rows, seed),
    }


@dataclass(frozen=True, slots=True)
class Orders:
    """What the orders of some streams cost.

    Attributes:
        predicted: What the cost model says, for each of them.
        counted: What they cost, by way.
        initial: What the order of the first heuristic costs eagerly, by the best order.
        augmented: What that of the second one does.
    """

    predicted: tuple[float, ...]
    counted: dict[str, tuple[int, ...]]
    initial: float
    augmented: float

    def agreement(self, way: str) -> float:
        """How well the ranks of a way are those that are predicted: 1, if they are the same."""
        return correlation(_ranks(self.predicted), _ranks(self.counted[way]))

    def spread(self, way: str | None = None) -> float:
        """By how much the worst order is dearer than the best; of what is predicted, for none."""
        costs = self.predicted if way is None else self.counted[way]
        return max(costs) / min(costs)


def orders(streams: Streams, seeds: int = 1) -> Orders:
    """What all orders cost, in each way, over some seeds."""
    every = list(permutations(range(len(streams.rates))))
    stats = _stats(streams)
    drawn = [replace(streams, seed=streams.seed + number) for number in range(seeds)]
    counted = {
        name: tuple(
            sum(
                joined(one, order, way.technique, every=way.every, buckets=way.buckets).cost
                for one in drawn
            )
            for order in every
        )
        for name, way in WAYS.items()
    }
    eagerly = dict(zip(every, counted["eager"], strict=True))
    best = min(eagerly.values())
    return Orders(
        tuple(order_cost(stats, order) * streams.rows * seeds for order in every),
        counted,
        eagerly[initial_order(stats)] / best,
        eagerly[augmented_order(stats)] / best,
    )


def _stats(streams: Streams) -> list[InputStats]:
    whole = sum(streams.rates)
    each = zip(streams.rates, streams.windows, streams.values, strict=True)
    return [InputStats(rate / whole, window, values) for rate, window, values in each]


def _ranks(numbers: Sequence[float]) -> list[float]:
    """The place of each number; equal ones share theirs."""
    placed = sorted(numbers)
    return [(bisect_left(placed, one) + bisect_right(placed, one)) / 2 for one in numbers]


def rounds(streams: Streams, order: Sequence[int]) -> dict[tuple[int, Technique], list[int]]:
    """What each way costs as rounds get rarer, by buckets; the first figure is eager."""
    found = {}
    for buckets in BUCKETS:
        first = joined(streams, order, Technique.EAGER, buckets=buckets).cost
        for way in (Technique.LAZY_EXPIRATION, Technique.LAZY, Technique.RESTORE):
            later = (joined(streams, order, way, every=e, buckets=buckets) for e in ROUNDS[1:])
            found[buckets, way] = [first, *(work.cost for work in later)]
    return found


def lost(shares: Sequence[float], window: int, rows: int, seeds: int) -> list[float]:
    """Which share of the results of two windows is lost, by Δ as a share of the window."""
    two = Streams((1.0, 1.0), (window, window), (10, 10), rows)
    of_seeds = [
        [_lost(replace(two, seed=s), round(x * window)) for x in shares] for s in range(seeds)
    ]
    return [fmean(of_share) for of_share in zip(*of_seeds, strict=True)]


def lagging(lags: Sequence[int], window: int, every: int, rows: int) -> list[float]:
    """The same if partners come so much later."""
    both = Streams((1.0, 1.0), (window, window), (1, 1), rows)
    return [_lost(replace(both, lag=lag), every) for lag in lags]


def _lost(streams: Streams, every: int) -> float:
    whole = joined(streams, (0, 1), Technique.EAGER).results
    return 1 - joined(streams, (0, 1), Technique.LAZY, every=every).results / whole
