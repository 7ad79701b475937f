"""Joins: inner, outer, semi- and anti-joins made of inner joins and set operations.

left, right, full join   the inner join, and the lonely rows of a side padded with NULLs
semi-join                a join with the distinct keys of the right side; if the condition is
                         more than equality, the left rows are numbered to count each once
anti-join                the numbered left rows less those that found a partner
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from tidemill.algebra.annotations import is_end_ordered
from tidemill.algebra.expr import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjunction,
    replace_columns,
)
from tidemill.algebra.plan import AntiJoin, Join, JoinKind, SemiJoin
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.placement import (
    ANYWHERE,
    ONE_PARTITION,
    Placed,
    Placement,
    colocated,
    renamed,
)
from tidemill.optimizer.steps import (
    apply_to,
    columns_of,
    distinct_rows,
    only,
    project_rows,
    union_rows,
)
from tidemill.physical import interval
from tidemill.physical.conditions import split_condition
from tidemill.physical.interval import NUMBER, Multiplicity
from tidemill.physical.plan import Apply, PhysicalPlan

__all__ = ["implement_anti_join", "implement_join", "implement_semi_join"]


def implement_join(plan: Join, left: Placed, right: Placed) -> Placed:
    """An inner join, and for outer joins the rows without a partner, padded with NULLs."""
    sides = _Sides(plan, left, right)
    joined = Apply(
        interval.Join(
            sides.left.plan.schema,
            sides.right.plan.schema,
            plan.names,
            plan.condition,
            sides.orderly,
        ),
        (sides.left.plan, sides.right.plan),
    )
    whole = Placed(joined, ANYWHERE)
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        lonely = _without_partner(sides)
        whole = union_rows(plan.schema, whole, _padded(plan, sides.left_names, lonely))
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        swapped = sides.swapped()
        lonely = _without_partner(swapped)
        whole = union_rows(plan.schema, whole, _padded(plan, swapped.left_names, lonely))
    return replace(whole, placement=sides.placement(plan.kind))


def implement_semi_join(plan: SemiJoin, left: Placed, right: Placed) -> Placed:
    """A join with the distinct keys of the right side, or with numbered left rows."""
    sides = _Sides(plan, left, right)
    if sides.residual != TRUE or not sides.equalities:
        return _plain(sides, distinct_rows(_partners(sides)))
    keys = tuple(
        Named(f"@key{i}", sides.own(equality.right)) for i, equality in enumerate(sides.equalities)
    )
    schema = Schema(tuple(Field(key.name, key.expr.type) for key in keys))
    # Equal keys are together already; another exchange would take them from their left partners.
    rows = project_rows(schema, keys, sides.right)
    found = apply_to(interval.Distinct(schema), rows)
    condition = conjunction(
        *(
            Call(
                "is_not_distinct" if equality.null_safe else "=",
                (equality.left, Column(key.name, key.expr.type)),
                BOOLEAN,
            )
            for equality, key in zip(sides.equalities, keys, strict=True)
        )
    )
    names = (*sides.left_names.values(), *schema.names)
    orderly = sides.orderly[0], False
    operator = interval.Join(sides.left.plan.schema, schema, names, condition, orderly)
    joined = Apply(operator, (sides.left.plan, found.plan))
    return replace(_renamed_back(sides, joined), placement=sides.left.placement)


def implement_anti_join(plan: AntiJoin, left: Placed, right: Placed) -> Placed:
    """The numbered left rows less those that found a partner."""
    return _without_partner(_Sides(plan, left, right))


class _Sides:
    """The inputs of a join, with rows that can match in one partition."""

    def __init__(self, plan: Join | SemiJoin | AntiJoin, left: Placed, right: Placed) -> None:
        width = len(left.plan.schema)
        names = plan.names[:width], plan.names[width:]
        self.left_names = dict(zip(left.plan.schema.names, names[0], strict=True))
        self.right_names = dict(zip(right.plan.schema.names, names[1], strict=True))
        self.condition = plan.condition
        self.orderly = is_end_ordered(plan.left), is_end_ordered(plan.right)
        self.equalities, self.residual = split_condition(plan.condition, *names)
        pairs = [(self.own(e.left), self.own(e.right)) for e in self.equalities]
        self.left, self.right = colocated(left, right, pairs)

    def own(self, expr: Expr) -> Expr:
        """An expression over one side, in the names that side has for itself."""
        own = {
            new: old for names in (self.left_names, self.right_names) for old, new in names.items()
        }
        return replace_columns(expr, lambda column: Column(own[column.name], column.type))

    def swapped(self) -> _Sides:
        """The same join seen from the other side."""
        other = copy(self)
        other.left, other.right = self.right, self.left
        other.orderly = self.orderly[1], self.orderly[0]
        other.left_names, other.right_names = self.right_names, self.left_names
        return other

    def placement(self, kind: JoinKind) -> Placement:
        """Where the rows of the join are, in the names of its output."""
        left = renamed(self.left.placement, {o: only(n) for o, n in self.left_names.items()})
        right = renamed(self.right.placement, {o: only(n) for o, n in self.right_names.items()})
        match kind:
            case JoinKind.LEFT:
                return left
            case JoinKind.RIGHT:
                return right
            case JoinKind.FULL:
                return ONE_PARTITION if left == ONE_PARTITION else ANYWHERE
            case JoinKind.INNER if left is None or right is None:
                return right if left is None else left
            case JoinKind.INNER:
                return tuple(a | b for a, b in zip(left, right, strict=True))


def _numbered(sides: _Sides) -> Placed:
    return apply_to(interval.Number(sides.left.plan.schema), sides.left)


def _partners(sides: _Sides) -> Placed:
    """The numbered left rows, each as often as it finds a partner on the right."""
    numbered = _numbered(sides)
    schema = numbered.plan.schema
    names = (*sides.left_names.values(), NUMBER, *sides.right_names.values())
    operator = interval.Join(schema, sides.right.plan.schema, names, sides.condition, sides.orderly)
    joined = Apply(operator, (numbered.plan, sides.right.plan))
    joined_names = {**sides.left_names, NUMBER: NUMBER}
    columns = tuple(Named(f.name, Column(joined_names[f.name], f.type)) for f in schema)
    return Placed(Apply(interval.Project(schema, columns), (joined,)), numbered.placement)


def _without_partner(sides: _Sides) -> Placed:
    """The left rows, while they find no partner on the right."""
    numbered, partners = _numbered(sides), _partners(sides)
    schema = numbered.plan.schema
    operator = interval.Counting(Multiplicity.STRICT_DIFFERENCE, (schema, schema), schema)
    return _plain(sides, apply_to(operator, numbered, partners))


def _plain(sides: _Sides, numbered: Placed) -> Placed:
    """The rows without their numbers."""
    schema = sides.left.plan.schema
    return project_rows(schema, tuple(Named(c.name, c) for c in columns_of(schema)), numbered)


def _renamed_back(sides: _Sides, joined: PhysicalPlan) -> Placed:
    """The left columns of a join in their own names."""
    schema = sides.left.plan.schema
    columns = tuple(Named(f.name, Column(sides.left_names[f.name], f.type)) for f in schema)
    return Placed(Apply(interval.Project(schema, columns), (joined,)), ANYWHERE)


def _padded(plan: Join, kept: dict[str, str], lonely: Placed) -> Placed:
    """Rows of one side as rows of the join, the other side NULL."""
    own = {new: old for old, new in kept.items()}
    columns = tuple(
        Named(f.name, Column(own[f.name], f.type) if f.name in own else Literal(None, f.type))
        for f in plan.schema
    )
    return project_rows(plan.schema, columns, lonely)
