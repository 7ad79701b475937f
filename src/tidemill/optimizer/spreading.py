"""Spreading: whether the rows of a query go to all partitions by their keys, or to one.

Each operator is called in each step in each partition that it has rows in. Of few rows these calls
cost more than the rows do; in one partition they are made once.

Law: a query is in one partition only if that costs clearly less in all, and if the partition that
has most to do has no more to do than before; so no step takes longer, even where each partition has
a processor of its own. It is asked only if it is known how often rows come on every stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.tree import streams_of
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.planning import Open, Spread
from tidemill.optimizer.variants import CLEARLY
from tidemill.physical.plan import Exchange, walk_physical

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["choose_spread", "in_one", "may_gather"]

_NO_LONGER = 1.05


def may_gather(
    query: Plan,
    planning: Planning,
    physical: PhysicalPlan,
    partitions: int | None,
    known: Statistics,
) -> bool:
    """Whether there is something to choose.

    Args:
        query: What the query means.
        planning: The settings, and what they leave open.
        physical: Its plan, as usual.
        partitions: How many partitions there are; ``None`` for any number.
        known: What is known of what it reads.
    """
    is_open = planning.optimized and Open.SPREAD in planning.left_open
    if not is_open or partitions is None or partitions == 1:
        return False
    exchanges = [part for part in walk_physical([physical]) if isinstance(part, Exchange)]
    return any(one.keys for one in exchanges) and streams_of(query) <= known.inputs.keys()


def in_one(planning: Planning) -> Planning:
    """The settings that gather rows in one partition."""
    return replace(planning, spread=Spread.ONE)


def choose_spread(spread: PlanCost, gathered: PlanCost) -> tuple[Spread, Decision]:
    """Where the rows of a query go, and why.

    Args:
        spread: What the usual plan is expected to take.
        gathered: What it is expected to take in one partition.
    """
    is_cheap = gathered.cpu < CLEARLY * spread.cpu
    is_quick = gathered.busiest <= _NO_LONGER * spread.busiest
    best, other = (gathered, spread) if is_cheap and is_quick else (spread, gathered)
    names = {id(spread): Spread.KEYS, id(gathered): Spread.ONE}
    if best is gathered:
        why = "few rows: steps cost calls, and these are made once"
    elif is_cheap:
        why = "one partition would have more to do than any has now"
    else:
        why = "one partition would not be clearly cheaper"
    left = Alternative(names[id(other)].value, other.cpu, other.memory)
    chosen = names[id(best)]
    return chosen, Decision("spread", chosen.value, best.cpu, (left,), why, best.memory)
