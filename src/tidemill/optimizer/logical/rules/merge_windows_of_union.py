"""Merge equal windows on both sides of a union into one above it (10.10, 10.9).

    Union                       Window range=10s
      Window range=10s            Union
        left               ->       left
      Window range=10s              right
        right

Condition: both windows are of time with the same size and slide, or unbounded. Projects may stand
between the union and the windows; they go below with their sides.
Equal because a window of time adds up the snapshots of some instants, and bags are added in any
order; a project maps rows one by one, whenever they are valid. Windows of rows and of sessions look
at other rows of their input, so each side needs its own.

It saves an operator, if nothing else stands on the windows. Windows below the union can be shared
with other parts of the plan, which the cost of the plan knows. Other queries could share them as
well, but a window of time remembers nothing: what they would save is its pass over the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import Project, TimeWindow, Unbounded, Union, Window
from tidemill.algebra.tree import with_children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan, WindowSpec
    from tidemill.optimizer.logical.context import Context

__all__ = ["merge_windows_of_union"]


def merge_windows_of_union(plan: Plan, _context: Context) -> Iterator[Plan]:
    """The window above the union."""
    if not isinstance(plan, Union):
        return
    left, right = _apart(plan.left), _apart(plan.right)
    if left is not None and right is not None and left[0] == right[0]:
        yield Window(Union(left[1], right[1]), left[0])


def _apart(side: Plan) -> tuple[WindowSpec, Plan] | None:
    """The window of a side, and the side without it."""
    match side:
        case Window(source, TimeWindow() | Unbounded() as spec, _, False, None):
            return spec, source
        case Project(Window(source, TimeWindow() | Unbounded() as spec, _, False, None)):
            return spec, with_children(side, (source,))
        case _:
            return None
