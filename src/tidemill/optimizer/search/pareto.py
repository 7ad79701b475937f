"""Dominance: which plans are worth choosing from, where CPU and memory both count (Z33).

A plan dominates another if it takes no more of either, and less of one. The best plans are those
that none dominates: each of them is the cheapest one for some limits.

>>> from tidemill.optimizer.search.candidate import Candidate
>>> from tidemill.optimizer.search.tree_cost import Plan
>>> costs = {"a": (3, 1), "b": (3, 2), "c": (1, 4)}
>>> found = [Candidate(name, Plan(0, {}, *cost)) for name, cost in costs.items()]
>>> [one.found_by for one in best_of(found)]
['c', 'a']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.search.model import alike

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.search.candidate import Candidate
    from tidemill.optimizer.search.tree_cost import Plan

__all__ = ["best_of", "dominates"]


def dominates(one: Plan, other: Plan) -> bool:
    """Whether a plan takes no more than another of both CPU and memory, and less of one."""
    first, second = _rating(one), _rating(other)
    return first[0] <= second[0] and first[1] <= second[1] and first != second


def best_of(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Those that no other dominates, the least CPU first; of equal ones the first one."""
    best: list[Candidate] = []
    for one in sorted(candidates, key=lambda candidate: _rating(candidate.plan)):
        if not best or _rating(one.plan)[1] < _rating(best[-1].plan)[1]:
            best.append(one)
    return tuple(best)


def _rating(plan: Plan) -> tuple[float, float]:
    return alike(plan.cpu), alike(plan.memory)
