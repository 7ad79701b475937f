"""Multiplicities: how often a row is in two bags, as set operations compare them.

The copies of a row on either side come at random and stay as long as elements do, so how many there
are is Poisson's; the sides have nothing to do with each other.

>>> even = compared(3.0, 3.0)
>>> round(even.more, 3), round(even.equal, 3), round(even.surplus, 3)
(0.417, 0.167, 0.956)
"""

from __future__ import annotations

from math import erf, exp, pi, sqrt
from typing import Final, NamedTuple

from tidemill.optimizer.characteristics import Triple

__all__ = ["Compared", "compared", "intersection", "maximum", "surplus"]

_MANY: Final = 50.0
"""Of so many copies the normal distribution says enough."""


class Compared(NamedTuple):
    """How the copies of a row on the left compare with those on the right.

    Attributes:
        more: The probability that there are more on the left.
        equal: That there are as many.
        surplus: How many more there are on the left, counted as 0 where there are fewer.
    """

    more: float
    equal: float
    surplus: float


def compared(left: float, right: float) -> Compared:
    """How copies compare of which so many are expected on either side."""
    if left > _MANY or right > _MANY:
        return _normal(left, right)
    ours, theirs = _poisson(left), _poisson(right)
    more = equal = surplus = 0.0
    fewer = weight = 0.0  # of the right: the probability of fewer than n, and their sum by number
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        more += own * fewer
        equal += own * other
        surplus += own * (number * fewer - weight)
        fewer += other
        weight += other * number
    return Compared(more, equal, surplus)


def surplus(left: Triple, right: Triple, rows: float) -> Triple:
    """EXCEPT ALL: each row as often as it is more often on the left.

    One more appears when a left one comes and there are no fewer on the left, and when a right one
    goes and there are more.
    """
    found = _of(left, right, rows)
    births = (found.more + found.equal) / left.distance + found.more / right.distance
    return _bag(left, right, births, found.surplus * rows)


def intersection(left: Triple, right: Triple, rows: float) -> Triple:
    """INTERSECT ALL: each row as often as it is on both sides."""
    found = _of(left, right, rows)
    fewer = 1 - found.more - found.equal
    births = fewer / left.distance + found.more / right.distance
    return _bag(left, right, births, max(left.size - found.surplus * rows, 0.0))


def maximum(left: Triple, right: Triple, rows: float) -> Triple:
    """Each row as often as it is on the side that has more of it."""
    found = _of(left, right, rows)
    births = (found.more + found.equal) / left.distance + (1 - found.more) / right.distance
    return _bag(left, right, births, right.size + found.surplus * rows)


def _of(left: Triple, right: Triple, rows: float) -> Compared:
    return compared(left.size / rows, right.size / rows)


def _bag(left: Triple, right: Triple, births: float, size: float) -> Triple:
    """So many elements at an instant, of which so many begin."""
    least = _NEVER / (left.distance + right.distance)
    births = max(births, least)
    granule = min(left.granule, right.granule)
    return Triple(1 / births, max(size / births, granule), granule)


_NEVER: Final = 1e-9


def _poisson(expected: float) -> list[float]:
    """The probabilities of 0, 1, 2, …, as far as they matter for any expectation below _MANY."""
    found = [exp(-expected)]
    for number in range(1, _TERMS):
        found.append(found[-1] * expected / number)
    return found


_TERMS: Final = 130


def _normal(left: float, right: float) -> Compared:
    mean, deviation = left - right, sqrt(left + right)
    far = mean / deviation
    above = (1 + erf(far / sqrt(2))) / 2
    density = exp(-far * far / 2) / sqrt(2 * pi)
    equal = density / deviation
    more = min(max(above - equal / 2, 0.0), 1 - equal)
    return Compared(more, equal, max(mean * above + deviation * density, 0.0))
