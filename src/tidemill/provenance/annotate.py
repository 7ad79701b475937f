"""Annotation: a plan whose rows tell which rows they were made of.

It is a rewrite of the logical plan, and needs no operator of its own: each source gets hidden
columns, the id and the time of its rows, and what passes rows on passes these on as well.

    Project item, price              Project item, price, @id1, @time1
      Filter price > 5        ->       Filter price > 5
        Window range=10s                 Window range=10s
          Source bid                       Project item, price, @row AS @id1, @time AS @time1
                                             Source bid, with @row and @time

What makes one row of many, or looks at how many there are, would do something else with hidden
columns: aggregates, DISTINCT, set operations, ISTREAM and DSTREAM. There the columns end, and the
row itself goes on, as copies of its values. What it was made of is asked of the input of that
operator, in a step of its own (``steps.py``).

A window over rows of such operators takes what was made at other instants. Which ones is only known
where the rows have single instants, so the input of the window is computed first, and given to it
as a stream whose rows have their instant as a column: a *cut*.

Law: without the hidden columns the annotated plan has the snapshots of the plan.
Law: a row of the plan at an instant is there because the rows are there that its hidden columns
tell; ``algebra/lineage.py`` says the same by definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import TRUE, Call, Case, Column, Literal, Named
from tidemill.algebra.marked import ROW, TIME, marked
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Relation,
    Rstream,
    SemiJoin,
    Source,
    StrictDifference,
    Union,
    Window,
)
from tidemill.algebra.tree import children, with_children
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidemill.model.types import DataType

__all__ = ["ROW", "TIME", "Annotated", "Cut", "Ends", "Leaf", "annotate", "ids_among"]

Ends: TypeAlias = "Mapping[int, str]"
"""Nodes of a plan whose rows are not explained further, by ``id``, with what they are called."""

_ID = "id"
"""How hidden columns with ids are called, behind ``@``, and with a number."""


def ids_among(names: Iterable[str]) -> tuple[str, ...]:
    """The hidden columns among some that have the ids of rows."""
    found = (name for name in names if name.startswith(f"@{_ID}"))
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


def annotate(
    plan: Plan, ends: Ends | None = None, *, against: bool = False, values: bool = False
) -> Annotated:
    """The plan with hidden columns.

    Args:
        plan: The plan.
        ends: Nodes of it whose rows are not explained further.
        against: Whether partners that would keep rows back are asked for, too.
        values: Whether rows of streams and relations bring their values with their ids.
    """
    annotator = _Annotator(ends or {}, against, values)
    found, leaves = annotator.annotated(plan)
    return Annotated(found, plan.schema.names, tuple(leaves), tuple(annotator.cuts))


@dataclass(slots=True)
class _Annotator:
    """An annotation under way."""

    ends: Ends
    against: bool
    values: bool
    cuts: list[Cut] = field(default_factory=list)
    _named: int = 0

    def annotated(self, node: Plan) -> tuple[Plan, list[Leaf]]:
        """A node with hidden columns behind its own, and where they lead to."""
        if id(node) in self.ends:
            return self._ended(node)
        match node:
            case Source():
                return self._source(node)
            case Relation():
                return self._relation(node)
            case Window():
                return self._window(node)
            case Filter() | Rstream():
                below, leaves = self.annotated(node.input)
                made = with_children(node, (below,))
                return made, _alone(_passed(node, leaves), below, made)
            case Project(input_, columns):
                below, leaves = self.annotated(input_)
                made = Project(below, (*columns, *_hidden(below, leaves)))
                return made, _alone(leaves, below, made)
            case Join() if self.against and node.kind is not JoinKind.INNER:
                return self._outer_join(node)
            case Join():
                return self._join(node, *map(self.annotated, (node.left, node.right)))
            case SemiJoin():
                return self._with_partners(node)
            case AntiJoin() if self.against:
                return self._with_partners(node)
            case AntiJoin():
                plan, leaves = self._left_of_join(node)
                return plan, _passed(node, leaves)
            case Union():
                return self._union(node)
            case Aggregate() | Distinct() | Istream() | Dstream():
                return self._ended(node)
            case Difference() | StrictDifference() | Intersect() | MaxUnion():
                return self._ended(node)
            case _:
                assert_never(node)

    def _name(self, what: str) -> str:
        self._named += 1
        return f"@{what}{self._named}"

    def _ended(self, node: Plan) -> tuple[Plan, list[Leaf]]:
        """The hidden columns are copies of the row."""
        columns = self._copies(node.schema)
        made = Project(node, (*_own(node.schema), *columns))
        return made, [_copied(node, columns, made)]

    def _source(self, node: Source) -> tuple[Plan, list[Leaf]]:
        mark, time = self._name(_ID), self._name("time")
        columns = (_as(ROW, BIGINT, mark), _as(TIME, BIGINT, time))
        values = self._values(node.schema, mark)
        made = Project(marked(node), (*_own(node.schema), *columns, *values))
        return made, [Leaf(node, mark, (time,), made, values=_names(values))]

    def _relation(self, node: Relation) -> tuple[Plan, list[Leaf]]:
        mark = self._name(_ID)
        values = self._values(node.schema, mark)
        made = Project(marked(node), (*_own(node.schema), _as(ROW, BIGINT, mark), *values))
        return made, [Leaf(node, mark, (), made, values=_names(values))]

    def _values(self, schema: Schema, mark: str) -> tuple[Named, ...]:
        """The values of a row once more, if they are to stay with its id."""
        if not self.values:
            return ()
        return tuple(_as(one.name, one.type, f"{mark}.{i}") for i, one in enumerate(schema))

    def _copies(self, schema: Schema) -> tuple[Named, ...]:
        """A mark that a row is there, and its values once more."""
        copies = (_as(one.name, one.type, self._name("of")) for one in schema)
        return (Named(self._name("is"), TRUE), *copies)

    def _window(self, node: Window) -> tuple[Plan, list[Leaf]]:
        below, leaves = self.annotated(node.input)
        if all(leaf.has_ids or leaf.at is not None for leaf in leaves):
            made = with_children(node, (below,))
            return made, _alone(_passed(node, leaves), below, made)
        name, at = self._name("input"), self._name("at")
        stream = Source(name, Schema((*below.schema, Field(at, BIGINT, nullable=False))))
        self.cuts.append(Cut(name, below, at))
        told = [
            leaf if leaf.has_ids or leaf.at is not None else replace(leaf, at=at) for leaf in leaves
        ]
        made = with_children(node, (stream,))
        return made, [replace(leaf, own=made) for leaf in _passed(node, told)]

    def _join(
        self, node: Join, one: tuple[Plan, list[Leaf]], other: tuple[Plan, list[Leaf]]
    ) -> tuple[Plan, list[Leaf]]:
        (left, left_leaves), (right, right_leaves) = one, other
        width = len(node.left.schema)
        names = (
            *node.names[:width],
            *left.schema.names[width:],
            *node.names[width:],
            *right.schema.names[len(node.right.schema) :],
        )
        joined = Join(left, right, node.kind, node.condition, names)
        leaves = [*left_leaves, *right_leaves]
        rest = (one for one in joined.schema if one.name not in node.names)
        hidden = (Named(one.name, Column(one.name, one.type)) for one in rest)
        return Project(joined, (*_own(node.schema), *hidden)), _passed(node, leaves)

    def _outer_join(self, node: Join) -> tuple[Plan, list[Leaf]]:
        """A join with the partners that rows without one would have, or have had."""
        sides = [self.annotated(node.left), self.annotated(node.right)]
        marks = [Named(self._name("is"), TRUE) for _ in sides]
        marked = [
            (Project(plan, (*_own(plan.schema), mark)), leaves)
            for (plan, leaves), mark in zip(sides, marks, strict=True)
        ]
        joined, leaves = self._join(node, *marked)
        width = len(node.left.schema)
        names = node.names[:width], node.names[width:]
        alone = {JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: (0, 1)}[node.kind]
        columns = [*_own(node.schema), *_hidden(joined, leaves)]
        for side in alone:
            inputs = children(node)
            kept_back = AntiJoin(
                inputs[side], inputs[1 - side], node.condition, (*names[side], *names[1 - side])
            )
            is_missing = Call("is_null", (Column(marks[1 - side].name, BOOLEAN),), BOOLEAN)
            mark = Case(((is_missing, TRUE),), Literal(None, BOOLEAN), BOOLEAN)
            fields = (joined.schema[name] for name in names[side])
            copies = [_as(one.name, one.type, self._name("of")) for one in fields]
            told = (Named(self._name("is"), mark), *copies)
            columns += told
            leaves.append(_copied(kept_back, told, joined))
        return Project(joined, tuple(columns)), leaves

    def _left_of_join(self, node: SemiJoin | AntiJoin) -> tuple[Plan, list[Leaf]]:
        left, leaves = self.annotated(node.left)
        width = len(node.left.schema)
        names = (*node.names[:width], *left.schema.names[width:], *node.names[width:])
        return type(node)(left, node.right, node.condition, names), leaves

    def _with_partners(self, node: SemiJoin | AntiJoin) -> tuple[Plan, list[Leaf]]:
        plan, leaves = self._left_of_join(node)
        copies = self._copies(node.schema)
        made = Project(plan, (*_own(node.schema), *_hidden(plan, leaves), *copies))
        return made, [*_passed(node, leaves), _copied(node, copies, made)]

    def _union(self, node: Union) -> tuple[Plan, list[Leaf]]:
        (left, left_leaves), (right, right_leaves) = map(self.annotated, (node.left, node.right))
        of_left, of_right = _hidden(left, left_leaves), _hidden(right, right_leaves)
        one = Project(left, (*_own(node.left.schema), *of_left, *_nothing(of_right)))
        other = Project(right, (*_own(node.right.schema), *_nothing(of_left), *of_right))
        return Union(one, other), _passed(node, [*left_leaves, *right_leaves])


def _as(name: str, type_: DataType, new: str) -> Named:
    return Named(new, Column(name, type_))


def _names(columns: Iterable[Named]) -> tuple[str, ...]:
    return tuple(one.name for one in columns)


def _own(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(one.name, Column(one.name, one.type)) for one in schema)


def _hidden(plan: Plan, leaves: Sequence[Leaf]) -> tuple[Named, ...]:
    """The hidden columns of a plan, as they are."""
    names = {
        name
        for leaf in leaves
        for name in (leaf.mark, *leaf.columns, leaf.at, *leaf.values)
        if name
    }
    return tuple(Named(o.name, Column(o.name, o.type)) for o in plan.schema if o.name in names)


def _nothing(columns: Iterable[Named]) -> tuple[Named, ...]:
    return tuple(Named(one.name, Literal(None, one.expr.type)) for one in columns)


def _copied(node: Plan, columns: Sequence[Named], made: Plan) -> Leaf:
    mark, *copies = (one.name for one in columns)
    return Leaf(node, mark, tuple(copies), made)


def _alone(leaves: list[Leaf], below: Plan, made: Plan) -> list[Leaf]:
    """Leaves with the plan of their rows by themselves, if there is only one of them."""
    if len(leaves) != 1 or leaves[0].own is not below:
        return leaves
    return [replace(leaves[0], own=made)]


def _passed(node: Plan, leaves: Iterable[Leaf]) -> list[Leaf]:
    return [leaf.below(describe(node)) for leaf in leaves]
