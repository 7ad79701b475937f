"""Sharing: what the planner changes of new queries because of others that begin with them.

Equal parts of queries are found where the graph of all is made, and cost nothing to plan. Here
parts are made equal that are not: queries that differ in the size of their windows get one join.

It is asked of new queries only, when all of them have their plans. What was chosen is part of the
plan, with a decision: so it stays over restarts, and when other queries come or go. It depends on
how often rows come, so it is asked only if that is known of all streams.

Law: the answer of each query is that of the plan before, at every instant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemill.algebra.plan import Relation
from tidemill.algebra.tree import streams_of, walk
from tidemill.optimizer.constants import DEFAULTS
from tidemill.optimizer.cost import cost_of
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.physical.check import check_plan
from tidemill.optimizer.physical.labels import Labels
from tidemill.optimizer.physical.share_windows import share_windows
from tidemill.optimizer.planned import PhysicalStep
from tidemill.optimizer.statistics import Statistics
from tidemill.physical.plan import walk_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.physical.share_windows import SharedWindows
    from tidemill.optimizer.planned import Planned
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["STEP", "with_shared_windows"]

STEP: Final = "share_windows"
"""What has changed a plan."""


def with_shared_windows(planned: Mapping[str, Planned], new: Collection[str]) -> dict[str, Planned]:
    """All queries, the new ones on the joins of others where that is expected to pay.

    Args:
        planned: How each query is computed, if it is by itself.
        new: The queries that do not run yet.
    """
    epochs = {planned[name].target.epoch for name in new}
    asked = {n: one for n, one in planned.items() if one.target.epoch in epochs and _is_known(one)}
    begin = asked.keys() & set(new)
    if not begin or len(asked) == 1:
        return dict(planned)
    nodes = (node for one in asked.values() for node in walk(one.bound))
    relations = [node for node in nodes if isinstance(node, Relation)]
    lasting = {node.name for node in relations if node.validity is None}
    known = Statistics(
        {n: edge for one in asked.values() for n, edge in one.statistics.inputs.items()},
        {t: share for one in asked.values() for t, share in one.statistics.conditions.items()},
    )
    pace = Pace(partitions=max(one.target.partitions or 1 for one in asked.values()))
    constants = next((one.constants for one in asked.values()), DEFAULTS)
    names = {node.name for node in relations}

    def cost(plans: Mapping[str, PhysicalPlan]) -> PlanCost:
        return cost_of(plans, known, constants, pace, names)

    plans = {name: one.physical for name, one in asked.items()}
    done = share_windows(plans, begin, lasting, cost)
    labels = _labels(asked.values(), done)
    return {
        name: _changed(one, name, done, labels) if name in begin else one
        for name, one in planned.items()
    }


def _is_known(planned: Planned) -> bool:
    """Whether it is known how often rows come on its streams: a guess may not make it worse."""
    return streams_of(planned.bound) <= planned.statistics.inputs.keys()


def _labels(asked: Collection[Planned], done: SharedWindows) -> Labels:
    """What is known of all parts, by the names that they have now."""
    patterns = {n: p for one in asked for n, p in one.labels.patterns.items()}
    reasons = {n: r for one in asked for n, r in one.labels.reasons.items()}
    return Labels(patterns, reasons).moved(done.names)


def _changed(planned: Planned, name: str, done: SharedWindows, known: Labels) -> Planned:
    """A new query with what was decided."""
    decided = replace(planned, decisions=(*planned.decisions, *done.decisions[name]))
    physical = done.plans[name]
    if physical.fingerprint == planned.physical.fingerprint:
        return decided
    target = planned.target
    check_plan(planned.bound, planned.logical, physical, target.answer, target.stages)
    here = {part.fingerprint: part.fingerprint for part in walk_physical([physical])}
    step = PhysicalStep(STEP, planned.physical, physical)
    return replace(
        decided,
        physical=physical,
        labels=known.moved(here).completed(physical),
        own_steps=(*planned.own_steps, step),
    )
