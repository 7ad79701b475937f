"""The join switch: what a running query may change its plan to, when statistics have changed (Z35).

Two joins that follow each other change places, if the upper one has become the more selective: what
it took from above, it takes from below. Of all switches of a plan the best is given, by the whole
cost and not by the two selectivities, since the rates count as well. It is small on purpose: only
one state is another one, so little has to be moved.

>>> from tidemill.optimizer.search.costs import Costs
>>> from tidemill.optimizer.search.join_graph import JoinGraph
>>> from tidemill.physical.joining.tree import Stage, text
>>> from tidemill.optimizer.search.tree_cost import Pricing
>>> running = Stage((Stage((0, 1)), 2))
>>> graph = JoinGraph((20.0,) * 3, (5.0,) * 3, {(0, 1): 0.02, (1, 2): 0.005})
>>> switched = join_switch(Pricing(graph, Costs()), running)
>>> switched and text(switched.tree)
'(0 (1 2))'
>>> stable = JoinGraph((20.0,) * 3, (5.0,) * 3, {(0, 1): 0.005, (1, 2): 0.02})
>>> join_switch(Pricing(stable, Costs()), running) is None
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.search.costs import NO_LIMITS
from tidemill.optimizer.search.neighbours import exchanges

if TYPE_CHECKING:
    from tidemill.optimizer.search.costs import Limits
    from tidemill.optimizer.search.tree_cost import Plan, Pricing
    from tidemill.physical.joining.tree import JoinTree

__all__ = ["CLEARLY", "join_switch"]

CLEARLY = 0.9
"""A plan is left for another one that takes less than this share of it."""


def join_switch(
    pricing: Pricing, running: JoinTree, limits: Limits = NO_LIMITS, *, clearly: float = CLEARLY
) -> Plan | None:
    """The plan that one switch makes of the running one, or none if none is clearly better.

    Args:
        pricing: Which tells what trees cost now.
        running: The tree that runs.
        limits: How much a plan may take. If the running one takes more, a switch is better if it
            lacks clearly less; else if it costs clearly less and stays within the limits.
        clearly: Less than this share is clearly less, so that a plan does not change to and fro.
    """
    now = pricing.plan(running)
    plans = [pricing.plan(tree) for tree in exchanges(running)]
    if not plans:
        return None
    best = min(plans, key=lambda plan: plan.badness(limits))
    if now.is_qualified(limits):
        is_better = best.is_qualified(limits) and best.cpu < clearly * now.cpu
    else:
        is_better = best.badness(limits)[0] < clearly * now.badness(limits)[0]
    return best if is_better else None
