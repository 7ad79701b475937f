"""Merge a filter with the filter below it.

    Filter q                 Filter p AND q
      Filter p        ->       input
        input

Condition: none.
Equal because a row stays when p is true and q is true, and AND is true in exactly this case,
whatever it makes of NULL otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjunction
from tidemill.algebra.plan import Filter

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["merge_filters"]


def merge_filters(plan: Plan, _context: Context) -> Plan | None:
    """One filter instead of two."""
    match plan:
        case Filter(Filter(source, inner), outer):
            return Filter(source, conjunction(inner, outer))
        case _:
            return None
