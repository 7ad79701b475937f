"""What work costs: the formulas that prices of plans and the search of join trees have in common.

An operator costs something whenever it is called, and something for each row that comes and that
leaves. One that looks up rows in others costs something for each pair that it compares, and for
each row of state that it goes through to find them.

Law: ``cost.py`` prices finished plans, ``search/`` trees of joins before there is a plan, and both
by these formulas. So a tree costs in the search what its joins cost in the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from tidemill.optimizer.constants import OperatorCost

__all__ = ["PerLookUp", "called", "gone_through", "looked_at", "looked_up"]

_UNSORTED: Final = 32_768
"""About so many rows of a table are in segments too small to be searched."""

_MANY_MORE: Final = 64
"""Nor are those that have fewer rows than this for each row that looks for a partner."""


class PerLookUp(Protocol):
    """What looking up costs."""

    @property
    def compared(self) -> float:
        """For each pair of rows that is compared."""
        ...

    @property
    def scanned(self) -> float:
        """For each row of state that is looked at."""
        ...


def called(cost: OperatorCost, calls: float, taken: float, left: float) -> float:
    """What an operator costs, however it finds what it gives.

    Args:
        cost: Its constants.
        calls: How often it is called in a unit of time.
        taken: How many rows come in a unit of time.
        left: How many rows leave.
    """
    return cost.step * calls + cost.row_in * taken + cost.row_out * left


def looked_up(each: PerLookUp, compared: float, scanned: float) -> float:
    """What looking up costs.

    Args:
        each: What a pair and a row cost.
        compared: How many pairs are compared in a unit of time.
        scanned: How many rows of state are gone through.
    """
    return each.compared * compared + each.scanned * scanned


def looked_at(rounds: float, found: float, rows: float, *, keyed: bool) -> float:
    """How many rows of state are gone through in a unit of time.

    What is in large segments is found by key; small ones are given as they are.

    Args:
        rounds: How often rows look for partners.
        found: How many rows do, in all these rounds.
        rows: How many rows there are to find them in.
        keyed: Whether there is a key to look them up by.
    """
    if not (keyed and rounds):
        return rounds * rows
    return rounds * gone_through(rows, found / rounds)


def gone_through(rows: float, keys: float) -> float:
    """How many of some rows are gone through when so many keys are looked for."""
    return min(rows, max(_UNSORTED, _MANY_MORE * keys))
