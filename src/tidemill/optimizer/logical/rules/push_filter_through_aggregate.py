"""Push conditions on the groups below the aggregate.

    Filter k = 1 AND n > 2              Filter n > 2
      Aggregate count(*) AS n by a AS k ->  Aggregate count(*) AS n by a AS k
        input                                 Filter a = 1
                                                input

Condition: the part of the predicate reads keys only, and there are keys. What reads an aggregate
stays above.
Equal because such a part is true for all rows of a group or for none: below it takes away the rows
of whole groups, and a group without rows gives no row. Rows decide about a scalar aggregate's
value; nothing that reads it can be decided below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjuncts, used_columns
from tidemill.algebra.plan import Aggregate, Filter
from tidemill.optimizer.logical.predicates import filtered, parted, substituted

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_aggregate"]


def push_filter_through_aggregate(plan: Plan, context: Context) -> Plan | None:
    """The aggregate above the parts of the filter that look at keys."""
    match plan:
        case Filter(Aggregate(source, keys, aggregates), predicate) if keys:
            meaning = {key.name: key.expr for key in keys}
            of_keys, above = parted(
                conjuncts(predicate), lambda part: used_columns(part) <= meaning.keys()
            )
            parts = {part: substituted(part, meaning, context) for part in of_keys}
            below = [new for new in parts.values() if new is not None]
            above += tuple(part for part, new in parts.items() if new is None)
            if not below:
                return None
            return filtered(Aggregate(filtered(source, below), keys, aggregates), above)
        case _:
            return None
