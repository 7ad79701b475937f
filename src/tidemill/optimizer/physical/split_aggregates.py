"""Scalar aggregates in two parts: one wherever the rows are, the other in one partition.

    Aggregate                       second part
      Exchange to one partition       Exchange to one partition
        input                 ->        first part
                                          input

Which operators have two parts, and that they are equal, is said in ``aggregate/parts.py``.

The exchange carries an element for each interval of a batch and partition instead of each row. It
stays above time windows, which then run where the rows are (``push_exchanges.py``). Where the input
is in one partition already there is no exchange, and nothing to split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.physical.operators.aggregate.parts import in_parts
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
        case Apply(whole, (Exchange(rows, ()),)):
            parts = in_parts(whole)
            if parts is None:
                return part
            first, second = parts
            moved = Exchange(Apply(first, (rows,)), (), first.schema)
            return Apply(second, (moved,), part.epoch)
        case _:
            return part
