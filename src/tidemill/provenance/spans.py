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
from tidemill.model.batch import END, START, TIME_TYPE
from tidemill.model.time import END_OF_TIME

if TYPE_CHECKING:
    from tidemill.algebra.plan import WindowSpec
    from tidemill.model.time import Time
    from tidemill.provenance.leaves import Leaf

__all__ = ["SINCE", "UNTIL", "is_steady", "own_span", "shown"]

SINCE, UNTIL = "@since", "@until"
"""From when to when a row is there, as it is told; NULL where that is not known."""


def shown(
    plan: Plan, leaf: Leaf | None = None, moved: Time | None = None
) -> tuple[pl.Expr, pl.Expr]:
    """What is told of rows of a plan, or of a leaf of it, in the place of ``START`` and ``END``.

    Args:
        plan: The plan, with hidden columns.
        leaf: The leaf; ``None`` for rows of the plan itself.
        moved: The instant at which they came or went, if that is what is known of them.
    """
    start, end = pl.col(START), pl.col(END)
    if leaf is not None and isinstance(leaf.plan, Source):
        own = own_span(leaf.own, leaf.columns[0])
        if own is not None:
            return own[0].alias(SINCE), own[1].alias(UNTIL)
    if not is_steady(plan):
        start, end = (
            pl.when(one == moved).then(one) if moved is not None else pl.lit(None, TIME_TYPE)
            for one in (start, end)
        )
    return start.alias(SINCE), end.alias(UNTIL)


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
