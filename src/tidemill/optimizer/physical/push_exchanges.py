"""Exchanges below time windows: rows change partition before they get their validity, or signs.

    Exchange by k            TimeWindow
      TimeWindow      ->       Exchange by k
        input                    input

A time window looks at one row at a time and keeps its values, so it does not matter where it
stands; nor does it where a row becomes two messages, one when it comes and one when it
goes. Below it, a row still has the start it came with, and the window is computed by those that use
it. So what is left to do where rows come in is to filter and to project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, rebuilt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.physical.operator import Operator
    from tidemill.physical.traits import Traits

__all__ = ["push_exchanges"]


def push_exchanges(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with exchanges below time windows.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    return rebuilt(plan, _pushed)


def _pushed(part: PhysicalPlan) -> PhysicalPlan:
    if not isinstance(part, Exchange):
        return part
    windows: list[Operator] = []
    source = part.input
    while isinstance(source, Apply) and _is_anywhere(source.traits):
        windows.append(source.operator)
        (source,) = source.inputs
    result: PhysicalPlan = Exchange(source, part.keys, part.schema)
    for window in reversed(windows):
        result = Apply(window, (result,))
    return result


def _is_anywhere(traits: Traits) -> bool:
    """Whether it does not matter where it stands, and nothing is saved by doing it early."""
    return traits.row_by_row and not traits.keeps_time
