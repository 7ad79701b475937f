"""The logical plan: a tree, or a graph with shared parts, of operators on logical streams.

A node is frozen, checks itself and knows its schema when it is born. Column names are unique in
every schema, so expressions refer to columns by name. Operators with two inputs that see both rows
at once (joins) give the columns of both inputs fresh names, left first, in ``names``; their
condition speaks in these names.

What each node means is said once, in ``snapshot.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import AggregateCall, Expr, Named, used_columns
from tidemill.algebra.nullability import is_nullable
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from tidemill.errors import Span

__all__ = [
    "NOW",
    "Aggregate",
    "AntiJoin",
    "Changing",
    "Difference",
    "Distinct",
    "Dstream",
    "Filter",
    "Intersect",
    "Istream",
    "Join",
    "JoinKind",
    "MaxUnion",
    "NamedAggregate",
    "Plan",
    "Project",
    "Relation",
    "RowWindow",
    "Rstream",
    "SemiJoin",
    "SessionWindow",
    "Source",
    "StrictDifference",
    "TimeWindow",
    "Unbounded",
    "Union",
    "Validity",
    "Window",
    "WindowSpec",
]


def _set_schema(node: Plan, schema: Schema) -> None:
    object.__setattr__(node, "schema", schema)


# Windows


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The elements of the last ``size`` microseconds; the content moves on every ``slide``."""

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        assert self.size > 0, "the binder refuses empty windows"
        assert self.slide > 0, "the binder refuses windows that do not move"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The last ``rows`` elements, of each group if it is partitioned; moves every ``slide``.

    Attributes:
        rows: How many elements it holds.
        slide: After how many new elements it moves.
        partition_by: The columns whose values make a group.
        unless: Of a window of one row: an element of which it is true displaces the one before it,
            but is not seen itself.
    """

    rows: int
    slide: int = 1
    partition_by: tuple[str, ...] = ()
    unless: Expr | None = None

    def __post_init__(self) -> None:
        assert self.rows > 0, "the binder refuses empty windows"
        assert self.slide > 0, "the binder refuses windows that do not move"
        one = (self.rows, self.slide) == (1, 1)
        assert one or self.unless is None, "where more rows are held, none stands for its group"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The elements since the last pause, of each group if it is partitioned, until the next pause.

    A pause is longer than ``gap``: the elements leave ``gap`` after the last of them.
    """

    gap: int
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.gap > 0, "the binder refuses empty windows"


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Every element since the beginning."""


WindowSpec: TypeAlias = TimeWindow | RowWindow | SessionWindow | Unbounded

NOW = TimeWindow(1)
"""The window of one instant: the identity, left out of plans."""


# Leaves


@dataclass(frozen=True, slots=True)
class Source:
    """A registered stream; each element is valid for one instant, its time.

    Attributes:
        since: The instant at which it begins for this plan: elements from before are not in it.
    """

    name: str
    schema: Schema
    since: int = 0


@dataclass(frozen=True, slots=True)
class Validity:
    """The columns that hold the period ``[start, end)`` of a temporal relation's row.

    A NULL start means from the beginning, a NULL or missing end for ever.
    """

    start: str
    end: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A registered relation; a row is always valid, or in the period its columns say.

    Attributes:
        retroactive: Whether a change reaches results made before it. Where it does not, the binder
            puts the relation below the windows it is joined to.
    """

    name: str
    schema: Schema
    validity: Validity | None = None
    retroactive: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Changing:
    """What a relation that a stream changes is called, and how far a change reaches.

    Attributes:
        name: Its name.
        retroactive: Whether a change reaches results made before it, as of ``Relation``.
    """

    name: str
    retroactive: bool = True


# One input


@dataclass(frozen=True, slots=True)
class Window:
    """The input's elements, valid for as long as they stay in the window.

    Attributes:
        internal: Whether it keeps the insertions of a query with INTERNAL windows. A further window
            of the text then stands on these insertions, in its place.
        relation: The relation that it makes of a stream of changes, if it does. It says where the
            binder may put it, and nothing about what it means.
    """

    input: Plan
    spec: WindowSpec
    span: Span | None = field(default=None, compare=False, repr=False)
    internal: bool = False
    relation: Changing | None = None
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, self.input.schema)
        if isinstance(self.spec, RowWindow) and self.spec.unless is not None:
            _check_condition(self.spec.unless, self.input.schema.names)


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true."""

    input: Plan
    predicate: Expr
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_condition(self.predicate, self.input.schema.names)
        _set_schema(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class Project:
    """One row computed from each row."""

    input: Plan
    columns: tuple[Named, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = self.input.schema
        for column in self.columns:
            _check_columns(column.expr, inner.names)
        fields = (Field(c.name, c.expr.type, is_nullable(c.expr, inner)) for c in self.columns)
        _set_schema(self, Schema(tuple(fields)))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once."""

    input: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate with the name of the column it makes."""

    name: str
    call: AggregateCall


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each group of rows that agree on the keys; no row where there are no rows.

    Without keys the whole snapshot is one group.
    """

    input: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = self.input.schema
        for key in self.keys:
            _check_columns(key.expr, inner.names)
        for aggregate in self.aggregates:
            for expr in (aggregate.call.argument, aggregate.call.condition):
                if expr is not None:
                    _check_columns(expr, inner.names)
        keys = (Field(k.name, k.expr.type, is_nullable(k.expr, inner)) for k in self.keys)
        values = (
            Field(a.name, a.call.type, nullable=a.call.function != "count") for a in self.aggregates
        )
        _set_schema(self, Schema((*keys, *values)))


@dataclass(frozen=True, slots=True)
class Istream:
    """The rows that are here now and were not an instant ago."""

    input: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class Dstream:
    """The rows that were here an instant ago and are not here now."""

    input: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class Rstream:
    """The rows that are here now, as new elements at every instant."""

    input: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, self.input.schema)


# Two inputs


class JoinKind(Enum):
    """Which rows without a partner a join keeps, filled with NULLs."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows for which the condition is true, and for outer joins rows without a partner."""

    left: Plan
    right: Plan
    kind: JoinKind
    condition: Expr
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_condition(self.condition, self.names)
        fill_left = self.kind in (JoinKind.RIGHT, JoinKind.FULL)
        fill_right = self.kind in (JoinKind.LEFT, JoinKind.FULL)
        inner = [(f, fill_left) for f in self.left.schema]
        inner += [(f, fill_right) for f in self.right.schema]
        fields = (
            Field(name, f.type, f.nullable or filled)
            for name, (f, filled) in zip(self.names, inner, strict=True)
        )
        _set_schema(self, Schema(tuple(fields)))


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The left rows for which a right row makes the condition true, as often as they are there."""

    left: Plan
    right: Plan
    condition: Expr
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_both(self)
        _set_schema(self, self.left.schema)


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """The left rows for which no right row makes the condition true, as often as they are there."""

    left: Plan
    right: Plan
    condition: Expr
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_both(self)
        _set_schema(self, self.left.schema)


@dataclass(frozen=True, slots=True)
class Union:
    """Each row as often as in both inputs together."""

    left: Plan
    right: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, _either_schema(self.left, self.right))


@dataclass(frozen=True, slots=True)
class MaxUnion:
    """Each row as often as in the input that has it more often."""

    left: Plan
    right: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_schema(self, _either_schema(self.left, self.right))


@dataclass(frozen=True, slots=True)
class Difference:
    """Each left row as often as it is there more than on the right."""

    left: Plan
    right: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _either_schema(self.left, self.right)
        _set_schema(self, self.left.schema)


@dataclass(frozen=True, slots=True)
class StrictDifference:
    """The left rows that are not on the right at all, as often as they are there."""

    left: Plan
    right: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _either_schema(self.left, self.right)
        _set_schema(self, self.left.schema)


@dataclass(frozen=True, slots=True)
class Intersect:
    """Each row as often as in the input that has it less often."""

    left: Plan
    right: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _either_schema(self.left, self.right)
        _set_schema(self, self.left.schema)


Plan: TypeAlias = (
    Source
    | Relation
    | Window
    | Filter
    | Project
    | Distinct
    | Aggregate
    | Istream
    | Dstream
    | Rstream
    | Join
    | SemiJoin
    | AntiJoin
    | Union
    | MaxUnion
    | Difference
    | StrictDifference
    | Intersect
)


def _check_columns(expr: Expr, names: tuple[str, ...]) -> None:
    missing = used_columns(expr) - set(names)
    assert not missing, f"columns {sorted(missing)} are not among {names}"


def _check_condition(condition: Expr, names: tuple[str, ...]) -> None:
    assert condition.type == BOOLEAN, f"a condition is BOOLEAN, not {condition.type}"
    _check_columns(condition, names)


def _check_both(join: SemiJoin | AntiJoin) -> None:
    width = len(join.left.schema) + len(join.right.schema)
    assert len(set(join.names)) == width, "every column of both inputs has a name of its own"
    _check_condition(join.condition, join.names)


def _either_schema(left: Plan, right: Plan) -> Schema:
    assert left.schema.types == right.schema.types, "the binder makes the types equal"
    return Schema(
        tuple(
            Field(a.name, a.type, a.nullable or b.nullable)
            for a, b in zip(left.schema, right.schema, strict=True)
        )
    )
