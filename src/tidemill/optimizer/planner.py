"""The planner: from what a query means to what runs.

A query goes through ``PHASES`` once for each way it may be planned: another form, another place of
NOT EXISTS, one partition instead of all. The plan that is expected to cost least is taken.
Sessions, both runtimes, EXPLAIN and the command line take what ``plan`` gives; nothing else plans.

Law: the answer of a planned query is that of the bound one, at every instant, whatever the target,
and a query is planned alike wherever and whenever that is done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.patterns import update_pattern
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.errors import PlanError
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.logical.spelling import respelled
from tidemill.optimizer.phases import PHASES, SHAPED, Draft
from tidemill.optimizer.physical.fold import stages_needed
from tidemill.optimizer.physical.labels import Labels
from tidemill.optimizer.physical.split_aggregates import SUBJECT
from tidemill.optimizer.planned import (
    CONTEXT,
    RESUME,
    TARGET,
    Context,
    PhysicalStep,
    Planned,
    Target,
)
from tidemill.optimizer.planning import Spread
from tidemill.optimizer.spreading import choose_spread, in_one, may_gather
from tidemill.optimizer.variants import Variant, choose_variant, variants
from tidemill.physical.cut_answer import cut_answer
from tidemill.physical.plan import Input, walk_physical
from tidemill.physical.smaller_windows import unshared

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.model.spans import Cut
    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.templates import Templates
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["plan", "recut", "resume"]


def plan(
    query: Plan,
    target: Target = TARGET,
    context: Context = CONTEXT,
    templates: Templates | None = None,
) -> Planned:
    """Plan a query.

    The first part of a scalar aggregate in two parts may take a stage of its own. A query that
    would need more stages than there are is planned with its aggregates in one part, as where there
    is only one partition, and if that is not enough, folded. This depends on the query and on the
    target alone, not on other queries: after a restart it has the same plan.

    Args:
        query: What it means, as bound.
        target: What the plan is made for.
        context: What is known besides.
        templates: The plans of alike queries, if they are kept.
    """
    ways = variants(query, context.planning, target.answer)
    made = [_planned(query, target, replace(context, planning=way), templates) for way in ways]
    if len(ways) == 1:
        return _spread(made[0], ways[0], context, templates)
    found = [_variant(way, one, context) for way, one in zip(ways, made, strict=True)]
    best, decision = choose_variant(found)
    chosen = made[found.index(best)]
    chosen = replace(chosen, decisions=(decision, *chosen.decisions))
    return _spread(chosen, best.planning, context, templates)


def _spread(
    usual: Planned, planning: Planning, context: Context, templates: Templates | None
) -> Planned:
    """The plan with its rows in all partitions, or in one."""
    query, target, known = usual.bound, usual.target, context.statistics
    if not may_gather(query, planning, usual.physical, target.partitions, known):
        return usual
    one = _planned(query, target, replace(context, planning=in_one(planning)), templates)
    spread, decision = choose_spread(_cost(usual, context), _cost(one, context))
    if spread is Spread.KEYS:
        return replace(usual, decisions=(*usual.decisions, decision))
    kept = (taken for taken in usual.decisions if taken.subject != SUBJECT)
    return replace(one, decisions=(*kept, decision))


def _cost(made: Planned, context: Context) -> PlanCost:
    """What a plan is expected to take."""
    pace = Pace(partitions=made.target.partitions or 1)
    relations = {node.name for node in walk(made.bound) if isinstance(node, Relation)}
    constants = context.planning.constants
    return plan_cost(made.physical, context.statistics, constants, pace, relations)


def _variant(way: Planning, made: Planned, context: Context) -> Variant:
    """What a plan is expected to cost."""
    pace = Pace(partitions=made.target.partitions or 1)
    relations = {node.name for node in walk(made.bound) if isinstance(node, Relation)}
    top = made.physical.fingerprint
    flow = estimate([made.physical], context.statistics, pace, relations)[top].flow
    cost = _cost(made, context)
    return Variant(way, cost.cpu, cost.memory, flow.delay)


def _planned(query: Plan, target: Target, context: Context, templates: Templates | None) -> Planned:
    """The plan with settings that leave nothing open."""
    draft = _run(query, replace(target, stages=None), context, templates)
    if target.stages is None:
        return draft
    if stages_needed(draft.physical) <= target.stages:
        return replace(draft, target=target)
    return _run(query, target, context, templates, partitions=1)


def resume(  # noqa: PLR0913 — what a plan is made for, and what is known of it
    query: Plan,
    physical: PhysicalPlan,
    target: Target,
    context: Context = CONTEXT,
    now: int = 0,
    *,
    decisions: tuple[Decision, ...] = (),
    templates: Templates | None = None,
) -> Planned:
    """A query that runs on with the plan it had, whatever this version would plan today.

    Args:
        query: What it means, as bound.
        physical: The plan that was kept.
        target: What that was made for.
        context: What was known besides when it was planned: what is known now is for new queries.
        now: The epoch that begins now, in case its answer is cut from now on.
        decisions: What was chosen when it was planned.
        templates: The plans of alike queries, if they are kept.
    """
    physical, whole = cut_answer(physical, target.cut, now), cut_answer(physical, None)
    alone, names = unshared(whole)  # windows are shared by queries, after each has its plan
    try:
        made = plan(query, replace(target, cut=None), context, templates)
    except PlanError:
        made = None  # what cannot be planned today runs on all the same
    if made is not None and made.physical.fingerprint == alone.fingerprint:
        # The same state; how joins probe, and what else is no part of that, stays as it was.
        labels = made.labels.before(names).completed(physical)
        return replace(made, physical=physical, labels=labels, target=target, decisions=decisions)
    patterns = {n.name: update_pattern(n) for n in walk(query) if isinstance(n, Source | Relation)}
    inputs = [part for part in walk_physical([physical]) if isinstance(part, Input)]
    labels = Labels(
        {part.fingerprint: patterns[part.name] for part in inputs},
        {part.fingerprint: "as it was planned" for part in inputs},
    ).completed(physical)
    if made is None:
        statistics = context.statistics
        return Planned(query, query, physical, labels, (), target, decisions, statistics)
    step = PhysicalStep(RESUME, made.physical, physical)
    steps = (*made.own_steps, step)
    return replace(
        made,
        physical=physical,
        labels=labels,
        own_steps=steps,
        target=target,
        decisions=decisions,
    )


def recut(planned: Planned, cut: Cut | None, now: int) -> Planned:
    """A query that runs on with the plan it has, of which other instants are wanted.

    Args:
        planned: What it runs with.
        cut: The instants that are wanted; ``None`` for all.
        now: The epoch that begins now.
    """
    if planned.target.cut == cut:
        return planned
    physical = cut_answer(planned.physical, cut, now)
    labels = planned.labels.completed(physical)
    return replace(
        planned, physical=physical, labels=labels, target=replace(planned.target, cut=cut)
    )


def _run(
    query: Plan,
    target: Target,
    context: Context,
    templates: Templates | None,
    partitions: int | None = None,
) -> Planned:
    narrowed = target if partitions is None else replace(target, partitions=partitions)
    # Before templates are looked for: constants are in order then.
    spelled = respelled(query) if context.planning.optimized else query
    draft = Draft(spelled, spelled, narrowed, context)
    draft = _shaped(draft) if templates is None else templates.prepared(draft, _shaped)
    for phase in PHASES[SHAPED:]:
        draft = phase(draft)
    return Planned(
        query,
        draft.logical,
        draft.physical,
        draft.labels,
        draft.steps,
        target,
        draft.decisions,
        context.statistics.about({n.name for n in walk(query) if isinstance(n, Source | Relation)}),
        earlier=draft.earlier,
    )


def _shaped(draft: Draft) -> Draft:
    for phase in PHASES[:SHAPED]:
        draft = phase(draft)
    return draft
