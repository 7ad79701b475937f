"""Push Distinct below a project that keeps rows apart.

    Distinct                     Project b, a, a + 1 AS c
      Project b, a, a + 1 AS c  ->  Distinct
        input (a, b)                  input (a, b)

Condition: every column of the input is a column of the project.
Equal because rows that differ are mapped to rows that differ, so what is made of a row is there as
often as the row is. Below, fewer columns are compared and remembered, and Distinct meets the
operators that it can pass or that make it needless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.algebra.plan import Distinct, Project

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_distinct_through_project"]


def push_distinct_through_project(plan: Plan, _context: Context) -> Plan | None:
    """The project above Distinct."""
    match plan:
        case Distinct(Project(source, columns)):
            kept = {column.expr.name for column in columns if isinstance(column.expr, Column)}
            if kept < {*source.schema.names}:
                return None
            return Project(Distinct(source), columns)
        case _:
            return None
