"""The join graph: what is joined, how much there is of it, and what links it (Z20, Z24).

The inputs of a join are the vertices; a condition on two of them is an edge with a selectivity: the
share of pairs for which it is true. Where no edge is, all pairs match. Each input has a rate and a
window of its own; with one window ``W`` for all these are the formulas of Z20-Z22.

>>> graph = JoinGraph((100.0, 1.0, 10.0), (5.0, 5.0, 5.0), {(0, 1): 0.5, (1, 2): 0.1})
>>> graph.size(frozenset({0})), graph.size(frozenset({0, 1}))
(500.0, 1250.0)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    """

    rates: tuple[float, ...]
    windows: tuple[float, ...]
    selectivities: Mapping[tuple[int, int], float]
    standing: tuple[float, ...] = field(default=())

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
        return self.selectivities.get((min(one, other), max(one, other)), 1.0)

    def is_linked(self, one: int, other: int) -> bool:
        """Whether a condition links two inputs."""
        return (min(one, other), max(one, other)) in self.selectivities

    def size(self, inputs: Collection[int]) -> float:
        """How many combinations of some inputs there are at an instant: N(L) of Z20."""
        rows = prod(self._rows(number) for number in inputs)
        return rows * prod(self.selectivity(a, b) for a, b in combinations(sorted(inputs), 2))

    def _rows(self, number: int) -> float:
        standing = self.standing[number] if self.standing else 0.0
        return standing + self.rates[number] * self.windows[number]
