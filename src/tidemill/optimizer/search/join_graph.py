"""The join graph: what is joined, how much there is of it, and what links it (Z20, Z24).

The inputs of a join are the vertices; a condition on two of them is an edge with a selectivity: the
share of pairs for which it is true. Where no edge is, all pairs match. Each input has a rate and a
window of its own; with one window ``W`` for all these are the formulas of Z20-Z22.

Inputs that must agree on one value form a class. Any two of them are linked, but not by themselves:
of three, the third agrees with both others as soon as it agrees with one. The values of an input
with few of them are taken as contained in those of one with more (G-35).

>>> graph = JoinGraph((100.0, 1.0, 10.0), (5.0, 5.0, 5.0), {(0, 1): 0.5, (1, 2): 0.1})
>>> graph.size(frozenset({0})), graph.size(frozenset({0, 1}))
(500.0, 1250.0)

Three inputs of 10 rows and 5 values each, which must agree: 10 * 10 / 5 * 10 / 5 combinations.

>>> agree = JoinGraph((1.0, 1.0, 1.0), (10.0, 10.0, 10.0), {}, classes=({0: 5.0, 1: 5.0, 2: 5.0},))
>>> agree.size({0, 1}), agree.size({0, 1, 2}), agree.selectivity(0, 2)
(20.0, 40.0, 0.2)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import inf, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidemill.optimizer.search.widths import Widths

__all__ = ["JoinGraph"]


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """What is joined.

    Attributes:
        rates: How many elements of each input come in a unit of time.
        windows: For how long an element of each input is valid, in that unit.
        selectivities: For two inputs, the lesser number first, the share of pairs that match; pairs
            that are not named are not linked, so all of theirs match.
        standing: How many rows of each input are there from the beginning; none if empty.
        classes: Inputs that must agree on one value, each with how many values it has.
        keys: Of edges, the share of pairs that equal keys find, before all of it is looked at.
        horizon: For how long rows that stand from the beginning have been there: they came once.
        widths: How wide rows are; ``None`` to count rows instead of bytes.
        counted: How many combinations there are of sets that were counted, each a bit mask; what
            is counted takes the place of what is estimated.
    """

    rates: tuple[float, ...]
    windows: tuple[float, ...]
    selectivities: Mapping[tuple[int, int], float]
    standing: tuple[float, ...] = field(default=())
    classes: tuple[Mapping[int, float], ...] = field(default=())
    keys: Mapping[tuple[int, int], float] = field(default_factory=dict)
    horizon: float = inf
    widths: Widths | None = None
    counted: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert len(self.rates) == len(self.windows), "each input has a rate and a window"
        assert len(self.standing) in (0, len(self.rates)), "all inputs or none have standing rows"
        for one, other in self.selectivities:
            assert 0 <= one < other < len(self.rates), "an edge links two inputs, in their order"

    @property
    def inputs(self) -> range:
        """The numbers of the inputs."""
        return range(len(self.rates))

    def selectivity(self, one: int, other: int) -> float:
        """The share of pairs of two inputs that match."""
        agree = prod(1 / max(c[one], c[other]) for c in self.classes if one in c and other in c)
        return self.selectivities.get((min(one, other), max(one, other)), 1.0) * agree

    def is_linked(self, one: int, other: int) -> bool:
        """Whether a condition links two inputs."""
        known = (min(one, other), max(one, other)) in self.selectivities
        return known or any(one in c and other in c for c in self.classes)

    def size(self, inputs: Collection[int]) -> float:
        """How many combinations of some inputs there are at an instant: N(L) of Z20."""
        rows = prod(self.rows(number) for number in inputs)
        pairs = combinations(sorted(inputs), 2)
        apart = prod(self.selectivities.get(pair, 1.0) for pair in pairs)
        return rows * apart * prod(_agreeing(class_, inputs) for class_ in self.classes)

    def rows(self, number: int) -> float:
        """How many rows of an input there are at an instant."""
        standing = self.standing[number] if self.standing else 0.0
        return standing + self.rates[number] * self.windows[number]


def _agreeing(class_: Mapping[int, float], inputs: Collection[int]) -> float:
    """The share of combinations that agree: the fewest values hold all that can be agreed on."""
    values = [class_[number] for number in inputs if number in class_]
    return min(values) / prod(values) if values else 1.0
