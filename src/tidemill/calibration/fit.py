"""Constants from what was measured: the least squares of relative errors, without negative costs.

A sample says what was done, part by part, and how long it took; what a part costs is sought. Where
samples cannot tell two costs apart, both stay near what is assumed before. Errors are relative, so
a step of a millisecond counts as much as one of a second, and twice too much as much as half: the
square of an error is divided by what was measured and by what the last round expected. Those far
off weigh less.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Sample", "fitted"]

_REWEIGHTED: Final = 8
_FAR: Final = 10.0
_ROUNDS: Final = 500
_ENOUGH: Final = 1e-5
_PULL: Final = 1e-3
"""How much what is assumed counts, beside a sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured once.

    Attributes:
        done: How often each part of the work was done, by the name of its cost.
        took: How long all of it took.
    """

    done: Mapping[str, float]
    took: float


def fitted(samples: Sequence[Sample], assumed: Mapping[str, float]) -> dict[str, float]:
    """The costs that explain the samples best.

    Args:
        samples: What was measured.
        assumed: What is assumed of each cost before.

    >>> samples = [Sample({"call": 1, "row": rows}, 100 + 2 * rows) for rows in (0, 50, 1000)]
    >>> {name: round(cost) for name, cost in fitted(samples, {"call": 1, "row": 1}).items()}
    {'call': 100, 'row': 2}
    """
    costs = dict(assumed)
    used = [sample for sample in samples if sample.took > 0]
    for _ in range(_REWEIGHTED):
        costs = _solved([_weighed(sample, costs) for sample in used], costs, assumed)
    return costs


def _weighed(sample: Sample, costs: Mapping[str, float]) -> Sample:
    """The sample in the unit in which its error counts."""
    expected = sum(costs[name] * done for name, done in sample.done.items())
    ratio = min(max(expected / sample.took, 1 / _FAR), _FAR)
    unit = sample.took * sqrt(ratio) * sqrt(max(1.0, abs(log(ratio))))
    done = {name: done / unit for name, done in sample.done.items() if done}
    return Sample(done, sample.took / unit)


def _solved(
    samples: Sequence[Sample], begin: Mapping[str, float], assumed: Mapping[str, float]
) -> dict[str, float]:
    """The costs with the least squares."""
    costs = dict(begin)
    by_cost: dict[str, list[tuple[int, float]]] = {name: [] for name in costs}
    for number, sample in enumerate(samples):
        for name, weight in sample.done.items():
            by_cost[name].append((number, weight))
    # What is not explained yet of each sample.
    left = [s.took - sum(costs[name] * weight for name, weight in s.done.items()) for s in samples]
    for _ in range(_ROUNDS):
        most = 0.0
        for name, uses in by_cost.items():
            most = max(most, _improve(name, uses, costs, assumed, left))
        if most < _ENOUGH:
            break
    return costs


def _improve(
    name: str,
    uses: Sequence[tuple[int, float]],
    costs: dict[str, float],
    assumed: Mapping[str, float],
    left: list[float],
) -> float:
    """Give one cost its best value, as the others are; by which share of a sample that matters."""
    if not uses:
        return 0.0
    size = sum(weight * weight for _, weight in uses)
    pull = _PULL * size
    best = costs[name] + (
        sum(weight * left[number] for number, weight in uses) + pull * (assumed[name] - costs[name])
    ) / (size + pull)
    change = max(best, 0.0) - costs[name]
    costs[name] += change
    for number, weight in uses:
        left[number] -= change * weight
    return abs(change) * max(weight for _, weight in uses)
