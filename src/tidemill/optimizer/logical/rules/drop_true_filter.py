"""Drop a filter that keeps every row.

    Filter TRUE       ->     input
      input

Condition: the predicate is the constant TRUE.
Equal because every row stays. A filter that is FALSE or NULL keeps no row; it stays where it is
needed, and the pushes carry it to the sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import Filter

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_true_filter"]


def drop_true_filter(plan: Plan, _context: Context) -> Plan | None:
    """The input of a filter that keeps every row."""
    match plan:
        case Filter(source, predicate) if predicate == TRUE:
            return source
        case _:
            return None
