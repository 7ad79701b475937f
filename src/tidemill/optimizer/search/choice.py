"""Choices: a plan, whether it is qualified, and what else was looked at.

A plan is qualified if neither its CPU nor its memory exceeds a limit (Z23). All qualified plans
give results at the same rate, that of their inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from tidemill.optimizer.search.candidate import Candidate
from tidemill.optimizer.search.costs import Limits
from tidemill.optimizer.search.pareto import best_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.search.tree_cost import Plan

__all__ = ["Candidate", "Choice", "Needs", "choose"]


@dataclass(frozen=True, slots=True)
class Needs:
    """What limits would have to be for a plan that was looked at.

    Attributes:
        cpu: The limit of CPU, if that of memory stays; infinite if no plan keeps so little.
        memory: The limit of memory, if that of CPU stays; infinite if no plan is so cheap.
        both: Limits for the plan that lacks least.
    """

    cpu: float
    memory: float
    both: Limits

    def text(self) -> str:
        """What would do, in words."""
        ways = [
            f"{name} {limit:.4g}"
            for name, limit in (("CPU", self.cpu), ("memory", self.memory))
            if limit < inf
        ]
        return " or ".join(ways or [f"CPU {self.both.cpu:.4g} and memory {self.both.memory:.4g}"])


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why.

    Attributes:
        found_by: What found the plan.
        plan: The plan.
        limits: How much it may take.
        alternatives: What else could be chosen: of each search what it would choose, and all plans
            that no other dominates.
        looked_at: How many plans were priced.
        ended_by: What ended the search before all of it was done; empty if nothing did.
    """

    found_by: str
    plan: Plan
    limits: Limits
    alternatives: tuple[Candidate, ...] = field(default=())
    looked_at: int = 1
    ended_by: str = ""

    @property
    def is_qualified(self) -> bool:
        """Whether the plan takes no more than is allowed."""
        return self.plan.is_qualified(self.limits)

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The qualified plans that were found and that no other dominates, the least CPU first."""
        every = (Candidate(self.found_by, self.plan), *self.alternatives)
        return best_of(one for one in every if one.plan.is_qualified(self.limits))

    @property
    def needs(self) -> Needs:
        """What limits would have to be; those that there are, if the plan is qualified."""
        if self.is_qualified:
            return Needs(self.limits.cpu, self.limits.memory, self.limits)
        every = [self.plan, *(one.plan for one in self.alternatives)]
        plans = [plan for plan in every if plan.cpu < inf]
        limits = self.limits
        return Needs(
            min((plan.cpu for plan in plans if plan.memory <= limits.memory), default=inf),
            min((plan.memory for plan in plans if plan.cpu <= limits.cpu), default=inf),
            Limits(max(self.plan.cpu, limits.cpu), max(self.plan.memory, limits.memory)),
        )

    @property
    def why(self) -> str:
        """In a line: by what the plan was found, and what it takes or lacks."""
        ended = f", the search ended by {self.ended_by}" if self.ended_by else ""
        if self.is_qualified:
            return f"the cheapest of {self.looked_at}, by {self.found_by}{ended}"
        lacks = [
            f"{name} {taken:.4g} of {limit:.4g}"
            for name, taken, limit in (
                ("CPU", self.plan.cpu, self.limits.cpu),
                ("memory", self.plan.memory, self.limits.memory),
            )
            if taken > limit
        ]
        return (
            f"nothing of {self.looked_at} within the limits; the nearest, by {self.found_by}:"
            f" {', '.join(lacks)}; it would need {self.needs.text()}{ended}"
        )


def choose(
    candidates: Iterable[Candidate],
    limits: Limits,
    *,
    others: Iterable[Candidate] = (),
    looked_at: int = 0,
    ended_by: str = "",
) -> Choice:
    """The cheapest of the qualified plans; if there is none, the one that lacks least.

    Of plans that cost the same, the first is chosen.

    Args:
        candidates: The plans that may be chosen.
        limits: How much they may take.
        others: Plans that are told of as alternatives, but not chosen.
        looked_at: How many plans were priced to find these.
        ended_by: What ended the search for them.
    """
    found = list(candidates)
    best = min(found, key=lambda one: one.plan.badness(limits))
    every = [*found, *others]
    kept = [*_of_each_search(every, limits), *best_of(every)]
    trees = {one.plan.tree: one for one in reversed(kept) if one.plan.tree != best.plan.tree}
    alternatives = tuple(reversed(trees.values()))
    seen = max(looked_at, len(found))
    return Choice(best.found_by, best.plan, limits, alternatives, seen, ended_by)


def _of_each_search(candidates: Iterable[Candidate], limits: Limits) -> list[Candidate]:
    """What each search would choose."""
    best: dict[str, Candidate] = {}
    for one in candidates:
        known = best.get(one.found_by)
        if known is None or one.plan.badness(limits) < known.plan.badness(limits):
            best[one.found_by] = one
    return list(best.values())
