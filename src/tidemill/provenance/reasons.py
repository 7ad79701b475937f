"""Reasons: what it means that a candidate for a row ends at an operator."""

from __future__ import annotations

from typing import assert_never

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
from tidemill.algebra.text import expr_text

__all__ = ["reason_of"]


def reason_of(operator: Plan) -> str:
    """What it means that something ends at an operator."""
    match operator:
        case Filter(_, predicate):
            return f"{expr_text(predicate)} is not true"
        case Window(_, spec):
            return _window_reason(spec)
        case Join() | SemiJoin():
            return "it has no partner"
        case AntiJoin():
            return "a partner keeps it back"
        case Difference() | StrictDifference():
            return "rows on the right take it away"
        case Intersect():
            return "it is not on the other side"
        case Istream():
            return "it was there an instant before"
        case Dstream():
            return "it is still there, or was not there an instant before"
        case Source() | Relation():
            return "it is there at other instants"
        case Aggregate() | Distinct() | Rstream() | Union() | MaxUnion() | Project():
            return "it is not there at the instant"
        case _:
            assert_never(operator)


def _window_reason(spec: TimeWindow | RowWindow | SessionWindow | Unbounded) -> str:
    match spec:
        case TimeWindow():
            return "it is not in the window at the instant"
        case RowWindow():
            return "later rows have displaced it"
        case SessionWindow():
            return "its session is over"
        case Unbounded():
            return "it had not come yet"
        case _:
            assert_never(spec)
