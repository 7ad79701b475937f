"""Drop a Distinct below an operator that does not look at how often a row is there.

    Aggregate max(price) by item        Aggregate max(price) by item
      Distinct                     ->     input
        input

Condition: the operator above is

- an aggregate whose values are all extremes, or of DISTINCT values, or one without values;
- a semi-join, an anti-join or a strict difference, and Distinct is on its right side;
- another Distinct with a project between them.

A project may stand between in each case. What the operator above needs, it finds out for itself.
Equal because these operators ask of a row whether it is there, and Distinct changes only how often;
a project keeps that, rows that become equal are there if one of them was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Distinct,
    Project,
    SemiJoin,
    StrictDifference,
)
from tidemill.algebra.tree import with_children
from tidemill.optimizer.logical.duplicates import counts_no_copies

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_distinct_below"]


def drop_distinct_below(plan: Plan, _context: Context) -> Plan | None:
    """The operator above the input of a Distinct."""
    match plan:
        case Distinct(Project() as below):
            found = _without(below)
            return None if found is None else Distinct(found)
        case Aggregate(below) if counts_no_copies(plan):
            found = _without(below)
            return None if found is None else with_children(plan, (found,))
        case SemiJoin(left, right) | AntiJoin(left, right) | StrictDifference(left, right):
            found = _without(right)
            return None if found is None else with_children(plan, (left, found))
        case _:
            return None


def _without(plan: Plan) -> Plan | None:
    """The plan without its Distinct; ``None`` if it has none."""
    match plan:
        case Distinct(source):
            return source
        case Project(Distinct(source), columns):
            return Project(source, columns)
        case _:
            return None
