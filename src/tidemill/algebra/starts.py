"""Starts: whether each row of an answer begins when the last of the rows begins that it is made of.

So it is for filters, projections, unions and inner joins over time windows: a row of the answer
is one combination of rows of the streams, and is valid while all of them are. So each row of the
answer belongs to rows from before an instant, or to later ones alone, whatever the plan is.
Parallel Track and the reference point rely on it (KB61, E-10).

An aggregate, DISTINCT or a set operation makes one row of many. Where that begins and ends depends
on the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

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
    Project,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import walk

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan, WindowSpec

__all__ = ["merging"]


def merging(plan: Plan) -> str | None:
    """What makes one row of several, or ends rows by what comes; ``None`` if nothing does."""
    found = (_merging(node) for node in walk(plan))
    return next((what for what in found if what is not None), None)


def _merging(node: Plan) -> str | None:
    """The same for one operator, as people write it."""
    match node:
        case Source() | Relation() | Filter() | Project() | Union():
            return None
        case Join(kind=kind):
            return None if kind is JoinKind.INNER else "an outer join"
        case Window(_, spec):
            return _ending(spec)
        case Aggregate():
            return "an aggregate"
        case Distinct():
            return "DISTINCT"
        case SemiJoin() | AntiJoin():
            return "IN or EXISTS"
        case MaxUnion() | Difference() | StrictDifference() | Intersect():
            return "a set operation"
        case Istream() | Dstream() | Rstream():
            return "a stream of changes"
        case _:
            assert_never(node)


def _ending(spec: WindowSpec) -> str | None:
    """A window whose rows end by what comes, if it is one."""
    match spec:
        case TimeWindow():
            return None
        case RowWindow():
            return "a window of ROWS"
        case SessionWindow():
            return "a SESSION window"
        case Unbounded():
            return "a window that keeps everything"
        case _:
            assert_never(spec)
