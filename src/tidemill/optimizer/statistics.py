"""Statistics: what is known of the elements on an edge when a query is planned.

An edge is described in the time of the stream (KB52): how far the starts of successive elements are
apart, for how long an element is valid, how coarse its times are. From these follow the rate and
how many elements are valid at an instant. All of it is an estimate: nothing here may change an
answer.

>>> bids = Edge(distance=1_000.0, length=60_000_000.0)
>>> bids.rate * 1_000_000, bids.size
(1000.0, 60000.0)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidemill.algebra.codec.values import Json

__all__ = ["NOTHING_KNOWN", "Edge", "Statistics", "read_statistics", "write_statistics"]


@dataclass(frozen=True, slots=True)
class Edge:
    """What is known of the elements on an edge.

    Attributes:
        distance: How many microseconds the starts of successive elements are apart, on average;
            infinite where none come any more.
        length: For how many microseconds an element is valid, on average.
        granule: The distance in microseconds of which all starts and ends are multiples.
        standing: How many rows are there besides, for as long as the query runs: those of
            relations.
        row_bytes: How many bytes an element takes.
        distinct: How many values a column has among the elements valid at an instant, by column.
        is_measured: Whether it was measured, or told by a hint; assumed otherwise.
        counted: How many elements there are that have these values; no more combinations of values
            than elements. Infinite if that is not known.
        widths: How many bytes a value takes, by column, if that is known; of others ``row_bytes``
            says it.
    """

    distance: float
    length: float = 1.0
    granule: float = 1.0
    standing: float = 0.0
    row_bytes: float = 64.0
    distinct: Mapping[str, float] = field(default_factory=dict)
    is_measured: bool = False
    counted: float = inf
    widths: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.distance > 0, "successive elements are apart, however little"
        assert self.length > 0, "an element is valid for an instant at least"

    @property
    def rate(self) -> float:
        """How many elements come in a microsecond of the stream's time."""
        return 1 / self.distance

    @property
    def size(self) -> float:
        """How many elements are valid at an instant."""
        return self.standing + self.length / self.distance


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known when a query is planned.

    Attributes:
        inputs: Of streams and relations, by name: elements as they come in, before any window.
        conditions: Which share of the rows, or of the pairs of rows, a condition is true of, by its
            canonical text over columns written ``"stream.column"``.
    """

    inputs: Mapping[str, Edge] = field(default_factory=dict)
    conditions: Mapping[str, float] = field(default_factory=dict)

    def about(self, names: Collection[str]) -> Statistics:
        """What is known of some streams and relations, and of conditions on these."""
        return Statistics(
            {name: edge for name, edge in self.inputs.items() if name in names},
            {
                text: share
                for text, share in self.conditions.items()
                if any(f"{name}." in text for name in names)
            },
        )


NOTHING_KNOWN = Statistics()
"""Everything is assumed."""

_UNBOUNDED = ("distance", "counted")
"""What may be infinite, which ``json`` cannot say."""


def write_statistics(statistics: Statistics) -> Json:
    """Statistics, for ``json``."""
    return {
        "inputs": {name: _write_edge(edge) for name, edge in statistics.inputs.items()},
        "conditions": dict(statistics.conditions),
    }


def read_statistics(written: Json) -> Statistics:
    """The statistics that were written.

    Raises:
        TypeError: They are something else.

    >>> known = Statistics({"bid": Edge(5.0, distinct={"auction": 7.0})}, {"price > 5": 0.1})
    >>> read_statistics(write_statistics(known)) == known
    True
    """
    inputs = {name: _read_edge(edge) for name, edge in written["inputs"].items()}
    return Statistics(inputs, dict(written["conditions"]))


def _write_edge(edge: Edge) -> Json:
    written = asdict(edge)
    return {**written, **{name: None for name in _UNBOUNDED if written[name] == inf}}


def _read_edge(written: Json) -> Edge:
    return Edge(**{**written, **{name: inf for name in _UNBOUNDED if written.get(name) is None}})
