"""Push a filter below a project.

    Filter x > 4               Project a * 2 AS x
      Project a * 2 AS x  ->     Filter a * 2 > 4
        input                      input

Condition: none but that the predicate does not become too large; the parts of a conjunction that
would stay above.
Equal because the predicate looks at one row, and says of the row below what it said of the row made
of it. The expression is computed twice then, for fewer rows; more often the column is not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjuncts
from tidemill.algebra.plan import Filter, Project
from tidemill.optimizer.logical.predicates import filtered, substituted

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_project"]


def push_filter_through_project(plan: Plan, context: Context) -> Plan | None:
    """The project above the filter."""
    match plan:
        case Filter(Project(source, columns), predicate):
            meaning = {column.name: column.expr for column in columns}
            parts = {part: substituted(part, meaning, context) for part in conjuncts(predicate)}
            below = [new for new in parts.values() if new is not None]
            above = [part for part, new in parts.items() if new is None]
            if not below:
                return None
            return filtered(Project(filtered(source, below), columns), above)
        case _:
            return None
