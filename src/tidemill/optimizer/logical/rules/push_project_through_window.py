"""Push a project below a window that remembers rows (10.11, 10.12).

    Project a + b AS x, k             Window rows=10 by k
      Window rows=10 by k       ->      Project a + b AS x, k
        Source (a, b, c, k)               Source (a, b, c, k)

Condition: the project has fewer columns than the input. It keeps the columns that the window is
partitioned by, and those that it reads otherwise, as they are. A window of rows stands above a
registered stream, filtered and projected or not: elsewhere it counts rows of one instant in the
order of their values, which the project changes.
Equal because a project changes neither when a row comes nor how many there are, and each row is in
the group that it was in.

Columns that nothing reads are left out below a window anyway (``prune_columns``); this is for those
that are read in order to compute fewer. A window that other parts of the plan read as well would
have to be there twice, which its cost tells. A window of time remembers nothing, so that its
projects stay above it, where the filter below it has taken rows away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, replace_columns, used_columns
from tidemill.algebra.plan import Project, RowWindow, SessionWindow, Window
from tidemill.optimizer.physical.order import carries_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_project_through_window"]


def push_project_through_window(plan: Plan, _context: Context) -> Iterator[Plan]:
    """The window above the project."""
    match plan:
        case Project(Window(source, RowWindow() | SessionWindow() as spec) as window, columns) if (
            len(columns) < len(source.schema)
        ):
            pass
        case _:
            return
    names = {c.expr.name: c.name for c in columns if isinstance(c.expr, Column)}
    if not _read(spec) <= names.keys() or not (
        isinstance(spec, SessionWindow) or carries_ids(source)
    ):
        return
    yield replace(window, input=Project(source, columns), spec=_renamed(spec, names))


def _read(spec: RowWindow | SessionWindow) -> set[str]:
    """The columns that a window looks at."""
    unless = spec.unless if isinstance(spec, RowWindow) else None
    return {*spec.partition_by} | (set() if unless is None else used_columns(unless))


def _renamed(
    spec: RowWindow | SessionWindow, names: Mapping[str, str]
) -> RowWindow | SessionWindow:
    groups = tuple(names[name] for name in spec.partition_by)
    if isinstance(spec, SessionWindow):
        return replace(spec, partition_by=groups)
    unless = spec.unless
    if unless is not None:
        unless = replace_columns(unless, lambda column: Column(names[column.name], column.type))
    return replace(spec, partition_by=groups, unless=unless)
