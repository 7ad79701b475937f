"""Output characteristics: how far apart and how long elements are that leave an operator (KB53).

A stream is described by three numbers in its own time (KB52): the mean distance of successive
starts, the mean length of validity, and the granule of which all times are multiples. Each function
gives those of the output from those of the inputs. Where the document prints a formula it is that
formula, with its number; what it leaves open is marked as ours and derived there.

Law: none about answers: these are means over rates that are steady, and of values that say nothing
about times. ``tests/optimizer/test_simulated_characteristics.py`` compares them with what the
operators give.

>>> aggregate(Triple(10, 600, 1)).distance
5.512...
"""

from __future__ import annotations

from math import exp, expm1, inf, log1p
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Triple",
    "advance",
    "aggregate",
    "changes",
    "coalesce",
    "covered_part",
    "covered_share",
    "difference",
    "distinct",
    "extreme",
    "granularity",
    "group",
    "group_at_random",
    "join",
    "matched",
    "partitioned_window",
    "presence",
    "project",
    "row_window",
    "select",
    "session_window",
    "signed",
    "split",
    "stretches",
    "time_window",
    "union",
]


class Triple(NamedTuple):
    """A stream in numbers, in one unit of time.

    Attributes:
        distance: How far the starts of successive elements are apart.
        length: How long an element is valid.
        granule: Of what all starts and ends are multiples.
    """

    distance: float
    length: float
    granule: float = 1.0

    @property
    def size(self) -> float:
        """How many elements are valid at an instant."""
        return self.length / self.distance


# As printed


def select(of: Triple, selectivity: float) -> Triple:
    """A filter, with the share of elements that are kept: 22.1; 22.2 for a share of 1."""
    assert 0 < selectivity <= 1, "a share of the elements, and not none"
    return of._replace(distance=of.distance / selectivity)


def project(of: Triple) -> Triple:
    """A map: 22.2."""
    return of


def union(inputs: Sequence[Triple]) -> Triple:
    """All elements of some streams: 22.3."""
    rate = sum(1 / one.distance for one in inputs)
    length = sum(one.length / one.distance for one in inputs) / rate
    return Triple(1 / rate, length, _common(inputs))


def join(left: Triple, right: Triple, selectivity: float = 1.0) -> Triple:
    """Pairs of elements, with the share that matches: 22.4, then 22.1."""
    both = left.length + right.length
    distance = left.distance * right.distance / (selectivity * both)
    return Triple(distance, left.length * right.length / both, _common([left, right]))


def distinct(of: Triple, rows: float) -> Triple:
    """Duplicate elimination that ends an element where its duplicate begins: 22.5.

    Args:
        of: The input.
        rows: How many different rows there are, all of them equally often.
    """
    return of._replace(length=min(rows * of.distance, of.length))


def aggregate(of: Triple, *, regular: bool = False) -> Triple:
    """A scalar aggregate, one result from each start or end to the next: 22.6.

    Args:
        of: The input.
        regular: Whether distances and lengths are constant and the length is a multiple of the
            distance, so that each start meets an end (remark 22.1).
    """
    return group(of, 1, regular=regular)


def group(of: Triple, groups: float, *, regular: bool = False) -> Triple:
    """An aggregate of groups that are equally frequent: 22.7; with one of them, 22.6."""
    within = groups * of.distance
    if within >= of.length:
        return of
    if regular:
        return of._replace(length=within)
    share = covered_share(of.granule / of.length, 2 * of.length / within)
    return of._replace(distance=of.granule / (groups * share), length=of.granule / share)


def split(of: Triple, most: float) -> Triple:
    """Elements cut so that none is longer than ``most``: 22.8."""
    if most >= of.length:
        return of
    return of._replace(distance=of.distance * most / of.length, length=most)


def granularity(of: Triple, granule: float) -> Triple:
    """Times rounded up to a coarser granule; what is valid at no multiple goes: 22.9."""
    if granule <= of.granule:
        return of
    if of.length >= granule:
        return of._replace(granule=granule)
    return Triple(of.distance * granule / of.length, granule, granule)


def time_window(of: Triple, size: float) -> Triple:
    """A time window that moves at every instant: 22.10."""
    return of._replace(length=size)


def row_window(of: Triple, rows: float) -> Triple:
    """A window of the last rows: 22.11."""
    return partitioned_window(of, rows, 1)


def partitioned_window(of: Triple, rows: float, groups: float) -> Triple:
    """A window of the last rows of each group: 22.12."""
    return of._replace(length=groups * rows * of.distance)


def covered_share(granule_share: float, events: float) -> float:
    """The share of instants that at least one of some events falls on (Cárdenas).

    Args:
        granule_share: How much of the time one instant is.
        events: How many events there are.
    """
    if granule_share >= 1:
        return 1.0
    return -expm1(events * log1p(-granule_share))


# Ours: what the document leaves open


def advance(of: Triple, size: float, slide: float) -> Triple:
    """A time window that moves every ``slide``.

    Starts and ends come together at the moves, so the granule becomes the distance of these. A
    window that moves by more than its size shows the elements of the last ``size`` before a move
    only, each until the next move.
    """
    granule = max(of.granule, slide)
    if slide > size:
        return Triple(of.distance * slide / size, slide, granule)
    return Triple(of.distance, size, granule)


def group_at_random(of: Triple, groups: float, *, chained: bool = False) -> Triple:
    """An aggregate of groups whose elements come at random, without a case distinction.

    A start begins a result, and an end does if the group has ``others``. With many elements in
    each group this is 22.7, with few ``of`` itself.

    Args:
        of: The input.
        groups: How many groups there are.
        chained: Whether an element begins where another one ends, as results of aggregates do.
    """
    within = groups * of.distance
    others = covered_part(of.length / within)
    events = of.length / within * (1 if chained else 1 + others)
    share = covered_part(events * of.granule / of.length)
    return of._replace(distance=of.granule / (groups * share), length=of.granule / share * others)


def stretches(of: Triple, rows: float, step: float = 0.0) -> Triple:
    """Duplicate elimination as this engine does it: a row is given for as long as it is known.

    A row's elements come at random, one every ``rows`` distances: ``age`` back, on average, is the
    last of them. A piece goes on, where it ends, with what is left of the latest element, if one is
    still valid, which is so unless none has come for a whole length. Otherwise the row is away
    until its next element, which is given in its whole length. Up to the end of a step, half a step
    later on average, more elements are known.
    """
    expected = of.length / (rows * of.distance)
    there = covered_part(expected)
    if there <= 0:
        return of
    # Of the last of them, given that there is one; the difference is lost where few are expected.
    few = expected < _FEW
    share = 1 / 2 - expected / 12 if few else 1 / expected - 1 / expm1(min(expected, _MANY))
    age = of.length * share
    length = of.length - there * age + min(step / 2, age)
    return of._replace(distance=length / (rows * there), length=length)


def presence(of: Triple, groups: float) -> Triple:
    """For how long a group has elements at all, which come at random.

    Groups appear when an element comes and there is none, with probability ``exp(-m)`` where ``m``
    elements are expected, and stay until the first pause as long as an element.
    """
    out = session_window(of, of.length, groups)
    return out._replace(distance=of.distance * exp(min(of.length / (groups * of.distance), _MANY)))


def coalesce(of: Triple, repeated: float, most: float) -> Triple:
    """Adjacent elements of equal rows merged, up to a length.

    Args:
        of: The input.
        repeated: With which probability an element is followed by an equal one.
        most: How long an element becomes at most.
    """
    merged = most if repeated >= 1 else min(most, of.length / (1 - repeated))
    length = max(merged, min(of.length, most))
    return of._replace(distance=of.distance * length / of.length, length=length)


def matched(left: Triple, covered: float, stretch: float) -> Triple:
    """A semi-join: the times at which a left element has partners.

    Args:
        left: The elements.
        covered: With which probability an element has partners at an instant.
        stretch: For how long there are some, from when there are until there are none.

    One that has none when it begins gets some whenever a stretch begins, and one begins every
    ``stretch / covered``.
    """
    begun = left.length * covered / stretch
    return _cut(left, covered + begun, covered)


def difference(left: Triple, covered: float, stretch: float) -> Triple:
    """A difference, and an anti-join: the times at which a left element has no partner.

    Stretches with partners end as often as they begin.
    """
    ended = left.length * covered / stretch
    return _cut(left, 1 - covered + ended, 1 - covered)


def _cut(of: Triple, pieces: float, share: float) -> Triple:
    """Elements of which so many pieces are left, which have a share of the time."""
    if pieces <= 0:
        return of._replace(distance=inf)
    length = max(of.length * share / pieces, of.granule)
    return of._replace(distance=of.distance / pieces, length=length)


def covered_part(expected: float) -> float:
    """The probability that something is there of which so many are expected."""
    return -expm1(-expected)


def changes(of: Triple) -> Triple:
    """ISTREAM and DSTREAM: each element once, for an instant."""
    return of._replace(length=of.granule)


def session_window(of: Triple, gap: float, groups: float) -> Triple:
    """A session window: an element stays until nothing of its group has come for the gap.

    Arrivals in a group are at random, ``between`` apart. The mean time until the first pause of
    ``gap``, from any arrival on, is ``between · (exp(gap / between) - 1)``.
    """
    between = groups * of.distance
    far = gap / between
    return of._replace(length=between * expm1(far) if far < _MANY else inf)


_FEW = 1e-4
_MANY = 500.0
"""A session of so many expected rows in a gap does not end in our lifetime."""


def extreme(of: Triple, groups: float) -> Triple:
    """An aggregate of groups that changes with the greatest or least value only.

    Of ``m`` values of a group each is the greatest with probability ``1 / m``: one of ``m`` that
    come, and one of ``m`` that go, changes the result.
    """
    within = groups * of.distance
    if within >= of.length:
        return of
    plain = group(of, groups)
    length = max(plain.length, of.length / 2)
    return of._replace(distance=length / groups, length=length)


def signed(of: Triple) -> float:
    """How far successive messages are apart in signed form: an element is two of them."""
    return of.distance if of.length == inf else of.distance / 2


def _common(inputs: Sequence[Triple]) -> float:
    """The granule of what is made of several streams: all of theirs are multiples of it."""
    return min(one.granule for one in inputs)
