"""Merge conditions of a filter that say more together than each for itself.

    Filter a > 3 AND a > 5 AND b = 1 AND b < 4   ->   Filter a > 5 AND b = 1
    Filter a = 1 AND a = 2                       ->   Filter FALSE
    Filter a < 3 AND a >= 7                      ->   Filter FALSE
    Filter a IS NULL AND a > b                   ->   Filter FALSE

Condition: the predicate is a conjunction, and of its parts

- two are equal: one is left;
- one says that a column is a constant, or NULL: others that are TRUE of it are left out, and if one
  is not, whatever the other columns are, the whole is FALSE. A DOUBLE that equals a constant is not
  looked at: equal numbers need not be the same (0 and -0);
- some compare the same expression with constants: of the lower bounds the highest is left, of the
  upper ones the lowest. The whole is FALSE if no value is between them.

Equal because a filter keeps a row if all parts are true. Where a column is known, a part means what
it means with the constant in its place, and a part that is true wherever another one is true
decides about nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, conjunction, conjuncts
from tidemill.algebra.plan import Filter
from tidemill.optimizer.logical.conjunctions import merged

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["merge_conditions"]


def merge_conditions(plan: Plan, _context: Context) -> Plan | None:
    """The filter with fewer parts, or with none that could be true."""
    match plan:
        case Filter(source, Call("and") as predicate):
            parts = conjuncts(predicate)
            left = merged(parts)
            return None if left == parts else Filter(source, conjunction(*left))
        case _:
            return None
