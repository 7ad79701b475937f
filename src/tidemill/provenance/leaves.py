"""Leaves: where the hidden columns of an annotated plan lead to, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import Column, Literal, Named
from tidemill.algebra.plan import AntiJoin, Plan, Relation, SemiJoin, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType

__all__ = [
    "ID_COLUMN",
    "Annotated",
    "Cut",
    "Ends",
    "Leaf",
    "alone",
    "as_named",
    "copied",
    "hidden_columns",
    "ids_among",
    "names_of",
    "nothing_for",
    "own_columns",
    "passed",
]

Ends: TypeAlias = "Mapping[int, str]"
"""Nodes of a plan whose rows are not explained further, by ``id``, with what they are called."""

ID_COLUMN = "id"
"""How hidden columns with ids are called, behind ``@``, and with a number."""


def ids_among(names: Iterable[str]) -> tuple[str, ...]:
    """The hidden columns among some that have the ids of rows."""
    found = (name for name in names if name.startswith(f"@{ID_COLUMN}"))
    return tuple(name for name in found if "." not in name)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where hidden columns lead to.

    Attributes:
        plan: A source or a relation, whose rows have ids; or another operator, whose rows are told
            by their values. Of a semi-join, these are the rows of its left input, and what is told
            of them is that they had partners.
        mark: The hidden column that is NULL where no row of it took part; the id, if there is one.
        columns: The hidden columns with the values of its rows; of a source, its time.
        at: The hidden column with the instant at which the row was there; ``None`` if it is there
            when what it takes part in is.
        own: The plan of its rows by themselves, as far up as nothing has met them.
        via: The operators that it has passed, from the answer downwards.
        values: The hidden columns with the values of its rows, of a source or relation whose rows
            are to be known without reading it; none of others.
    """

    plan: Plan
    mark: str
    columns: tuple[str, ...]
    own: Plan
    at: str | None = None
    via: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def has_ids(self) -> bool:
        """Whether its rows have ids, so that the explanation ends there."""
        return isinstance(self.plan, Source | Relation)

    @property
    def has_partners(self) -> bool:
        """Whether it stands for the partners of its rows, which are told by themselves."""
        return isinstance(self.plan, SemiJoin | AntiJoin)

    def below(self, *operators: str) -> Leaf:
        """The same below more operators."""
        return replace(self, via=(*operators, *self.via)) if operators else self


@dataclass(frozen=True, slots=True)
class Cut:
    """The input of a window, computed first, and given to it as a stream.

    Attributes:
        name: What the stream is called.
        plan: The input, annotated.
        at: The column with the instants of its rows.
    """

    name: str
    plan: Plan
    at: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """A plan with hidden columns behind its own.

    Attributes:
        plan: The plan.
        columns: Its own columns.
        leaves: Where the hidden columns lead to.
        cuts: The inputs of windows that are computed first, those that others read first.
    """

    plan: Plan
    columns: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    cuts: tuple[Cut, ...] = ()


def as_named(name: str, type_: DataType, new: str) -> Named:
    """A column under another name."""
    return Named(new, Column(name, type_))


def names_of(columns: Iterable[Named]) -> tuple[str, ...]:
    """What columns are called."""
    return tuple(one.name for one in columns)


def own_columns(schema: Schema) -> tuple[Named, ...]:
    """All columns, as they are."""
    return tuple(Named(one.name, Column(one.name, one.type)) for one in schema)


def hidden_columns(plan: Plan, leaves: Sequence[Leaf]) -> tuple[Named, ...]:
    """The hidden columns of a plan, as they are."""
    names = {
        name
        for leaf in leaves
        for name in (leaf.mark, *leaf.columns, leaf.at, *leaf.values)
        if name
    }
    return tuple(Named(o.name, Column(o.name, o.type)) for o in plan.schema if o.name in names)


def nothing_for(columns: Iterable[Named]) -> tuple[Named, ...]:
    """NULLs in the place of columns."""
    return tuple(Named(one.name, Literal(None, one.expr.type)) for one in columns)


def copied(node: Plan, columns: Sequence[Named], made: Plan) -> Leaf:
    """The leaf of a mark and copies of values."""
    mark, *copies = (one.name for one in columns)
    return Leaf(node, mark, tuple(copies), made)


def alone(leaves: list[Leaf], below: Plan, made: Plan) -> list[Leaf]:
    """Leaves with the plan of their rows by themselves, if there is only one of them."""
    if len(leaves) != 1 or leaves[0].own is not below:
        return leaves
    return [replace(leaves[0], own=made)]


def passed(node: Plan, leaves: Iterable[Leaf]) -> list[Leaf]:
    """Leaves below one operator more."""
    return [leaf.below(describe(node)) for leaf in leaves]
