"""Where it does not matter how often a row is there, as long as it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.plan import Aggregate

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["EXTREMES", "counts_no_copies"]

EXTREMES: Final = frozenset({"min", "max", "bool_and", "bool_or"})
"""Aggregates that are one of the values, so that the extreme of extremes is that of all."""


def counts_no_copies(plan: Plan) -> bool:
    """Whether a plan is an aggregate of which further copies of a row change nothing.

    Such are the least and the greatest, and all of DISTINCT values; and groups of which nothing is
    computed.
    """
    return isinstance(plan, Aggregate) and all(
        a.call.distinct or a.call.function in EXTREMES for a in plan.aggregates
    )
