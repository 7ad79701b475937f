"""Choices: a plan, whether it is qualified, and what else was looked at.

A plan is qualified if neither its CPU nor its memory exceeds a limit (Z23). All qualified plans
give results at the same rate, that of their inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.optimizer.search.model import alike

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.search.costs import Limits
    from tidemill.optimizer.search.tree_cost import Plan

__all__ = ["Candidate", "Choice", "choose"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that could be chosen.

    Attributes:
        found_by: What found it.
        plan: The plan.
    """

    found_by: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why.

    Attributes:
        found_by: What found the plan.
        plan: The plan.
        limits: How much it may take.
        alternatives: What else could be chosen, as it was found.
        looked_at: How many plans were priced.
    """

    found_by: str
    plan: Plan
    limits: Limits
    alternatives: tuple[Candidate, ...] = field(default=())
    looked_at: int = 1

    @property
    def is_qualified(self) -> bool:
        """Whether the plan takes no more than is allowed."""
        return self.plan.is_qualified(self.limits)

    @property
    def why(self) -> str:
        """In a line: by what the plan was found, and what it takes or lacks."""
        cpu, memory = self.plan.cpu, self.plan.memory
        lacks = [
            f"{name} {taken:.4g} of {limit:.4g}"
            for name, taken, limit in (
                ("CPU", cpu, self.limits.cpu),
                ("memory", memory, self.limits.memory),
            )
            if taken > limit
        ]
        if lacks:
            return f"nothing within the limits; the nearest, by {self.found_by}: {', '.join(lacks)}"
        return f"the cheapest of {self.looked_at}, by {self.found_by}"


def choose(candidates: Iterable[Candidate], limits: Limits, *, looked_at: int = 0) -> Choice:
    """The cheapest of the qualified plans; if there is none, the one that lacks least.

    Of plans that cost the same, the first is chosen.
    """
    found = list(candidates)
    qualified = [one for one in found if one.plan.is_qualified(limits)]
    if qualified:
        best = min(qualified, key=lambda one: one.plan.rating[:2])
    else:
        best = min(found, key=lambda one: _lack(one.plan, limits))
    others = tuple(one for one in found if one is not best)
    return Choice(best.found_by, best.plan, limits, others, max(looked_at, len(found)))


def _lack(plan: Plan, limits: Limits) -> tuple[float, float, float]:
    """How far a plan is from being qualified, and what it costs."""
    cpu, memory, _ = plan.rating
    return alike(limits.share(plan.cpu, plan.memory)), cpu, memory
