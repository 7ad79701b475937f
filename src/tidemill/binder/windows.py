"""From window clauses to window specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import (
    NOW,
    Plan,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Window,
    WindowSpec,
)
from tidemill.errors import BindError, suggestion
from tidemill.lang.spans import span_of, value_span
from tidemill.model.time import END_OF_TIME, duration_text

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.lang.windows import WindowClause

__all__ = ["bind_window"]


_SMALLEST = {
    ("RANGE", "size"): "for the rows of the present instant only, write NOW",
    ("ROWS", "size"): "for the last row only, write ROWS 1",
    ("SESSION", "size"): "it is the longest pause within a session, as in SESSION 10 SECONDS",
    ("RANGE", "slide"): "leave SLIDE out to move with every instant",
    ("ROWS", "slide"): "leave SLIDE out to move with every row",
}


def bind_window(plan: Plan, clause: WindowClause, names: tuple[str, ...]) -> Plan:
    """The plan under the window; the plan itself for the window of one instant (K44, 10.7).

    Args:
        plan: What the window is put on.
        clause: The window.
        names: What the columns of PARTITION BY may be qualified with.

    Raises:
        BindError: The window is empty, does not move, skips rows or names an unknown column.
    """
    _check(clause)
    spec = _spec(clause, tuple(_column(plan, column, names) for column in clause.partition_by))
    return plan if spec == NOW else Window(plan, spec, span_of(clause))


def _spec(clause: WindowClause, partition_by: tuple[str, ...]) -> WindowSpec:
    if clause.frame == "NOW":
        return NOW
    if clause.size is None:
        return Unbounded()
    if clause.frame == "ROWS":
        return RowWindow(clause.size, clause.slide or 1, partition_by)
    if clause.frame == "SESSION":
        return SessionWindow(clause.size, partition_by)
    # A time window of each group is a time window of the whole (K39): nothing is left to partition.
    return TimeWindow(clause.size, clause.slide or 1)


def _check(clause: WindowClause) -> None:
    kind = clause.frame
    endless = "RANGE" if kind == "SESSION" else kind
    for key, value in (("size", clause.size), ("slide", clause.slide)):
        word = kind if key == "size" else "SLIDE"
        if value is not None and value <= 0:
            raise BindError(
                f"{word} must be positive",
                span=value_span(clause, key),
                hint=_SMALLEST[kind, key],
            )
        if value is not None and value >= END_OF_TIME:
            raise BindError(
                f"{word} is longer than time",
                span=value_span(clause, key),
                hint=f"for everything since the beginning, write {endless} UNBOUNDED",
            )
    if clause.slide is None:
        return
    if clause.size is None:
        raise BindError(
            "a window that keeps everything has nothing to slide",
            span=value_span(clause, "slide"),
            hint="leave SLIDE out, or give the window a size",
        )
    if clause.slide > clause.size:
        size, slide = (
            (str(clause.size), str(clause.slide))
            if kind == "ROWS"
            else (duration_text(clause.size), duration_text(clause.slide))
        )
        raise BindError(
            f"SLIDE {slide} is larger than {kind} {size}: rows in between would be in no window",
            span=value_span(clause, "slide"),
            hint=f"choose a SLIDE of at most {size}",
        )


def _column(plan: Plan, node: exp.Column, names: tuple[str, ...]) -> str:
    if node.table and node.table.lower() not in (name.lower() for name in names):
        raise BindError(
            f'"{node.table}" is not what this window stands behind',
            span=span_of(node),
            hint=f"write {node.name} alone",
        )
    for name in plan.schema.names:
        if name.lower() == node.name.lower():
            return name
    raise BindError(
        f'column "{node.name}" does not exist under this window',
        span=span_of(node),
        hint=suggestion(node.name, plan.schema.names),
    )
