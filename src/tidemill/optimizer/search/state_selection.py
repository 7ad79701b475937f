"""State selection: from one stage of all towards less CPU, by keeping results (Z28, Z29).

Two parts of the topmost stage are joined below it, if the plan costs less CPU that way and keeps no
more than it may; then two parts of what the topmost stage is now. Looked at first are those that
save most as far as can be seen without pricing the whole; of others that rank less than ``tries``
more are priced.

A part that is a stage itself may be merged with the new one, if both CPU and memory fall (Z29); so
stages of three and more come about.

What differs from the printed listing: a pair that needs too much memory is passed over, where the
listing stops; the frequency of an edge counts the orders in which its ends follow each other, since
each edge of a tree is once in every order; sizes have the window in them.
"""

from __future__ import annotations

from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING

from tidemill.optimizer.search.costs import NO_LIMITS
from tidemill.optimizer.search.model import alike
from tidemill.optimizer.search.neighbours import merged, pulled, replaced
from tidemill.optimizer.search.order import probing_cost
from tidemill.physical.joining.tree import Stage, flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.optimizer.search.costs import Limits
    from tidemill.optimizer.search.tree_cost import Orders, Plan, Pricing

__all__ = ["Rank", "state_selection"]

_TRIES = 6
"""So many pairs of parts are priced in a round."""

_FEW = 16
"""In stages of so many parts, what each pair saves is estimated."""

_TWO = 2


class Rank(Enum):
    """Which pair is looked at first."""

    FREQUENCY = "frequency"
    """The most often consecutive one, by its size: the printed rank."""
    SAVING = "saving"
    """The one that saves most if the orders of all others stay as they are."""


def state_selection(
    pricing: Pricing,
    limits: Limits = NO_LIMITS,
    start: Plan | None = None,
    *,
    rank: Rank = Rank.SAVING,
    tries: int = _TRIES,
) -> Iterator[Plan]:
    """The plans on the way from a plan to one with less CPU, each cheaper than the one before.

    Args:
        pricing: Which tells what trees cost.
        limits: How much memory there may be; it is not left while the way is gone.
        start: Where the way begins; one stage of all inputs if it is not given.
        rank: Which pair is looked at first.
        tries: How many pairs are priced in a round.
    """
    plan: Plan | None = start or pricing.plan(flat(pricing.model.graph.inputs))
    while plan is not None and isinstance(plan.tree, Stage) and len(plan.tree.children) > _TWO:
        plan = _next(pricing, limits, plan, rank, tries)
        if plan is not None:
            yield plan


def _next(pricing: Pricing, limits: Limits, plan: Plan, rank: Rank, tries: int) -> Plan | None:
    """The plan with one state more that is cheaper, or none."""
    assert isinstance(plan.tree, Stage), "it has parts"
    top = plan.tree
    worth = _worth(pricing, top, plan.orders[top], rank)
    model = pricing.model
    pairs = [
        (worth(one, other), one, other)
        for one, other in combinations(range(len(top.masks)), _TWO)
        if model.is_linked(top.masks[one], top.masks[other])
        and model.held(top.masks[one] | top.masks[other]) + plan.memory <= limits.memory
    ]
    pairs.sort(key=lambda pair: (-alike(pair[0]), pair[1:]))
    for _, one, other in pairs[:tries]:
        if pricing.box.is_over:
            return None
        found = pricing.plan(pulled(top, top.children[one], top.children[other]))
        if alike(found.cpu) < alike(plan.cpu):
            return _merged(pricing, found, top.masks[one] | top.masks[other])
    return None


def _merged(pricing: Pricing, plan: Plan, mask: int) -> Plan:
    """The plan with the new stage merged with those below it, where CPU and memory fall (Z29)."""
    while True:
        new = next(stage for stage in plan.orders if stage.mask == mask)
        for child in new.children:
            if isinstance(child, Stage):
                found = pricing.plan(replaced(plan.tree, new, merged(new, child)))
                if alike(found.cpu) < alike(plan.cpu) and alike(found.memory) < alike(plan.memory):
                    plan = found
                    break
        else:
            return plan


def _worth(pricing: Pricing, top: Stage, orders: Orders, rank: Rank) -> Callable[[int, int], float]:
    """How good it seems to join two parts of a stage below it."""
    model, masks = pricing.model, top.masks
    if rank is Rank.SAVING and len(masks) <= _FEW:
        return lambda one, other: _saved(pricing, masks, orders, one, other)
    frequency: dict[tuple[int, int], int] = {}
    for root, order in enumerate(orders):
        for pair in zip((root, *order), order, strict=False):
            key = min(pair), max(pair)
            frequency[key] = frequency.get(key, 0) + 1
    return lambda one, other: (
        frequency.get((one, other), 0) / max(model.size(masks[one] | masks[other]), 1e-300)
    )


def _saved(pricing: Pricing, masks: tuple[int, ...], orders: Orders, one: int, other: int) -> float:
    """What joining two parts below saves at least, as the orders of the others can stay."""
    model, costs = pricing.model, pricing.model.costs
    both = [*masks, masks[one] | masks[other]]
    new = len(masks)
    saved = -pricing.binary(masks[one], masks[other])[0]
    joined = []
    for root, order in enumerate(orders):
        kept = tuple(number for number in order if number not in (one, other))
        saved += probing_cost(model, both, root, order)
        if root in (one, other):
            saved += (
                model.size(masks[root])
                * model.turnover(masks[root])
                * (costs.insert + costs.delete)
            )
            joined.append(probing_cost(model, both, new, kept))
        else:
            first = min(order.index(one), order.index(other))
            kept = (*kept[:first], new, *kept[first:])
            saved -= probing_cost(model, both, root, kept)
    rate = model.size(both[new]) * model.turnover(both[new])
    return saved - min(joined) - rate * (costs.insert + costs.delete)
