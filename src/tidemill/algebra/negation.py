"""Negation: which operators take a row out of the answer, or make it wrong, when another comes.

DISTINCT wants a row once, a difference and an anti-join want it only while it has no counterpart,
and an outer join fills a row with NULLs only while it has no partner. Their results cannot outlive
the snapshot they were made in: what INTERNAL windows and output windows keep would contradict them
(G-17, G-18). A window or a stream operator above them makes a stream of elements, which may.
"""

from __future__ import annotations

from typing import assert_never

from tidemill.algebra.annotations import is_constant
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Relation,
    Rstream,
    SemiJoin,
    Source,
    StrictDifference,
    Union,
    Window,
)
from tidemill.algebra.tree import once_per_node

__all__ = ["negation"]


@once_per_node
def negation(plan: Plan) -> Plan | None:
    """The first operator, from the top, whose results hold for their own snapshots only."""
    if is_constant(plan):
        return None
    match plan:
        case Source() | Relation() | Window() | Istream() | Dstream() | Rstream():
            return None
        case Distinct() | Difference() | Join(kind=JoinKind.FULL):
            return plan
        case Filter() | Project() | Aggregate():
            return negation(plan.input)
        case StrictDifference() | AntiJoin() | Join(kind=JoinKind.LEFT):
            # A right side that never changes is a condition on the left rows, as a filter is.
            return negation(plan.left) if is_constant(plan.right) else plan
        case Join(kind=JoinKind.RIGHT):
            return negation(plan.right) if is_constant(plan.left) else plan
        case SemiJoin(left, right):
            # That a row is there does not depend on how often.
            found = right.input if isinstance(right, Distinct) else right
            return negation(left) or negation(found)
        case Join() | Union() | MaxUnion() | Intersect():
            return negation(plan.left) or negation(plan.right)
        case _:
            assert_never(plan)
