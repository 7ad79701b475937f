"""Estimates of windows: for how long elements stay, and which of them are remembered."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.optimizer import characteristics as shape
from tidemill.optimizer.estimates.flow import Flow, Work, never, shaped
from tidemill.optimizer.estimates.rows import held_back
from tidemill.optimizer.selectivity import harmonic, seen, selectivity
from tidemill.physical import signed

if TYPE_CHECKING:
    from tidemill.model.schema import Schema
    from tidemill.physical import interval

__all__ = ["row_window", "session_window", "time_window"]


def time_window(operator: interval.TimeWindow, below: Flow) -> Work:
    """Each element for as long as the window is."""
    for_ever = below.pace.for_ever
    size = for_ever if operator.size is None else float(operator.size)
    slide = float(operator.slide)
    out = shaped(below, shape.advance(below.triple, min(size, for_ever), slide))
    later = below.delay - (slide / 2 if slide > 1 else 0.0)
    return Work(replace(out, delay=later, is_chained=False), below.rows)


def row_window(operator: interval.RowWindow, below: Flow) -> Work:
    """Each element until enough of its group have followed; groups are remembered for ever."""
    keys = _columns(operator.schema, operator.partition_by)
    groups, rate = below.values(keys), below.edge.rate
    had = seen(groups, rate * below.pace.for_ever)
    unseen = 0.0 if operator.unless is None else selectivity(operator.unless, below.columns)
    opened = min(had * (operator.rows + (operator.slide - 1) / 2), rate * below.pace.for_ever)
    due = below.in_step
    touched = min(opened, due * (1 + operator.slide)) * below.pace.steps
    state = {
        "pending": below.pending(below.lag),
        "open": opened * (1 - unseen),
        "counts": had * (1 - unseen),
    }
    window = shape.partitioned_window(below.triple, float(operator.rows), groups)
    granule = max(window.granule, operator.slide * groups * below.edge.distance)
    coarse = window if operator.slide == 1 else window._replace(granule=granule)
    out = shaped(below, coarse)
    if unseen:
        share = 1 - unseen
        out = (
            replace(out, edge=replace(out.edge, distance=out.edge.distance / share))
            if (share > 0)
            else never(out)
        )
    out = replace(out, is_chained=True)
    return Work(_in_form(operator, out, groups), below.rows, state, scanned=touched)


def session_window(operator: interval.SessionWindow, below: Flow) -> Work:
    """Each element until its group has paused."""
    keys = _columns(operator.schema, operator.partition_by)
    groups = below.values(keys)
    if below.edge.rate <= 0:
        return Work(
            _in_form(operator, below, groups), state={"pending": 0.0, "open": 0.0, "sessions": 0.0}
        )
    out = shaped(below, shape.session_window(below.triple, float(operator.gap), groups))
    between = groups * below.edge.distance
    active = groups * (1 - exp(-operator.gap / between))
    touched = min(active, below.in_step) * below.pace.steps
    state = {"pending": below.pending(below.lag), "open": out.edge.size, "sessions": active}
    return Work(_in_form(operator, out, groups), below.rows, state, scanned=touched)


def _in_form(
    operator: interval.RowWindow | interval.SessionWindow, out: Flow, groups: float
) -> Flow:
    """In signed form elements leave when they come in; in interval form, when they go out."""
    if isinstance(operator, signed.RowWindow | signed.SessionWindow):
        return replace(out, is_signed=True, is_ahead=False, delay=out.lag)
    return held_back(out, operator.max_delay, out.edge.length * harmonic(groups))


def _columns(schema: Schema, names: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(Column(name, schema[name].type) for name in names)
