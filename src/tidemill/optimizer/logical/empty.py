"""Plans without rows: how they are written, and how they are recognized.

There is one way to write a plan that never has a row: a filter that is FALSE above a stream or a
relation, and a project above it where the columns differ. The stream is the first that the query
reads, so that time passes as it does for a query that has rows.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from tidemill.algebra.expr import FALSE, Literal, Named
from tidemill.algebra.plan import NOW, Filter, Plan, Project, Relation, Source, Window
from tidemill.algebra.tree import walk
from tidemill.model.time import to_datetime
from tidemill.model.types import Kind
from tidemill.optimizer.physical.order import carries_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.model.schema import Field
    from tidemill.model.types import Value

__all__ = ["as_derived", "empty_like", "is_empty", "is_never"]

_VALUES: Mapping[Kind, Value] = {
    Kind.BOOLEAN: False,
    Kind.INTEGER: 0,
    Kind.BIGINT: 0,
    Kind.DECIMAL: Decimal(0),
    Kind.DOUBLE: 0.0,
    Kind.VARCHAR: "",
    Kind.DATE: date(1970, 1, 1),
    Kind.TIMESTAMP: to_datetime(0),
}
"""A value of each type, for columns that are not NULL in rows that there never are."""


def is_empty(plan: Plan) -> bool:
    """Whether the plan is one of those that ``empty_like`` makes."""
    match plan:
        case Project(Filter(Source() | Relation(), predicate)):
            return predicate == FALSE
        case Filter(Source() | Relation(), predicate):
            return predicate == FALSE
        case _:
            return False


def is_never(plan: Plan) -> bool:
    """Whether the plan is a filter that keeps no row: its predicate is FALSE or NULL."""
    match plan:
        case Filter(_, Literal(value)):
            return value is not True
        case _:
            return False


def empty_like(plan: Plan) -> Plan:
    """A plan with the columns of another one, and never a row."""
    leaves = [node for node in walk(plan) if isinstance(node, Source | Relation)]
    leaf = next((node for node in leaves if isinstance(node, Source)), leaves[0])
    nothing = Filter(leaf, FALSE)
    if leaf.schema == plan.schema:
        return nothing
    return Project(nothing, tuple(Named(field.name, _constant(field)) for field in plan.schema))


def _constant(field: Field) -> Literal:
    return Literal(None if field.nullable else _VALUES[field.type.kind], field.type)


def as_derived(plan: Plan) -> Plan:
    """The plan as what stands above an operator that orders rows of one instant by their values.

    A registered stream orders them by their ids. Where such an operator is left out, a window of
    one instant keeps the order, which a ROWS window above may look at.
    """
    return Window(plan, NOW) if carries_ids(plan) else plan
