"""What flows out of a part of a plan, as it is estimated, and what the part does for it.

Everything is by microsecond of the stream's time, as in ``Edge``. An edge describes elements, in
either form: in signed form an element is one message, or two if it ends within the horizon.

Time lags behind operators that hold back what has not ended: ``lag`` is how far the watermark of
what leaves is behind the latest time, and ``delay`` how long after its start an element leaves, on
average; it is negative for elements that begin in the future.

Law: whatever is believed of inputs, every figure is a number and not negative. What is beyond
``MOST`` is taken as ``MOST``, so that products of some figures are numbers as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final

from tidemill.model.types import Kind
from tidemill.optimizer.characteristics import Triple
from tidemill.optimizer.selectivity import VALUES, Columns, seen, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType
    from tidemill.optimizer.estimates.joined import Joined
    from tidemill.optimizer.statistics import Edge

__all__ = [
    "MOST",
    "PACE",
    "Flow",
    "Pace",
    "Work",
    "bounded",
    "never",
    "row_width",
    "shaped",
    "width",
    "width_of",
]

MOST: Final = 1e30
"""Of nothing is there more, and nothing is further apart without being infinitely far."""

_WIDEST: Final = 1e9
"""No row takes more bytes."""

_WIDTHS: Final = {
    Kind.NULL: 1.0,
    Kind.BOOLEAN: 1.0,
    Kind.INTEGER: 4.0,
    Kind.BIGINT: 8.0,
    Kind.DECIMAL: 16.0,
    Kind.DOUBLE: 8.0,
    Kind.VARCHAR: 24.0,
    Kind.DATE: 4.0,
    Kind.TIMESTAMP: 8.0,
}
_MICROSECONDS: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How a plan is run.

    Attributes:
        step: How many seconds of the stream's time a step takes in.
        partitions: How many partitions there are.
        horizon: For how many seconds what stays for ever has been coming.
    """

    step: float = 1.0
    partitions: int = 1
    horizon: float = 86_400.0

    def __post_init__(self) -> None:
        assert self.step > 0, "a step takes something in"
        assert self.partitions >= 1, "there is a partition"
        assert self.horizon > 0, "a query has run for a while"

    @property
    def steps(self) -> float:
        """How many steps there are in a microsecond."""
        return 1 / (self.step * _MICROSECONDS)

    @property
    def for_ever(self) -> float:
        """For how many microseconds what stays for ever is counted."""
        return self.horizon * _MICROSECONDS


PACE = Pace()
"""A step each second, in one partition, for a day."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What leaves a part.

    Attributes:
        edge: The elements.
        pace: How the plan is run.
        origins: Where columns come from, as ``"stream.column"``.
        conditions: What has been measured of conditions.
        is_signed: Whether elements appear and are withdrawn.
        is_ahead: Whether a withdrawal is told when the row appears.
        is_chained: Whether an element begins where another one ends, as results of aggregates do.
        groups: Of how many groups elements are results, at an instant, before some are filtered.
        repeats: With which probability an element is known to be followed by an equal one, since
            what makes it cuts it.
        lag: How far the watermark is behind.
        delay: How long after its start an element leaves.
        weight: How many bytes rows take, as a multiple of what their types say, where it is not
            known of columns.
        widths: How many bytes a value takes, by where it comes from.
        joined: What elements are made of, if they are those of a join.
    """

    edge: Edge
    pace: Pace
    origins: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, float] = field(default_factory=dict)
    is_signed: bool = False
    is_ahead: bool = False
    is_chained: bool = False
    groups: float = 0.0
    repeats: float = 0.0
    lag: float = 0.0
    delay: float = 0.0
    weight: float = 1.0
    widths: Mapping[str, float] = field(default_factory=dict)
    joined: Joined | None = None

    @property
    def lasts(self) -> bool:
        """Whether elements stay for as long as the query runs."""
        return self.edge.length >= self.pace.for_ever

    @property
    def rows(self) -> float:
        """How many rows leave in a microsecond, messages in signed form."""
        return self.edge.rate * (2 if self.is_signed and not self.lasts else 1)

    @property
    def begun(self) -> float:
        """How many elements begin in a microsecond: those that stand began once, on average."""
        return self.edge.rate + self.edge.standing / self.pace.for_ever

    @property
    def passed(self) -> float:
        """How many rows leave in a microsecond, those included that have stood from the start."""
        return self.rows + self.edge.standing / self.pace.for_ever

    @property
    def in_step(self) -> float:
        """How many rows leave in a step."""
        return self.rows / self.pace.steps

    @property
    def triple(self) -> Triple:
        """The elements, in three numbers."""
        return Triple(self.edge.distance, self.edge.length, self.edge.granule)

    @property
    def columns(self) -> Columns:
        """What is known of the columns."""
        return Columns(self.edge.distinct, self.origins, self.conditions)

    def values(self, exprs: Iterable[Expr]) -> float:
        """How many combinations of values some expressions have."""
        every = list(exprs)
        if self.joined is not None:
            return self.joined.combinations(every, self._product, present=False)
        return min(self._product(every), self.edge.counted)

    def _product(self, exprs: Sequence[Expr]) -> float:
        found = 1.0
        for expr in exprs:
            found *= values_of(expr, self.columns)
        return min(found, MOST)

    def together(self, keys: Sequence[Expr]) -> float:
        """How many elements of a group begin at one instant, on average."""
        return 1.0 if self.joined is None else self.joined.together(keys, self.values)

    def present(self, exprs: Iterable[Expr]) -> float:
        """How many combinations of values there are at an instant."""
        every, edge = list(exprs), self.edge
        if self.joined is None:
            return seen(self.values(every), edge.size)
        coming = (edge.size - edge.standing) / self.together(every)
        found = seen(self.values(every), edge.standing + coming)
        return min(found, self.joined.combinations(every, self._product, present=True))

    def different(self, schema: Schema) -> float:
        """How many different rows there are, at any time."""
        found = 1.0
        for one in schema:
            found *= max(1.0, self.edge.distinct.get(one.name, VALUES))
        is_numbered = any(self.edge.distinct.get(one.name) == inf for one in schema)
        return inf if is_numbered else min(found, self.edge.counted, MOST)

    def width(self, column: str) -> float | None:
        """How many bytes a value of a column takes, if that is known."""
        origin = self.origins.get(column)
        return None if origin is None else self.widths.get(origin)

    def waiting(self, lag: float) -> float:
        """How many elements have come and are not due, if the watermark is so far behind."""
        return self.edge.rate * max(lag - self.delay, 0.0)

    def pending(self, lag: float) -> float:
        """How many rows have come and are not due: those that wait, and withdrawals ahead."""
        ahead = self.is_ahead and not self.lasts
        ends = self.edge.rate * max(self.edge.length + lag - self.delay, 0.0) if ahead else 0.0
        return self.waiting(lag) + ends

    def kept(self, lag: float) -> float:
        """How many elements are remembered that are kept until the watermark has reached their end.

        One that leaves when it ends is kept for as long as the watermark is behind.
        """
        stays = max(self.edge.length + lag - self.delay, 0.0)
        return self.edge.standing + self.edge.rate * stays


@dataclass(frozen=True, slots=True)
class Work:
    """What a part does in a microsecond, and what it remembers.

    Attributes:
        flow: What leaves it.
        taken: How many rows come in.
        state: How many rows it remembers, by table.
        compared: How many pairs of rows are compared.
        scanned: How many rows of state are looked at.
        values: Of how many arguments an aggregate remembers the values, or some of them.
        widths: How many bytes a value takes, by the column of a table, as far as that is known.
        rounds: How often it does what a call is charged for, whenever it is called.
        inner: How many rows it makes and takes in itself, on the way to what leaves.
    """

    flow: Flow
    taken: float = 0.0
    state: Mapping[str, float] = field(default_factory=dict)
    compared: float = 0.0
    scanned: float = 0.0
    values: int = 0
    widths: Mapping[str, float] = field(default_factory=dict)
    rounds: float = 1.0
    inner: float = 0.0

    @property
    def given(self) -> float:
        """How many rows leave."""
        return self.flow.passed


def shaped(flow: Flow, triple: Triple) -> Flow:
    """The flow with other distances and lengths; a length that has no end is the horizon's.

    How elements are made of those of joins, which had their own, is not followed further.
    """
    length = max(min(triple.length, flow.pace.for_ever), 1.0)
    edge = replace(
        flow.edge, distance=triple.distance, length=length, granule=max(triple.granule, 1.0)
    )
    return replace(flow, edge=edge, joined=None)


def bounded(edge: Edge, pace: Pace) -> Edge:
    """The same elements in numbers that can be computed with; what is one already stays."""
    last = max(pace.for_ever, 1.0)
    distance = edge.distance
    return replace(
        edge,
        distance=inf if distance > MOST else max(distance, 1 / MOST),
        length=min(max(edge.length, 1.0), last),
        granule=min(max(edge.granule, 1.0), last),
        counted=max(edge.counted, 1.0),
        standing=min(max(edge.standing, 0.0), MOST),
        row_bytes=min(max(edge.row_bytes, 1.0), _WIDEST),
    )


def never(flow: Flow) -> Flow:
    """The flow without its elements."""
    return replace(flow, edge=replace(flow.edge, distance=inf, standing=0.0))


def width(schema: Schema) -> float:
    """How many bytes the types of a row say that it takes."""
    return sum(width_of(one.type) for one in schema) or 1.0


def width_of(type_: DataType) -> float:
    """How many bytes a value of a type takes; a text may be longer."""
    return _WIDTHS[type_.kind]


def row_width(schema: Schema, flow: Flow) -> float:
    """How many bytes a row takes, as far as it is known of its columns, and by types of others."""
    known = [flow.width(one.name) for one in schema]
    others = sum(width_of(one.type) for one, w in zip(schema, known, strict=True) if w is None)
    return sum(w for w in known if w is not None) + others * flow.weight or 1.0
