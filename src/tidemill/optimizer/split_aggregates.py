"""Scalar aggregates in two parts: one wherever the rows are, the other in one partition.

    Aggregate                       Aggregate of what is combined
      Exchange to one partition       Exchange to one partition
        input                 ->        Combine
                                          input

Condition: many elements of the input share their interval (``panes``), and every aggregate can be
had from sums and extremes. Elsewhere each element would pass by itself, and carry more.
Equal by the law of ``Combine``, to the last bit.

The exchange carries an element for each interval of a batch and partition instead of each row. It
stays above time windows, which then run where the rows are (``push_exchanges.py``). Where the input
is in one partition already there is no exchange, and nothing to split.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.physical import interval
from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, rebuilt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["split_aggregates"]


def split_aggregates(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with scalar aggregates in two parts where that pays.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    return rebuilt(plan, _split)


def _split(part: PhysicalPlan) -> PhysicalPlan:
    match part:
        case Apply(
            interval.Aggregate(keys=(), panes=True, aggregates=aggregates) as whole,
            (Exchange(rows, ()),),
        ) if interval.can_combine(a.call for a in aggregates):
            combine = interval.Combine(tuple(a.call for a in aggregates))
            moved = Exchange(Apply(combine, (rows,)), (), combine.schema)
            return Apply(replace(whole, panes=False, combined=True), (moved,))
        case _:
            return part
