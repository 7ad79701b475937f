"""Spans: from when to when rows are there, as far as that can be told.

Only what matters at one instant is read. So from when to when a row of a stream is in its window is
told by its time and the window. Of other rows it is known if all that stands below them is made of
such rows by what neither counts nor takes away: then what has ended before the instant, or begins
after it, changes nothing. From when to when an aggregate, a difference or a row without a partner
is there depends on rows that were not read, and is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.plan import (
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Relation,
    RowWindow,
    SessionWindow,
    Source,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import walk
from tidemill.model.batch import TIME_TYPE
from tidemill.model.time import END_OF_TIME

if TYPE_CHECKING:
    from tidemill.algebra.plan import WindowSpec

__all__ = ["is_steady", "own_span"]


def is_steady(plan: Plan) -> bool:
    """Whether it is known from when to when rows are there that are there at an instant."""
    for node in walk(plan):
        match node:
            case Source() | Relation() | Filter() | Project() | Union():
                pass
            case Window(_, TimeWindow() | Unbounded()) | Join(kind=JoinKind.INNER):
                pass
            case _:
                return False
    return True


def own_span(plan: Plan, time: str) -> tuple[pl.Expr, pl.Expr] | None:
    """From when to when a row of a stream is in its window; NULL where that depends on others.

    Args:
        plan: What reads the stream, with nothing else.
        time: The column with the time of the row.

    Returns:
        The first instant, and the first after them; ``None`` if it cannot be told by its time.
    """
    spec: WindowSpec = TimeWindow(1)
    found = False
    while not isinstance(plan, Source):
        match plan:
            case Filter(below) | Project(below):
                plan = below
            case Window(below, own) if not found:
                spec, found, plan = own, True, below
            case _:
                return None
    return _span(spec, pl.col(time))


def _span(spec: WindowSpec, time: pl.Expr) -> tuple[pl.Expr, pl.Expr] | None:
    unknown = pl.lit(None, TIME_TYPE)
    match spec:
        case TimeWindow(size, slide):
            # The content moves at k·slide - 1.
            first = -(-(time + 1) // slide) * slide - 1
            past = -(-(time + size + 1) // slide) * slide - 1
            return first, pl.min_horizontal(past, pl.lit(END_OF_TIME, TIME_TYPE))
        case Unbounded():
            return time, pl.lit(END_OF_TIME, TIME_TYPE)
        case SessionWindow():
            return time, unknown
        case RowWindow(slide=slide):
            return (time if slide == 1 else unknown), unknown
