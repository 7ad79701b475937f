"""Push a filter below an operator that decides about each row by its own copies.

    Filter p                 Distinct
      Distinct        ->       Filter p
        input                    input

Condition: the operator is Distinct, Istream, Dstream or Rstream.
Equal because how often a row is in the answer depends on how often the same row is in the input,
now and, for the streams of changes, an instant ago. The filter keeps all copies of a row at all
instants, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import Distinct, Dstream, Filter, Istream, Rstream
from tidemill.algebra.tree import with_children

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_distinct"]


def push_filter_through_distinct(plan: Plan, _context: Context) -> Plan | None:
    """The operator above the filter."""
    match plan:
        case Filter((Distinct() | Istream() | Dstream() | Rstream()) as operator, predicate):
            return with_children(operator, (Filter(operator.input, predicate),))
        case _:
            return None
