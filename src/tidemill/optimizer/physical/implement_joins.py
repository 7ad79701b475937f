"""Joins: inner, outer, semi- and anti-joins made of inner joins and set operations.

left, right, full join   the inner join, and the lonely rows of a side padded with NULLs
semi-join                a join with the distinct keys of the right side; if the condition is
                         more than equality, the left rows are numbered to count each once
anti-join                the numbered left rows less those that found a partner; if the condition
                         is equality, in a join with the distinct keys of the right side as well

Where an input is in signed form, rows that are equal are not told apart, so that none are numbered:
at an instant they have the same partners.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

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
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.physical.placement import (
    ANYWHERE,
    ONE_PARTITION,
    Placed,
    Placement,
    colocated,
    renamed,
)
from tidemill.optimizer.physical.steps import (
    apply_to,
    columns_of,
    counted,
    distinct_where_they_are,
    in_form,
    only,
    project_rows,
    union_rows,
)
from tidemill.physical import interval, signed
from tidemill.physical.interval import Multiplicity
from tidemill.physical.joining.conditions import split_condition
from tidemill.physical.plan import Apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.physical.operator import Operator

__all__ = ["implement_anti_join", "implement_join", "implement_semi_join"]


def implement_join(plan: Join, left: Placed, right: Placed, form: Form) -> Placed:
    """An inner join, and for outer joins the rows without a partner, padded with NULLs."""
    sides = _Sides(plan, left, right)
    whole = _joined(sides.left, sides.right, plan.names, plan.condition, sides.orderly)
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        lonely = _without_partner(sides, form, _partners)
        whole = union_rows(plan.schema, whole, _padded(plan, sides.left_names, lonely))
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        swapped = sides.swapped()
        lonely = _without_partner(swapped, form, _partners)
        whole = union_rows(plan.schema, whole, _padded(plan, swapped.left_names, lonely))
    return replace(whole, placement=sides.placement(plan.kind))


def implement_semi_join(plan: SemiJoin, left: Placed, right: Placed, form: Form) -> Placed:
    """A join with the distinct keys of the right side, or with numbered left rows."""
    sides = _Sides(plan, left, right)
    if sides.residual != TRUE or not sides.equalities:
        if sides.form is Form.INTERVAL:
            # What is numbered stays where it is: elsewhere others have the same numbers.
            found = _partners(sides, _numbered(sides))
            return _plain(sides, distinct_where_they_are(found, Form.INTERVAL))
        partners = _partners(sides, sides.left)
        return counted(Multiplicity.SEMI, sides.left.plan.schema, form, sides.left, partners)
    return _once(sides, sides.left)


def implement_anti_join(plan: AntiJoin, left: Placed, right: Placed, form: Form) -> Placed:
    """The left rows less those that found a partner."""
    sides = _Sides(plan, left, right)
    if sides.residual == TRUE and sides.equalities:
        return _without_partner(sides, form, _once)
    return _without_partner(sides, form, _partners)


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

    @property
    def form(self) -> Form:
        """The form of what is made of both sides."""
        both_known = self.left.form is self.right.form is Form.INTERVAL
        return Form.INTERVAL if both_known else Form.SIGNED

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


def _joined(
    left: Placed, right: Placed, names: tuple[str, ...], condition: Expr, orderly: tuple[bool, bool]
) -> Placed:
    """An inner join, in interval form if both inputs are."""
    schemas = left.plan.schema, right.plan.schema
    if left.form is right.form is Form.INTERVAL:
        operator: Operator = interval.Join(*schemas, names, condition, orderly)
        return Placed(Apply(operator, (left.plan, right.plan)), ANYWHERE)
    left, right = in_form(left, Form.SIGNED), in_form(right, Form.SIGNED)
    operator = signed.Join(*schemas, names, condition)
    return Placed(Apply(operator, (left.plan, right.plan)), ANYWHERE, Form.SIGNED)


def _numbered(sides: _Sides) -> Placed:
    return apply_to(interval.Number(sides.left.plan.schema), sides.left)


def _partners(sides: _Sides, left: Placed) -> Placed:
    """The left rows, numbered or not, each as often as it finds a partner on the right."""
    schema = left.plan.schema
    own = {name: sides.left_names.get(name, name) for name in schema.names}
    names = (*own.values(), *sides.right_names.values())
    joined = _joined(left, sides.right, names, sides.condition, sides.orderly)
    columns = tuple(Named(f.name, Column(own[f.name], f.type)) for f in schema)
    rows = Apply(interval.Project(schema, columns), (joined.plan,))
    return Placed(rows, left.placement, joined.form)


def _once(sides: _Sides, left: Placed) -> Placed:
    """The left rows, numbered or not, each once while it finds partners on the right.

    They meet the distinct keys of the right side: however many partners a row has, no more is made
    and remembered than there are rows.
    """
    keys = tuple(
        Named(f"@right{i}", sides.own(equality.right))
        for i, equality in enumerate(sides.equalities)
    )
    distinct = Schema(tuple(Field(key.name, key.expr.type) for key in keys))
    # Equal keys are together already; another exchange would take them from their left partners.
    found = distinct_where_they_are(project_rows(distinct, keys, sides.right), sides.form)
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
    schema = left.plan.schema
    own = {name: sides.left_names.get(name, name) for name in schema.names}
    names = (*own.values(), *distinct.names)
    joined = _joined(left, found, names, condition, (sides.orderly[0], False))
    columns = tuple(Named(f.name, Column(own[f.name], f.type)) for f in schema)
    return replace(project_rows(schema, columns, joined), placement=left.placement)


def _without_partner(
    sides: _Sides, form: Form, partners: Callable[[_Sides, Placed], Placed]
) -> Placed:
    """The left rows, while they find no partner on the right."""
    is_plain = form is Form.SIGNED or sides.form is Form.SIGNED
    left = sides.left if is_plain else _numbered(sides)
    rows = counted(
        Multiplicity.STRICT_DIFFERENCE, left.plan.schema, form, left, partners(sides, left)
    )
    return rows if is_plain else _plain(sides, rows)


def _plain(sides: _Sides, numbered: Placed) -> Placed:
    """The rows without their numbers."""
    schema = sides.left.plan.schema
    return project_rows(schema, tuple(Named(c.name, c) for c in columns_of(schema)), numbered)


def _padded(plan: Join, kept: dict[str, str], lonely: Placed) -> Placed:
    """Rows of one side as rows of the join, the other side NULL."""
    own = {new: old for old, new in kept.items()}
    columns = tuple(
        Named(f.name, Column(own[f.name], f.type) if f.name in own else Literal(None, f.type))
        for f in plan.schema
    )
    return project_rows(plan.schema, columns, lonely)
