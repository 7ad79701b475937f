"""In which order the inputs of a join of many probe each other: the cost, and what to choose.

The setting is an equi-join of windows on one common value (G-35, G-36). A global order of the
inputs gives each its order of probing: the others, in the global order. The cost is the number of
rows compared in a unit of time; values are taken as uniform, and the values of an input with few
of them as contained in those of one with more.

Trying all orders costs n!, which is little for few inputs. The heuristics try fewer and give no
promise but one: the augmented one never chooses an order that is dearer than the initial one.
Measured on 15 000 random joins of two to five windows (rates 1 to 50, lengths 50 to 200, 50 to 500
values), the augmented order costs 1.8 times the best or less in 99 of 100 cases, and 5.5 times at
worst. Where one input has very few values and another very many, or some are hashed and some are
not, it can be a hundred times dearer: the pair with the fewest results need not be cheap to probe.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice, permutations, product
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "InputStats",
    "augmented_order",
    "best_order",
    "fast_inputs",
    "initial_order",
    "order_cost",
    "probe_cost",
    "probe_orders",
]

_FAST = 2.0
"""How many times the median rate makes an input a fast one."""

_EXHAUSTIVE_INPUTS = 6
"""Of how many inputs all orders are looked at."""

_BUDGET = 64
"""Of how many orders the augmented one is chosen."""


@dataclass(frozen=True, slots=True)
class InputStats:
    """What is known of an input.

    Attributes:
        rate: How many elements come in a unit of time.
        window: How long an element is valid, in that unit.
        distinct: How many values there are in the window.
        buckets: Into how many parts the values are hashed; with 1 the whole window is scanned.
    """

    rate: float
    window: float
    distinct: float
    buckets: float = 1

    def __post_init__(self) -> None:
        assert min(self.rate, self.window) >= 0, "neither a rate nor a window is negative"
        assert min(self.distinct, self.buckets) >= 1, "there is one value and one bucket at least"

    @property
    def size(self) -> float:
        """How many elements are in the window."""
        return self.rate * self.window

    @property
    def scan(self) -> float:
        """How many of them a look-up compares."""
        return self.size / self.buckets


def probe_orders(global_order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each input, the others in the global order.

    >>> probe_orders([2, 0, 1])
    ((2, 1), (2, 0), (0, 1))
    """
    ports = range(len(global_order))
    assert sorted(global_order) == list(ports), "an order has every input once"
    return tuple(tuple(other for other in global_order if other != port) for port in ports)


def probe_cost(stats: Sequence[InputStats], port: int, order: Sequence[int]) -> float:
    """How many rows an input's elements compare in a unit of time, probing in an order."""
    cost, found, distinct = 0.0, stats[port].rate, stats[port].distinct
    for other in order:
        cost += found * stats[other].scan
        found *= stats[other].size / max(distinct, stats[other].distinct)
        distinct = min(distinct, stats[other].distinct)
    return cost


def order_cost(stats: Sequence[InputStats], global_order: Sequence[int]) -> float:
    """How many rows are compared in a unit of time: the sum over all inputs."""
    orders = probe_orders(global_order)
    return sum(probe_cost(stats, port, order) for port, order in enumerate(orders))


def best_order(stats: Sequence[InputStats], *, most: int = _EXHAUSTIVE_INPUTS) -> tuple[int, ...]:
    """The cheapest of all orders of up to ``most`` inputs; of more, the augmented order."""
    if len(stats) > most:
        return augmented_order(stats)
    return min(permutations(range(len(stats))), key=lambda order: order_cost(stats, order))


def initial_order(stats: Sequence[InputStats]) -> tuple[int, ...]:
    """The inputs by selectivity: first the pair that gives least, then what adds least.

    Of the pair, that one comes first that makes the whole cheaper. Where all have equally many
    values, the order is by the size of what is scanned.
    """
    left = set(range(len(stats)))
    if len({one.distinct for one in stats}) <= 1:
        return tuple(sorted(left, key=lambda port: (stats[port].scan, port)))
    pairs = combinations(left, 2)
    one, other = min(pairs, key=lambda pair: (_results(stats[pair[0]], stats[pair[1]]), pair))
    both = [_continued(stats, pair) for pair in ((one, other), (other, one))]
    return min(both, key=lambda order: order_cost(stats, order))


def augmented_order(
    stats: Sequence[InputStats], *, budget: int = _BUDGET, factor: float = _FAST
) -> tuple[int, ...]:
    """The cheapest of the initial order and of those with fast inputs moved up.

    The elements of a fast input probe most often, and early in the order it stays out of the inner
    loops of the others. All the way up is not always best, so each place is tried, with several
    fast inputs each combination of places.

    Args:
        stats: What is known of the inputs.
        budget: How many orders are looked at, at most; the initial one is the first.
        factor: How many times the median rate makes an input a fast one.
    """
    assert budget >= 1, "the initial order is always looked at"
    orders = islice(_moved_up(initial_order(stats), fast_inputs(stats, factor)), budget)
    return min(orders, key=lambda order: order_cost(stats, order))


def fast_inputs(stats: Sequence[InputStats], factor: float = _FAST) -> tuple[int, ...]:
    """The inputs whose rate is clearly above the median, fastest first."""
    middle = median(one.rate for one in stats)
    fast = [port for port, one in enumerate(stats) if one.rate > factor * middle]
    return tuple(sorted(fast, key=lambda port: (-stats[port].rate, port)))


def _moved_up(order: tuple[int, ...], fast: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The order itself, then those with fast inputs at places further up."""
    for places in product(*(range(order.index(port), -1, -1) for port in fast)):
        moved = list(order)
        for port, place in zip(fast, places, strict=True):
            moved.remove(port)
            moved.insert(place, port)
        yield tuple(moved)


def _results(one: InputStats, other: InputStats) -> float:
    """How many results a pair of inputs has."""
    return one.size * _growth(other, one.distinct)


def _continued(stats: Sequence[InputStats], pair: tuple[int, int]) -> tuple[int, ...]:
    """A pair of inputs, then always the one that adds least to the results."""
    order, left = list(pair), set(range(len(stats))) - set(pair)
    distinct = min(stats[port].distinct for port in pair)
    while left:
        found = min(left, key=lambda port: (_growth(stats[port], distinct), stats[port].scan, port))
        order.append(found)
        left.remove(found)
        distinct = min(distinct, stats[found].distinct)
    return tuple(order)


def _growth(stats: InputStats, distinct: float) -> float:
    """By what an input multiplies the results of those before it."""
    return stats.size / max(distinct, stats.distinct)
