"""What it takes to go from one plan to another while a query runs, before it is done.

The formulas are those of Zhu (Z44, equations 12.1 to 12.7, as corrected) and of Krämer (KB59 to
KB63). With windows of W and rows that come at rates λ:

    Moving State     the answer pauses while states are matched, moved and computed: polynomial in W
    Parallel Track   both plans work for W, or for 2 W where rows that were joined are kept longer
    GenMig           both plans work for W
    replay           the new plan works off the rows of W once more

All times are in one unit, all rates are by that unit. Nothing here changes an answer.

>>> terms = Terms(compare=1.0, cursor=1.0, join=2.0, insert=3.0)
>>> matching(3, 3, terms), moving(3, 2, terms)
(36.0, 4.0)
>>> recomputing(10.0, 20.0, 0.5, terms)
700.0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tidemill.optimizer.cost import PACE, plan_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.constants import Constants
    from tidemill.optimizer.planned import Planned

__all__ = [
    "Terms",
    "beside",
    "joined_rate",
    "matching",
    "moving",
    "moving_pause",
    "moving_state",
    "new_box_rate",
    "new_box_work",
    "old_box_work",
    "parallel_track",
    "recomputing",
    "replaying",
]

_MICROSECONDS: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What single things take.

    Attributes:
        compare: To compare two names of columns.
        cursor: To give a state to another operator.
        join: To look whether two rows match.
        insert: To put a row into a state.
    """

    compare: float
    cursor: float
    join: float
    insert: float


# What is printed


def matching(old: int, new: int, terms: Terms) -> float:
    """To find out which states two plans of so many operators have in common."""
    return 4 * old * new * terms.compare


def moving(old: int, new: int, terms: Terms) -> float:
    """To move the states that two plans of so many operators can have in common."""
    return 2 * min(old, new) * terms.cursor


def recomputing(left: float, right: float, share: float, terms: Terms) -> float:
    """To compute the state of a join of states with so many rows (12.1)."""
    return left * right * (terms.join + terms.insert * share)


def joined_rate(left: float, right: float, window: float, share: float) -> float:
    """How often a pair leaves a join of streams with these rates (12.2)."""
    return 2 * left * right * window * share


def moving_state(old: int, new: int, unmatched: Iterable[float], terms: Terms) -> float:
    """For how long Moving State pauses the answer, given what unmatched states take (12.3)."""
    return matching(old, new, terms) + moving(old, new, terms) + sum(unmatched)


def parallel_track(window: float, height: int, *, ends_first: bool) -> float:
    """For how long Parallel Track runs both plans, if there is enough time for both (12.4).

    Args:
        window: How long the windows are.
        height: How many joins there are, one above the other, in the old plan.
        ends_first: Whether a pair ends with the first of its rows that ends, as in this engine, and
            not a window after its last row.
    """
    return window if ends_first or height <= 1 else 2 * window


def old_box_work(left: float, right: float, window: float, terms: Terms) -> float:
    """What a join of the old plan does in two windows (12.5)."""
    return 2 * window * _full(left, right, window, terms)


def new_box_work(left: float, right: float, window: float, terms: Terms) -> tuple[float, float]:
    """What a join of the new plan does in the first window and in the second (12.6, corrected).

    It begins empty: in the first window nothing expires, and it finds half as many partners.
    """
    filling = terms.insert * (left + right) * window + terms.join * left * right * window**2
    return filling, window * _full(left, right, window, terms)


def new_box_rate(left: float, right: float, share: float, window: float, time: float) -> float:
    """How often a pair leaves a join of the new plan some time after it began (12.7, corrected)."""
    return joined_rate(left, right, min(time, window), share)


def _full(left: float, right: float, window: float, terms: Terms) -> float:
    """What a join of full windows does: each row is put in, taken out and looked up."""
    return 2 * terms.join * left * right * window + 2 * terms.insert * (left + right)


# In the units of this engine: microseconds


def beside(plan: Planned, length: float) -> float:
    """The work of a plan that runs beside another one for a time, in microseconds."""
    if length <= 0:
        return 0.0
    return plan_cost(plan.physical, plan.statistics, plan.constants).cpu * length / _MICROSECONDS


def replaying(plan: Planned, length: float) -> float:
    """The work of a plan that gets all rows of a time at once, in microseconds."""
    if length <= 0:
        return 0.0
    seconds = length / _MICROSECONDS
    at_once = replace(PACE, step=seconds)
    return plan_cost(plan.physical, plan.statistics, plan.constants, at_once).cpu * seconds


def moving_pause(rows: float, constants: Constants) -> float:
    """For how long the answer pauses while so many rows go into other tables, in microseconds."""
    return rows * (constants.scanned + constants.operators["interval.Join"].row_in)
