"""Steps of implementing a plan that several logical operators have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.optimizer.placement import ANYWHERE, Placed, gathered, renamed
from tidemill.physical import interval
from tidemill.physical.plan import Apply

if TYPE_CHECKING:
    from tidemill.algebra.expr import Named
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator

__all__ = [
    "apply_to",
    "by_row",
    "columns_of",
    "distinct_rows",
    "only",
    "project_rows",
    "union_rows",
]


def apply_to(operator: Operator, *below: Placed) -> Placed:
    """An operator that leaves rows where they are and keeps the names of their columns."""
    return Placed(Apply(operator, tuple(b.plan for b in below)), below[0].placement)


def project_rows(schema: Schema, columns: tuple[Named, ...], below: Placed) -> Placed:
    """Rows computed from rows, where they are."""
    names: dict[str, frozenset[str]] = {}
    for column in columns:
        if isinstance(column.expr, Column):
            old = column.expr.name
            names[old] = names.get(old, frozenset()) | {column.name}
    operator = interval.Project(schema, columns)
    return Placed(Apply(operator, (below.plan,)), renamed(below.placement, names))


def columns_of(schema: Schema) -> list[Column]:
    """The columns of a schema, as expressions."""
    return [Column(field.name, field.type) for field in schema]


def by_row(below: Placed) -> Placed:
    """Equal rows in one partition."""
    return gathered(below, columns_of(below.plan.schema))


def distinct_rows(below: Placed) -> Placed:
    """Each row once."""
    return apply_to(interval.Distinct(below.plan.schema), by_row(below))


def union_rows(schema: Schema, left: Placed, right: Placed) -> Placed:
    """The rows of both sides, where they are."""
    operator = interval.Union(schema, right.plan.schema.names)
    by_position = dict(zip(right.plan.schema.names, map(only, left.plan.schema.names), strict=True))
    same = renamed(right.placement, by_position) == left.placement
    placement = left.placement if same else ANYWHERE
    return Placed(Apply(operator, (left.plan, right.plan)), placement)


def only(name: str) -> frozenset[str]:
    """The set of one name."""
    return frozenset({name})
