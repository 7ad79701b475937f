"""The strategies: ways through the trees, each from another plan to begin with (Z32).

- *mjoin-init* begins with one stage of all, which keeps least, and keeps results as long as that
  makes it cheaper (state selection).
- *bjtree-init* begins with the tree of binary joins that keeps little, and merges stages
  (state removal). The same way can be gone from other trees of binary joins.
- *descent* begins with any plan, and takes the best of all trees that are one move away, as long as
  there is a better one. Better is, as long as a plan is not qualified, what lacks less of the
  resource that lacks most; and from then on, what costs less CPU.

A strategy gives all plans on its way, until the box of the pricing is over. The first qualified one
is what the literature takes; of all of them, the best can be chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.search.costs import NO_LIMITS
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.neighbours import neighbours
from tidemill.optimizer.search.state_removal import state_removal
from tidemill.optimizer.search.state_selection import Rank, state_selection
from tidemill.physical.joining.tree import flat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.optimizer.search.costs import Limits
    from tidemill.optimizer.search.tree_cost import Plan, Pricing

__all__ = ["bjtree_init", "descent", "first_qualified", "mjoin_init"]


def mjoin_init(
    pricing: Pricing, limits: Limits = NO_LIMITS, *, rank: Rank = Rank.SAVING
) -> Iterator[Plan]:
    """One stage of all, then state selection."""
    start = pricing.plan(flat(pricing.model.graph.inputs))
    yield start
    yield from state_selection(pricing, limits, start, rank=rank)


def bjtree_init(pricing: Pricing, start: Plan | None = None) -> Iterator[Plan]:
    """A tree of binary joins, then state removal; min-state if no tree is given."""
    start = start or pricing.plan(min_state(pricing.model))
    yield start
    yield from state_removal(pricing, start)


def descent(pricing: Pricing, limits: Limits, start: Plan) -> Iterator[Plan]:
    """Better plans, each the best that is one move from the one before."""
    best = start
    while True:
        here, begin = best.badness(limits), best
        for tree in neighbours(begin.tree):
            if pricing.box.is_over:
                break
            plan = pricing.plan(tree)
            if (badness := plan.badness(limits)) < here:
                here, best = badness, plan
        if best is begin:
            return
        yield best


def first_qualified(plans: Iterable[Plan], limits: Limits) -> Plan | None:
    """The first plan on a way that takes no more than is allowed."""
    return next((plan for plan in plans if plan.is_qualified(limits)), None)
