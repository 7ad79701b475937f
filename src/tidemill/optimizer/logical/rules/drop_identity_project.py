"""Drop a project that gives back the rows it gets.

    Project a, b      ->     input (a, b)
      input (a, b)

Condition: the columns are those of the input, all of them, in order and under their names.
Equal because every row is projected to itself. A project that only changes the order of columns
stays: set operations and the order of equal instants look at columns by their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.algebra.plan import Project

if TYPE_CHECKING:
    from tidemill.algebra.expr import Named
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_identity_project"]


def drop_identity_project(plan: Plan, _context: Context) -> Plan | None:
    """The input of a project that changes nothing."""
    match plan:
        case Project(source, columns) if plan.schema.names == source.schema.names:
            return source if all(map(_is_itself, columns)) else None
        case _:
            return None


def _is_itself(column: Named) -> bool:
    return isinstance(column.expr, Column) and column.expr.name == column.name
