"""Let windows skip what nobody asks for: instants before the first one that a query answers.

A query that is filled with kept rows answers from some instant on. What its windows hold before
that is computed for nothing, and costs a change of the answer for each row. So rows that begin
before that instant may begin a little later, many at once; those that also end before it are left
out.

    TimeWindow size=600        ->    TimeWindow size=600 wanted=9000

Condition: everything above the window makes the snapshot at an instant of those at that instant, so
no other window, no ISTREAM and no DSTREAM stands above it, on no way to the answer.
Equal from the instant on, because the snapshots of the window are; what is cut away before it may
differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, inputs, rebuilt, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.model.time import Time

__all__ = ["skip_the_past"]

_AT_AN_INSTANT: Final = (
    *(interval.Aggregate, interval.Combine, interval.Coalesce, interval.Counting),
    *(interval.Distinct, interval.Filter, interval.Join, interval.JoinTree),
    *(interval.MultiJoin, interval.Project, interval.Split, interval.Stretch, interval.Union),
    *(signed.Aggregate, signed.Counting, signed.Hold, signed.Join, signed.MultiJoin),
    *(signed.Stretch, signed.ToIntervals, signed.ToSigned),
)
"""Operators whose snapshot at an instant is made of those of their inputs at that instant."""


def skip_the_past(plan: PhysicalPlan, wanted: Time) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan of a query that answers from an instant on.

    Returns:
        The plan, and for each part of the given one the part that stands in its place, by
        fingerprint.
    """
    chosen = _with_nothing_but_instants_above(plan)

    def skipping(part: PhysicalPlan) -> PhysicalPlan:
        match part:
            case Apply(interval.TimeWindow() as window) if part.fingerprint in chosen:
                return Apply(replace(window, wanted=wanted), part.inputs, part.epoch)
            case _:
                return part

    return rebuilt(plan, skipping)


def _with_nothing_but_instants_above(plan: PhysicalPlan) -> frozenset[str]:
    """The parts below which nothing has been seen so far but what is made instant by instant."""
    parts = list(walk_physical([plan]))
    denied: set[str] = set()
    for part in reversed(parts):  # what stands above comes first
        passes = isinstance(part, Exchange) or (
            isinstance(part, Apply) and isinstance(part.operator, _AT_AN_INSTANT)
        )
        if part.fingerprint in denied or not passes:
            denied |= {below.fingerprint for below in inputs(part)}
    return frozenset(part.fingerprint for part in parts) - denied
