"""The planner: from what a query means to what runs, in phases that can be seen.

``PHASES`` is the whole way. A phase takes a draft and gives a better one; what it changed is kept
as a step, so that EXPLAIN TRACE can show how a plan came about. The last phase checks the plan.
Sessions, both runtimes, EXPLAIN and the command line take what ``plan`` gives; nothing else plans.

Law: the answer of a planned query is that of the bound one, at every instant, whatever the target,
and a query is planned alike wherever and whenever that is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.patterns import update_pattern
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import streams_of, walk
from tidemill.errors import PlanError
from tidemill.model.batch import Form
from tidemill.model.time import Time
from tidemill.optimizer.constants import DEFAULTS, Constants
from tidemill.optimizer.cost import logical_cost, plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.join_orders import Chooser, join_costs
from tidemill.optimizer.logical.order_joins import order_joins
from tidemill.optimizer.logical.rewrite import Step, rewrite
from tidemill.optimizer.logical.rewrite_by_cost import rewrite_by_cost
from tidemill.optimizer.logical.rules import DEPENDING, SAVING, rules_with
from tidemill.optimizer.physical.check import check_plan
from tidemill.optimizer.physical.fold import folded, stages_needed
from tidemill.optimizer.physical.gather import gather
from tidemill.optimizer.physical.implement import implement
from tidemill.optimizer.physical.labels import Labels
from tidemill.optimizer.physical.limit_delay import limit_delay
from tidemill.optimizer.physical.merge_joins import JoinStages, has_stages, merge_joins
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.optimizer.physical.split_aggregates import split_aggregates
from tidemill.optimizer.physical.steps import held_until_due, in_form, lies_behind
from tidemill.optimizer.planning import PLANNING, Joins, Spread
from tidemill.optimizer.spreading import choose_spread, in_one, may_gather
from tidemill.optimizer.statistics import NOTHING_KNOWN, Statistics
from tidemill.optimizer.variants import Variant, choose_variant, variants
from tidemill.physical.codec.plans import plan_version
from tidemill.physical.cut_answer import cut_answer
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Input, begun_in, walk_physical
from tidemill.physical.skip_the_past import skip_the_past

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.model.spans import Cut
    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.estimates.flow import Flow
    from tidemill.optimizer.physical.placement import Placed
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.templates import Templates
    from tidemill.physical.fragments import Graph
    from tidemill.physical.plan import PhysicalPlan

Steps: TypeAlias = "tuple[Step | PhysicalStep, ...]"

__all__ = [
    "CONTEXT",
    "PHASES",
    "TARGET",
    "Context",
    "PhysicalStep",
    "Planned",
    "Target",
    "plan",
    "recut",
    "resume",
]


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan is made for.

    Attributes:
        partitions: How many partitions there are; ``None`` for any number.
        stages: How many stateful stages there are; ``None`` for as many as are needed.
        answer: The form that the answer must have; ``None`` for either.
        whole: Whether an answer of either form has all rows of an instant or none, whenever it is
            read.
        epoch: When the query begins; it shares no state with those of other epochs.
        cut: Which instants of the answer are wanted; ``None`` for all.
        replays: From when on its answer is asked for, if it is filled with kept rows of streams: it
            has inputs of its own then.
    """

    partitions: int | None = None
    stages: int | None = None
    answer: Form | None = None
    whole: bool = True
    epoch: int = 0
    cut: Cut | None = None
    replays: int | None = None

    @property
    def shape(self) -> Target:
        """What decides on the operators, and not since when and of what they are."""
        return replace(self, epoch=0, cut=None, replays=None)


@dataclass(frozen=True, slots=True)
class Context:
    """What is known besides the query.

    Attributes:
        planning: The settings.
        statistics: What has been measured of streams, or said of them.
    """

    planning: Planning = PLANNING
    statistics: Statistics = NOTHING_KNOWN


TARGET, CONTEXT = Target(), Context()


@dataclass(frozen=True, slots=True)
class PhysicalStep:
    """What one phase made of a physical plan."""

    phase: str
    before: PhysicalPlan
    after: PhysicalPlan


@dataclass(frozen=True)
class Planned:
    """A query as it runs, and how that came about.

    Attributes:
        bound: What the query means.
        logical: The same after all rewrites.
        physical: The operators, and the exchanges between them.
        labels: How the rows of each part expire, and why they have their form.
        own_steps: What the phases have changed, one after the other.
        target: What it is made for.
        decisions: What was chosen among plans with the same answer, and why.
        constants: What the work of operators costs, so far as it is known where it was planned.
        statistics: What was known of its inputs when it was planned.
        earlier: What phases before these have changed, for a plan that was made from a template.
    """

    bound: Plan
    logical: Plan
    physical: PhysicalPlan
    labels: Labels
    own_steps: tuple[Step | PhysicalStep, ...]
    target: Target
    decisions: tuple[Decision, ...] = ()
    statistics: Statistics = NOTHING_KNOWN
    constants: Constants = DEFAULTS
    earlier: Callable[[], Steps] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def steps(self) -> Steps:
        """What the phases have changed, one after the other."""
        return (*self.earlier(), *self.own_steps)

    @property
    def is_outdated(self) -> bool:
        """Whether it runs on with a plan that would not be made today."""
        last = self.own_steps[-1] if self.own_steps else None
        return isinstance(last, PhysicalStep) and last.phase == _RESUME

    @cached_property
    def version(self) -> str:
        """A short name for the physical plan, another for every other plan."""
        return plan_version(self.physical)

    def graph(self, name: str = "query") -> Graph:
        """The plan cut into fragments, if the query runs alone."""
        return build_graph({name: self.physical})


@dataclass(frozen=True, slots=True)
class Draft:
    """A query on its way through the phases."""

    bound: Plan
    logical: Plan
    target: Target
    context: Context
    placed: Placed | None = None
    labels: Labels = field(default_factory=Labels)
    steps: tuple[Step | PhysicalStep, ...] = ()
    decisions: tuple[Decision, ...] = ()
    joins: tuple[JoinStages, ...] = ()
    earlier: Callable[[], Steps] = tuple

    @property
    def planning(self) -> Planning:
        """The settings."""
        return self.context.planning

    @property
    def physical(self) -> PhysicalPlan:
        """The physical plan, once there is one."""
        assert self.placed is not None, "a phase before this one implements the plan"
        return self.placed.plan

    def changed(self, phase: str, new: PhysicalPlan, names: Mapping[str, str]) -> Draft:
        """The draft with another physical plan.

        Args:
            phase: What has changed it.
            new: The plan.
            names: For each part of the one before, the part that has the same rows now.
        """
        if new.fingerprint == self.physical.fingerprint:
            return self
        assert self.placed is not None, "a phase before this one implements the plan"
        step = PhysicalStep(phase, self.physical, new)
        return replace(
            self,
            placed=replace(self.placed, plan=new),
            labels=self.labels.moved(names).completed(new),
            steps=(*self.steps, step),
        )


def _rewrite(draft: Draft) -> Draft:
    if not draft.planning.optimized:
        return draft
    done = rewrite(draft.bound, rules_with(draft.planning.negation))
    return replace(draft, logical=done.plan, steps=done.steps)


def _order_joins(draft: Draft) -> Draft:
    if not draft.planning.optimized:
        return draft
    context, before = draft.context, draft.logical
    pace = Pace(partitions=draft.target.partitions or 1)
    relations = {node.name for node in walk(before) if isinstance(node, Relation)}

    def flow(part: Plan) -> Flow:
        made = implement(part, draft.planning.technique).placed.plan
        return estimate([made], context.statistics, pace, relations)[made.fingerprint].flow

    chooser = Chooser(join_costs(context.planning.constants, pace), context.planning)
    after, chosen = order_joins(before, flow, chooser.choose)
    decisions = (*draft.decisions, *(one.decision for one in chosen))
    joins = tuple(one.stages for one in chosen)
    if after is before:
        return replace(draft, decisions=decisions, joins=joins)
    done = rewrite(after, rules_with(draft.planning.negation))
    steps = (*draft.steps, Step("order_joins", before, after), *done.steps)
    return replace(draft, logical=done.plan, steps=steps, decisions=decisions, joins=joins)


def _rewrite_by_cost(draft: Draft) -> Draft:
    if not draft.planning.optimized:
        return draft
    pace = Pace(partitions=draft.target.partitions or 1)
    technique, answer = draft.planning.technique, draft.target.answer
    relations = {node.name for node in walk(draft.bound) if isinstance(node, Relation)}
    rules = rules_with(draft.planning.negation)

    def cost(part: Plan) -> float:
        known, constants = draft.context.statistics, draft.planning.constants
        return logical_cost(
            part, known, constants, pace, relations, technique=technique, answer=answer
        ).cpu

    is_known = streams_of(draft.bound) <= draft.context.statistics.inputs.keys()
    costed = (*SAVING, *DEPENDING) if is_known else SAVING
    after, choices = rewrite_by_cost(draft.logical, cost, lambda part: rewrite(part, rules), costed)
    taken = [step for choice in choices for step in (choice.rule, *choice.steps)]
    decisions = (*draft.decisions, *(choice.decision() for choice in choices))
    return replace(draft, logical=after, steps=(*draft.steps, *taken), decisions=decisions)


def _implement(draft: Draft) -> Draft:
    made = implement(draft.logical, draft.planning.technique, draft.target.answer)
    return replace(draft, placed=made.placed, labels=made.labels)


def _split_aggregates(draft: Draft) -> Draft:
    if draft.target.partitions == 1 or draft.planning.spread is Spread.ONE:
        return draft  # nothing is exchanged, or all of it goes to one partition anyway
    return draft.changed("split_aggregates", *split_aggregates(draft.physical))


def _merge_joins(draft: Draft) -> Draft:
    is_set = draft.planning.joins is Joins.MULTIWAY
    if not (is_set or any(has_stages(one) for one in draft.joins)):
        return draft
    merged = merge_joins(draft.physical, draft.planning.lazy, draft.joins, all_=is_set)
    return draft.changed("merge_joins", *merged)


def _shape_answer(draft: Draft) -> Draft:
    """The answer in the form in which it is wanted, none of its rows before their time."""
    assert draft.placed is not None, "a phase before this one implements the plan"
    made, wanted = draft.placed, draft.target.answer
    is_late = lies_behind(made.plan)
    if wanted is None and draft.target.whole and is_late:
        # Some rows of an instant would be there before others, which have not ended yet.
        wanted = Form.SIGNED
    if wanted is not None:
        made = in_form(made, wanted)
        made = held_until_due(made, late=is_late) if wanted is Form.SIGNED else made
    top = draft.physical.fingerprint
    same = {name: name for name in draft.labels.patterns}
    patterns = {**draft.labels.patterns, made.plan.fingerprint: draft.labels.patterns[top]}
    reasons = {**draft.labels.reasons, made.plan.fingerprint: draft.labels.reasons[top]}
    labelled = replace(draft, labels=Labels(patterns, reasons))
    same[made.plan.fingerprint] = made.plan.fingerprint
    return replace(labelled.changed("shape_answer", made.plan, same), placed=made)


def _push_exchanges(draft: Draft) -> Draft:
    return draft.changed("push_exchanges", *push_exchanges(draft.physical))


def _gather(draft: Draft) -> Draft:
    if draft.planning.spread is Spread.KEYS or draft.target.partitions == 1:
        return draft
    return draft.changed("gather", *gather(draft.physical))


def _limit_delay(draft: Draft) -> Draft:
    return draft.changed("limit_delay", *limit_delay(draft.physical, draft.planning.max_delay))


def _fold(draft: Draft) -> Draft:
    if draft.target.stages is None:
        return draft
    return draft.changed("fold", *folded(draft.physical, draft.target.stages))


def _cut_answer(draft: Draft) -> Draft:
    cut, same = draft.target.cut, {name: name for name in draft.labels.patterns}
    return draft.changed("cut_answer", cut_answer(draft.physical, cut), same)


def _begin(draft: Draft) -> Draft:
    if not draft.target.epoch:
        return draft
    wanted = draft.target.replays
    kinds = (Relation,) if wanted is None else (Relation, Source)
    own = {node.name for node in walk(draft.bound) if isinstance(node, kinds)}
    begun = draft.changed("begin", *begun_in(draft.physical, draft.target.epoch, own))
    if wanted is None:
        return begun
    return begun.changed("skip_the_past", *skip_the_past(begun.physical, Time(wanted)))


def _check(draft: Draft) -> Draft:
    check_plan(draft.bound, draft.logical, draft.physical, draft.target.answer, draft.target.stages)
    return draft


PHASES: tuple[Callable[[Draft], Draft], ...] = (
    # Logical: rules until none has anything left to do (``logical/rules``).
    _rewrite,
    # After the rules, which leave joins side by side and conditions where they belong.
    _order_joins,
    # After it: what aggregates and DISTINCT below joins save depends on the order of these.
    _rewrite_by_cost,
    # From logical operators to physical ones, in which form, with exchanges where rows must meet.
    _implement,
    # Before exchanges are pushed: they do not go below what combines rows where they are.
    _split_aggregates,
    _merge_joins,
    # After joins are merged: whether an answer lies behind depends on whether they are lazy.
    _shape_answer,
    _push_exchanges,
    # After it: the rows that come in are gathered, before they get their validity.
    _gather,
    _limit_delay,
    # Last the shape of the pipeline: how many stages, and since when.
    _fold,
    # Above everything: an instance that runs keeps its plan, whatever its sink is to get.
    _cut_answer,
    _begin,
    _check,
)
"""The way of every query, in this order."""

_SHAPED = PHASES.index(_cut_answer)
"""The phases before this one read of the target what decides on the shape of a plan."""


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
    chosen = one if spread is Spread.ONE else usual
    return replace(chosen, decisions=(*usual.decisions, decision))


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
    try:
        made = plan(query, replace(target, cut=None), context, templates)
    except PlanError:
        made = None  # what cannot be planned today runs on all the same
    if made is not None and made.physical.fingerprint == whole.fingerprint:
        # The same state; how joins probe, and what else is no part of that, stays as it was.
        labels = made.labels.completed(physical)
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
    step = PhysicalStep(_RESUME, made.physical, physical)
    steps = (*made.own_steps, step)
    return replace(
        made,
        physical=physical,
        labels=labels,
        own_steps=steps,
        target=target,
        decisions=decisions,
    )


_RESUME = "resume"


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
    draft = Draft(query, query, narrowed, context)
    draft = _shaped(draft) if templates is None else templates.prepared(draft, _shaped)
    for phase in PHASES[_SHAPED:]:
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
    for phase in PHASES[:_SHAPED]:
        draft = phase(draft)
    return draft
