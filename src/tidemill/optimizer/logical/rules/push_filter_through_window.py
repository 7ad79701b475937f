"""Push a filter below a window (10.8).

    Filter p                 Window range=10s
      Window range=10s  ->     Filter p
        input                    input

Condition: the window is one of time, with or without a slide, or unbounded. Through a window of
rows or of sessions only those parts of the predicate go that look at nothing but the columns it is
partitioned by.
Equal because a window of time adds up snapshots, and a filter looks at single rows. A window of
rows counts rows: a filter below would let older rows in. A session lasts while rows come: without
some of them it would be over sooner. A predicate over the partition columns is true for all rows of
a group or for none, so it takes away whole groups, and the others are as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjuncts, used_columns
from tidemill.algebra.plan import Filter, RowWindow, SessionWindow, TimeWindow, Unbounded, Window
from tidemill.algebra.tree import with_children
from tidemill.optimizer.logical.predicates import filtered, parted

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_window"]


def push_filter_through_window(plan: Plan, _context: Context) -> Plan | None:
    """The window above the filter, or above a part of it."""
    match plan:
        case Filter(Window(source, TimeWindow() | Unbounded() as spec, span), predicate):
            return Window(Filter(source, predicate), spec, span)
        case Filter(Window(source, RowWindow() | SessionWindow() as spec) as window, predicate):
            groups = spec.partition_by
            below, above = parted(
                conjuncts(predicate), lambda part: bool(groups) and used_columns(part) <= {*groups}
            )
            if not below:
                return None
            return filtered(with_children(window, (filtered(source, below),)), above)
        case _:
            return None
