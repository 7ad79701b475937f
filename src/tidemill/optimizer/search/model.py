"""The model: how many rows sets of inputs give, and what a step of probing costs (Z20).

    N(L) = product of the rows of L · product of the selectivities inside L
    turnover(L) = sum of rate / rows over L        results that L gives: N(L) · turnover(L)

Inputs of a class must agree on a value: between two sets of them it has the share 1 / max(v, w),
where v and w are how many values are left in each.

With one window ``W`` for all, turnover(L) is |L| / W. Of the results that come because of a new row
of the part c, N(P) · turnover(c) get to a step whose prefix is P; this is all that is needed of
rates. Sets are bit masks. Numbers are kept as logarithms, since 64 inputs give products that no
float can hold; a number is cut off where it means nothing any more.
"""

from __future__ import annotations

from itertools import combinations, product
from math import exp, floor, log, log10, prod
from typing import TYPE_CHECKING

from tidemill.optimizer.charges import looked_at
from tidemill.optimizer.search.costs import Counting, Purge
from tidemill.physical.joining.tree import bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidemill.optimizer.search.costs import Costs
    from tidemill.optimizer.search.join_graph import JoinGraph

__all__ = ["Model", "alike"]

_MOST = 460.0
"""The logarithm of the greatest number: about 1e200."""
_FEWEST, _MOST_ROWS = 1e-30, 1e15
"""An empty input has so few rows, one that keeps everything so many."""
_TWO = 2
_DIGITS = 9
"""To how many digits costs are compared: what differs by less is rounding, and a tie."""


def alike(number: float) -> float:
    """A number without the digits that rounding has made: equal for costs that are equal.

    >>> alike(0.1 + 0.2) == alike(0.3), alike(1.0) == alike(1.000001)
    (True, False)
    """
    if number == 0 or abs(number) > exp(_MOST):
        return number
    return round(number, _DIGITS - floor(log10(abs(number))))


class Model:
    """The sizes and steps of a join graph with costs; what is computed once is kept."""

    def __init__(self, graph: JoinGraph, costs: Costs) -> None:
        self.graph = graph
        self.costs = costs
        rows = [min(max(graph.rows(i), _FEWEST), _MOST_ROWS) for i in graph.inputs]
        self._turnover = [rate / number for rate, number in zip(graph.rates, rows, strict=True)]
        self._turnovers: dict[int, float] = {}
        standing = graph.standing or (0.0,) * len(rows)
        self._stood = [one / number for one, number in zip(standing, rows, strict=True)]
        self._widths: dict[int, float] = {}
        self._logs = {1 << i: log(number) for i, number in enumerate(rows)}
        counted = {mask: log(max(size, _FEWEST)) for mask, size in graph.counted.items()}
        self._logs |= {mask: size for mask, size in counted.items() if mask.bit_count() > 1}
        self._edges: list[dict[int, float]] = [{} for _ in rows]
        self._apart = [0 for _ in rows]
        for (one, other), share in graph.selectivities.items():
            self._edges[one][other] = self._edges[other][one] = log(max(share, _FEWEST))
            self._apart[one] |= 1 << other
            self._apart[other] |= 1 << one
        self._keys = {edge: log(max(share, _FEWEST)) for edge, share in graph.keys.items()}
        self._classes = [_Class(class_) for class_ in graph.classes]
        self._links = list(self._apart)
        for class_ in self._classes:
            for i in bits(class_.mask):
                self._links[i] |= class_.mask & ~(1 << i)

    @property
    def everything(self) -> int:
        """All inputs."""
        return (1 << len(self._links)) - 1

    def neighbours(self, mask: int) -> int:
        """The inputs outside of a set that a condition links to one inside."""
        found = 0
        for one in bits(mask):
            found |= self._links[one]
        return found & ~mask

    def is_linked(self, one: int, other: int) -> bool:
        """Whether a condition links two sets."""
        few, many = (one, other) if one.bit_count() <= other.bit_count() else (other, one)
        return any(self._links[i] & many for i in bits(few))

    def is_held(self, parts: Sequence[int]) -> bool:
        """Whether conditions hold all of some sets together."""
        return _is_held(parts, self.is_linked)

    def is_held_by_keys(self, parts: Sequence[int]) -> bool:
        """Whether equal keys do."""
        return _is_held(parts, self.is_keyed)

    def meet(self, parts: Sequence[int]) -> bool:
        """Whether all parts agree on the same values, or no two of them on any.

        Rows meet by all values that two parts agree on, so where there is one of some parts only,
        these would have to meet before the others.
        """
        shared = [sum(1 for part in parts if class_.mask & part) for class_ in self._classes]
        if not all(count < _TWO or count == len(parts) for count in shared):
            return False
        return not any(
            self._crosses(edge, one, other)
            for edge in self._keys
            for one, other in combinations(parts, _TWO)
        )

    def components(self) -> Iterator[int]:
        """The sets that conditions hold together."""
        left = self.everything
        while left:
            found, ahead = 0, left & -left
            while ahead:
                found |= ahead
                ahead = self.neighbours(found)
            yield found
            left &= ~found

    def log_crossing(self, one: int, other: int) -> float:
        """The logarithm of the share of pairs of two sets that match."""
        few, many = (one, other) if one.bit_count() <= other.bit_count() else (other, one)
        found = 0.0
        for i in bits(few):
            edges, ends = self._edges[i], self._apart[i] & many
            while ends:
                low = ends & -ends
                found += edges[low.bit_length() - 1]
                ends ^= low
        for class_ in self._classes:
            if class_.mask & one and class_.mask & other:
                found -= max(class_.values(one), class_.values(other))
        return found

    def log_joined(self, one: int, other: int) -> float:
        """The logarithm of the size of two sets together."""
        both = one | other
        if both not in self._logs:
            sides = self.log_size(one) + self.log_size(other)
            self._logs[both] = sides + self.log_crossing(one, other)
        return self._logs[both]

    def log_size(self, mask: int) -> float:
        """The logarithm of N(L)."""
        if mask not in self._logs:
            low = mask & -mask
            self.log_joined(low, mask ^ low)
        return self._logs[mask]

    def size(self, mask: int) -> float:
        """How many combinations of a set there are at an instant: N(L)."""
        return exp(min(self.log_size(mask), _MOST))

    def stored(self, mask: int) -> float:
        """How many rows the state of a set has, those included that match nothing any more."""
        match self.costs.purge:
            case Purge.MIN:
                return self.size(mask)
            case Purge.MAX:
                return self.size(mask) * mask.bit_count()

    def held(self, mask: int) -> float:
        """How much memory the state of a set takes: in bytes, or in rows."""
        widths = self.graph.widths
        if widths is None:
            return self.stored(mask)
        if mask not in self._widths:
            self._widths[mask] = widths.of(mask)
        return self.stored(mask) * self._widths[mask]

    def width(self, mask: int) -> float:
        """How wide the rows of a set are."""
        widths = self.graph.widths
        if mask not in self._widths:
            self._widths[mask] = 0.0 if widths is None else widths.of(mask)
        return self._widths[mask]

    def turnover(self, mask: int) -> float:
        """How many times in a unit of time the combinations of a set are replaced.

        Those of rows that stand are made once, in all the time that there is.
        """
        if mask not in self._turnovers:
            stood = prod(self._stood[i] for i in bits(mask)) / self.graph.horizon
            self._turnovers[mask] = sum(self._turnover[i] for i in bits(mask)) + stood
        return self._turnovers[mask]

    def rate(self, mask: int) -> float:
        """How many combinations of a set come in a unit of time."""
        return self.size(mask) * self.turnover(mask)

    def look_up(self, prefix: int, part: int) -> tuple[float, float]:
        """What a row of a prefix finds in a part: how many matches (T of Z24), at what cost (C)."""
        found = exp(min(self.log_joined(prefix, part) - self.log_size(prefix), _MOST))
        costs = self.costs
        match costs.counting:
            case Counting.MATCHES:
                compared = found
            case Counting.PAIRS:
                compared = self.stored(part)
            case Counting.BUCKETS:
                compared = max(self.stored(part) / self._buckets(prefix, part), found)
            case Counting.KEYS:
                compared = exp(min(self.log_size(part) + self._log_keyed(prefix, part), _MOST))
        return found, costs.compare * compared + costs.output * found

    def is_keyed(self, one: int, other: int) -> bool:
        """Whether rows of one set are looked up by key in another one."""
        if any(class_.mask & one and class_.mask & other for class_ in self._classes):
            return True
        return any(self._crosses(edge, one, other) for edge in self._keys)

    def agrees(self, part: int, parts: Sequence[int]) -> bool:
        """Whether a value that holds a part together is one that it must agree on with others."""
        return any(
            (class_.mask & part).bit_count() > 1
            and any(class_.mask & other for other in parts if other != part)
            for class_ in self._classes
        )

    def scanned(self, root: int, found: float, prefix: int, part: int) -> float:
        """How many rows of a part are gone through when so many of a prefix look for partners."""
        engine = self.costs.engine
        if engine is None:
            return 0.0
        rounds = min(engine.rounds, self.rate(root))
        return looked_at(rounds, found, self.stored(part), keyed=self.is_keyed(prefix, part))

    def _log_keyed(self, one: int, other: int) -> float:
        """The logarithm of the share of pairs of two sets that have equal keys."""
        if one | other in self.graph.counted:
            return self.log_joined(one, other) - self.log_size(one) - self.log_size(other)
        found = sum(share for edge, share in self._keys.items() if self._crosses(edge, one, other))
        for class_ in self._classes:
            if class_.mask & one and class_.mask & other:
                found -= max(class_.values(one), class_.values(other))
        return found

    def _crosses(self, edge: tuple[int, int], one: int, other: int) -> bool:
        start, end = 1 << edge[0], 1 << edge[1]
        return bool((start & one and end & other) or (end & one and start & other))

    def _buckets(self, one: int, other: int) -> float:
        """Into how many buckets a state is hashed by all conditions that link two sets."""
        found = prod(self._hashed(i, j) for i in bits(one) for j in bits(self._apart[i] & other))
        for class_ in self._classes:
            pairs = product(bits(class_.mask & one), bits(class_.mask & other))
            found *= max((self._hashed(i, j) for i, j in pairs), default=1.0)
        return found

    def _hashed(self, one: int, other: int) -> float:
        return self.costs.buckets.get((min(one, other), max(one, other)), 1.0)


def _is_held(parts: Sequence[int], are_held: Callable[[int, int], bool]) -> bool:
    """Whether some sets are held together."""
    reached, left = parts[0], list(parts[1:])
    while left:
        beside = [part for part in left if are_held(reached, part)]
        if not beside:
            return False
        for part in beside:
            reached |= part
            left.remove(part)
    return True


class _Class:
    """Inputs that must agree on a value: of two sets, the fewer values are among the others."""

    def __init__(self, values: Mapping[int, float]) -> None:
        self.mask = sum(1 << i for i in values)
        self._least = {1 << i: log(max(number, 1.0)) for i, number in values.items()}

    def values(self, mask: int) -> float:
        """The logarithm of how many values are left in a set, of which some are in the class."""
        inside = mask & self.mask
        if inside not in self._least:
            self._least[inside] = min(self._least[1 << i] for i in bits(inside))
        return self._least[inside]
