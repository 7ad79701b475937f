"""Merge a project with the project below it.

    Project x + 1 AS y         Project a * 2 + 1 AS y
      Project a * 2 AS x  ->     input
        input

Condition: no expression of the lower project is computed more often than before: one that is more
than a column or a constant is used at most once above.
Equal because expressions are functions of the row: f(g(row)) is the same in one step or in two.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Literal, Named, replace_columns, walk_expr
from tidemill.algebra.plan import Project

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["merge_projects"]


def merge_projects(plan: Plan, _context: Context) -> Plan | None:
    """One project instead of two."""
    match plan:
        case Project(Project(source, inner), outer) if not _computes_twice(inner, outer):
            meaning = {column.name: column.expr for column in inner}
            return Project(
                source,
                tuple(
                    Named(c.name, replace_columns(c.expr, lambda used: meaning[used.name]))
                    for c in outer
                ),
            )
        case _:
            return None


def _computes_twice(inner: tuple[Named, ...], outer: tuple[Named, ...]) -> bool:
    uses = Counter(
        part.name for column in outer for part in walk_expr(column.expr) if isinstance(part, Column)
    )
    return any(
        uses[column.name] > 1 for column in inner if not isinstance(column.expr, Column | Literal)
    )
