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
from typing import TYPE_CHECKING, assert_never

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
from tidemill.provenance.leaves import (
    ID_COLUMN,
    Annotated,
    Cut,
    Leaf,
    alone,
    as_named,
    copied,
    hidden_columns,
    names_of,
    nothing_for,
    own_columns,
    passed,
)

if TYPE_CHECKING:
    from tidemill.provenance.leaves import Ends

__all__ = ["annotate"]


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
                return made, alone(passed(node, leaves), below, made)
            case Project(input_, columns):
                below, leaves = self.annotated(input_)
                made = Project(below, (*columns, *hidden_columns(below, leaves)))
                return made, alone(leaves, below, made)
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
                return plan, passed(node, leaves)
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
        made = Project(node, (*own_columns(node.schema), *columns))
        return made, [copied(node, columns, made)]

    def _source(self, node: Source) -> tuple[Plan, list[Leaf]]:
        mark, time = self._name(ID_COLUMN), self._name("time")
        columns = (as_named(ROW, BIGINT, mark), as_named(TIME, BIGINT, time))
        values = self._values(node.schema, mark)
        made = Project(marked(node), (*own_columns(node.schema), *columns, *values))
        return made, [Leaf(node, mark, (time,), made, values=names_of(values))]

    def _relation(self, node: Relation) -> tuple[Plan, list[Leaf]]:
        mark = self._name(ID_COLUMN)
        values = self._values(node.schema, mark)
        made = Project(
            marked(node), (*own_columns(node.schema), as_named(ROW, BIGINT, mark), *values)
        )
        return made, [Leaf(node, mark, (), made, values=names_of(values))]

    def _values(self, schema: Schema, mark: str) -> tuple[Named, ...]:
        """The values of a row once more, if they are to stay with its id."""
        if not self.values:
            return ()
        return tuple(as_named(one.name, one.type, f"{mark}.{i}") for i, one in enumerate(schema))

    def _copies(self, schema: Schema) -> tuple[Named, ...]:
        """A mark that a row is there, and its values once more."""
        copies = (as_named(one.name, one.type, self._name("of")) for one in schema)
        return (Named(self._name("is"), TRUE), *copies)

    def _window(self, node: Window) -> tuple[Plan, list[Leaf]]:
        below, leaves = self.annotated(node.input)
        if all(leaf.has_ids or leaf.at is not None for leaf in leaves):
            made = with_children(node, (below,))
            return made, alone(passed(node, leaves), below, made)
        name, at = self._name("input"), self._name("at")
        stream = Source(name, Schema((*below.schema, Field(at, BIGINT, nullable=False))))
        self.cuts.append(Cut(name, below, at))
        told = [
            leaf if leaf.has_ids or leaf.at is not None else replace(leaf, at=at) for leaf in leaves
        ]
        made = with_children(node, (stream,))
        return made, [replace(leaf, own=made) for leaf in passed(node, told)]

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
        return Project(joined, (*own_columns(node.schema), *hidden)), passed(node, leaves)

    def _outer_join(self, node: Join) -> tuple[Plan, list[Leaf]]:
        """A join with the partners that rows without one would have, or have had."""
        sides = [self.annotated(node.left), self.annotated(node.right)]
        marks = [Named(self._name("is"), TRUE) for _ in sides]
        marked = [
            (Project(plan, (*own_columns(plan.schema), mark)), leaves)
            for (plan, leaves), mark in zip(sides, marks, strict=True)
        ]
        joined, leaves = self._join(node, *marked)
        width = len(node.left.schema)
        names = node.names[:width], node.names[width:]
        alone = {JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: (0, 1)}[node.kind]
        columns = [*own_columns(node.schema), *hidden_columns(joined, leaves)]
        for side in alone:
            inputs = children(node)
            kept_back = AntiJoin(
                inputs[side], inputs[1 - side], node.condition, (*names[side], *names[1 - side])
            )
            is_missing = Call("is_null", (Column(marks[1 - side].name, BOOLEAN),), BOOLEAN)
            mark = Case(((is_missing, TRUE),), Literal(None, BOOLEAN), BOOLEAN)
            fields = (joined.schema[name] for name in names[side])
            copies = [as_named(one.name, one.type, self._name("of")) for one in fields]
            told = (Named(self._name("is"), mark), *copies)
            columns += told
            leaves.append(copied(kept_back, told, joined))
        return Project(joined, tuple(columns)), leaves

    def _left_of_join(self, node: SemiJoin | AntiJoin) -> tuple[Plan, list[Leaf]]:
        left, leaves = self.annotated(node.left)
        width = len(node.left.schema)
        names = (*node.names[:width], *left.schema.names[width:], *node.names[width:])
        return type(node)(left, node.right, node.condition, names), leaves

    def _with_partners(self, node: SemiJoin | AntiJoin) -> tuple[Plan, list[Leaf]]:
        plan, leaves = self._left_of_join(node)
        copies = self._copies(node.schema)
        made = Project(plan, (*own_columns(node.schema), *hidden_columns(plan, leaves), *copies))
        return made, [*passed(node, leaves), copied(node, copies, made)]

    def _union(self, node: Union) -> tuple[Plan, list[Leaf]]:
        (left, left_leaves), (right, right_leaves) = map(self.annotated, (node.left, node.right))
        of_left, of_right = hidden_columns(left, left_leaves), hidden_columns(right, right_leaves)
        one = Project(left, (*own_columns(node.left.schema), *of_left, *nothing_for(of_right)))
        other = Project(right, (*own_columns(node.right.schema), *nothing_for(of_left), *of_right))
        return Union(one, other), passed(node, [*left_leaves, *right_leaves])
