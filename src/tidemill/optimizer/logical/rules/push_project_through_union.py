"""Push a project below a union of projects.

    Project x + 1 AS y          Union
      Union                ->     Project a + 1 AS y
        Project a AS x              left (a)
          left (a)                Project b + 1 AS y
        Project b AS x              right (b)
          right (b)

Condition: both sides are projects, which the project is merged with (``merge_projects``).
Equal because a union adds up how often a row is there, and so does a project for the rows that it
maps to one: f(l) + f(r) is f(l + r).

It saves an operator, unless other parts of the plan stand on the union, which the cost tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Named, replace_columns
from tidemill.algebra.plan import Project, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_project_through_union"]


def push_project_through_union(plan: Plan, _context: Context) -> Iterator[Plan]:
    """The union of two projects of projects."""
    match plan:
        case Project(Union(Project() as left, Project() as right), columns):
            names = dict(zip(left.schema.names, right.schema.names, strict=True))
            others = tuple(
                Named(
                    column.name,
                    replace_columns(column.expr, lambda used: Column(names[used.name], used.type)),
                )
                for column in columns
            )
            yield Union(Project(left, columns), Project(right, others))
        case _:
            return
