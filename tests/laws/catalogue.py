"""The catalogue that laws are tested over, and small random contents for it.

Streams S and T have the columns (a BIGINT, b VARCHAR), stream U has (c BIGINT NOT NULL); a relation
R and a temporal relation P have the columns of S. Values are few, so that rows meet; instants are
few, so that elements tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tidemill.algebra.lineage import Lineage
from tidemill.algebra.plan import Plan, Relation, Source, Validity
from tidemill.algebra.snapshot import Element, Reference, Row
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR, DataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn, SearchStrategy

    from tidemill.model.types import Value

__all__ = [
    "HORIZON",
    "LEAVES",
    "PAIR",
    "SOURCES",
    "VALUES",
    "Inputs",
    "P",
    "R",
    "S",
    "T",
    "U",
    "inputs",
]

LAST = 12
HORIZON = range(LAST + 8)
"""After it every window of the sizes drawn in ``strategies.py`` has seen all that comes."""

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
_PERIOD = Schema((*PAIR, Field("start", BIGINT), Field("end", BIGINT)))

S, T = Source("S", PAIR), Source("T", PAIR)
U = Source("U", Schema((Field("c", BIGINT, nullable=False),)))
R = Relation("R", PAIR)
P = Relation("P", _PERIOD, Validity("start", "end"))
SOURCES = (S, T, U)
LEAVES: tuple[Plan, ...] = (S, T, U, R, P)

VALUES: dict[DataType, tuple[Value, ...]] = {
    BIGINT: (None, 0, 1, 2),
    VARCHAR: (None, "x", "y"),
    DOUBLE: (None, 0.5, 1.0),
}


# Inputs


@dataclass(frozen=True, slots=True)
class Inputs:
    """Finite contents for the streams and relations of the catalogue."""

    streams: Mapping[str, tuple[Element, ...]]
    relations: Mapping[str, tuple[Row, ...]]

    def reference(self) -> Reference:
        """The evaluator for these inputs."""
        return Reference(self.streams, self.relations)

    def lineage(self) -> Lineage:
        """The judge of what rows are made of, for these inputs."""
        return Lineage(self.streams, self.relations)

    def until(self, time: int) -> Inputs:
        """What has been seen of the streams at an instant."""
        seen = {
            name: tuple(e for e in elements if e.time <= time)
            for name, elements in self.streams.items()
        }
        return Inputs(seen, self.relations)


def _rows(schema: Schema) -> list[Row]:
    choices = (
        [value for value in VALUES[field.type] if field.nullable or value is not None]
        for field in schema
    )
    return list(product(*choices))


# One draw an element, from a list of all there could be, is several times faster than a draw of
# every part of it.


@cache
def _streams(schema: Schema) -> SearchStrategy[tuple[Element, ...]]:
    """Elements in the order of their ids, which need not be that of their instants."""
    moments = st.sampled_from(list(product(range(LAST + 1), _rows(schema))))
    return st.lists(moments, max_size=8).map(
        lambda drawn: tuple(Element(time, i, row) for i, (time, row) in enumerate(drawn))
    )


def _periods() -> list[Row]:
    starts: list[int | None] = [None, *range(LAST + 1)]
    lengths: list[int | None] = [None, 1, 2, 3, 4]
    return [
        (*row, start, None if length is None else (start or 0) + length)
        for row, start, length in product(_rows(PAIR), starts, lengths)
    ]


_PERIODS = st.lists(st.sampled_from(_periods()), max_size=3).map(tuple)
_ROWS = st.lists(st.sampled_from(_rows(PAIR)), max_size=3).map(tuple)


@st.composite
def inputs(draw: DrawFn) -> Inputs:
    """Contents for the whole catalogue: duplicates, ties, NULLs, and nothing at all."""
    return Inputs(
        {source.name: draw(_streams(source.schema)) for source in SOURCES},
        {R.name: draw(_ROWS), P.name: draw(_PERIODS)},
    )
