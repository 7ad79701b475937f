"""Shared intervals: whether many elements of a plan begin and end together.

Behind a window that slides, elements begin and end only where it moves (panes), and so do the
results of whatever looks at snapshots of them. Everywhere else each element is taken to have an
interval of its own. What never changes shares one, but comes only once, so it does not count.
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
    MaxUnion,
    Plan,
    Project,
    Relation,
    Rstream,
    SemiJoin,
    Source,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.algebra.tree import once_per_node

__all__ = ["shares_intervals"]


@once_per_node
def shares_intervals(plan: Plan) -> bool:
    """Whether elements begin and end only at the few instants at which windows move."""
    match plan:
        case Window(_, TimeWindow(slide=slide)):
            return slide > 1
        case Source() | Relation() | Window():
            return False
        case Filter() | Project() | Distinct() | Aggregate() | Istream() | Dstream() | Rstream():
            return shares_intervals(plan.input)
        case (
            Join()
            | SemiJoin()
            | AntiJoin()
            | Union()
            | MaxUnion()
            | Difference()
            | StrictDifference()
            | Intersect()
        ):
            # One side that never changes takes on the intervals of the other.
            moving = [side for side in (plan.left, plan.right) if not is_constant(side)]
            return bool(moving) and all(map(shares_intervals, moving))
        case _:
            assert_never(plan)
