"""State removal: from a tree towards less memory, by merging stages (Z31).

The results that one stage keeps for another are not kept any more if the two become one stage. Of
all states that one is removed first that costs least CPU for a row that is no longer kept; the
ratio may be negative, and then both fall. After the last one there is one stage of all.

What differs from the printed listing: the plan to begin with is looked at, too; of equal ratios the
larger state goes; a way on which nothing is qualified says so by ending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.search.model import alike
from tidemill.optimizer.search.neighbours import merged, replaced
from tidemill.physical.joining.tree import Stage, stages, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.optimizer.search.tree_cost import Plan, Pricing

__all__ = ["state_removal"]

_NOTHING = 1e-300


def state_removal(pricing: Pricing, start: Plan) -> Iterator[Plan]:
    """The plans on the way from a tree to one stage of all, each with a state less."""
    plan = start
    while (links := list(_links(plan))) and not pricing.box.is_over:
        parent, child = min(links, key=lambda link: _ratio(pricing, *link))
        plan = pricing.plan(replaced(plan.tree, parent, merged(parent, child)))
        yield plan


def _links(plan: Plan) -> Iterator[tuple[Stage, Stage]]:
    for parent in stages(plan.tree):
        for child in parent.children:
            if isinstance(child, Stage):
                yield parent, child


def _ratio(pricing: Pricing, parent: Stage, child: Stage) -> tuple[float, float, str]:
    """How much more CPU a row of a state's memory costs, if the state is removed."""
    before = pricing.stage(parent.masks).cpu + pricing.stage(child.masks).cpu
    after = pricing.stage(merged(parent, child).masks).cpu
    rows = pricing.model.held(child.mask)
    return alike((after - before) / max(rows, _NOTHING)), -alike(rows), text(child)
