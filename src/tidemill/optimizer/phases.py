"""The phases of the planner: each takes a draft and gives a better one.

``PHASES`` is the way of every query, in its order. What a phase changed is kept as a step, so that
EXPLAIN TRACE can show how a plan came about. The last phase checks the plan.

Law: whatever phases a draft has been through, its answer is that of the bound query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import streams_of, walk
from tidemill.model.batch import Form
from tidemill.model.time import Time
from tidemill.optimizer.cost import logical_cost, plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.join_orders import Chooser
from tidemill.optimizer.logical.canonical import canonical
from tidemill.optimizer.logical.order_joins import order_joins
from tidemill.optimizer.logical.rewrite import Step, rewrite
from tidemill.optimizer.logical.rewrite_by_cost import rewrite_by_cost
from tidemill.optimizer.logical.rules import DEPENDING, SAVING, rules_with
from tidemill.optimizer.physical.adaptive_joins import adapt_joins
from tidemill.optimizer.physical.check import check_plan
from tidemill.optimizer.physical.fold import folded
from tidemill.optimizer.physical.gather import gather
from tidemill.optimizer.physical.implement import implement
from tidemill.optimizer.physical.labels import Labels
from tidemill.optimizer.physical.limit_delay import limit_delay
from tidemill.optimizer.physical.merge_adjacent import merge_adjacent
from tidemill.optimizer.physical.merge_joins import JoinStages, has_stages, merge_joins
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.optimizer.physical.split_aggregates import split_aggregates, split_by_cost
from tidemill.optimizer.physical.steps import held_until_due, in_form, lies_behind
from tidemill.optimizer.planned import PhysicalStep
from tidemill.optimizer.planning import Joins, Spread
from tidemill.physical.cut_answer import cut_answer
from tidemill.physical.plan import begun_in
from tidemill.physical.skip_the_past import skip_the_past

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.estimates.flow import Flow, Work
    from tidemill.optimizer.physical.placement import Placed
    from tidemill.optimizer.planned import Context, Steps, Target
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["PHASES", "SHAPED", "Draft"]


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


def _canonicalize(draft: Draft) -> Draft:
    if not draft.planning.optimized:
        return draft
    before = draft.logical
    after = canonical(before)
    if after is before:
        return draft
    return replace(draft, logical=after, steps=(*draft.steps, Step("canonicalize", before, after)))


def _order_joins(draft: Draft) -> Draft:
    if not draft.planning.optimized:
        return draft
    context, before = draft.context, draft.logical
    pace = Pace(partitions=draft.target.partitions or 1)
    relations = {node.name for node in walk(before) if isinstance(node, Relation)}

    def flow(part: Plan) -> Flow:
        made = implement(part, draft.planning.technique).placed.plan
        return estimate([made], context.statistics, pace, relations)[made.fingerprint].flow

    chooser = Chooser(context.planning.constants, pace, context.planning)
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
    known = draft.context.statistics
    is_known = streams_of(draft.bound) <= known.inputs.keys()
    if draft.planning.optimized and draft.target.partitions is not None and is_known:
        done = split_by_cost(draft.physical, partial(_cost, draft), draft.planning.memory_limit)
    else:
        done = split_aggregates(draft.physical)
    decided = replace(draft, decisions=(*draft.decisions, *done.decisions))
    return decided.changed("split_aggregates", done.plan, done.names)


def _cost(draft: Draft, physical: PhysicalPlan) -> PlanCost:
    """What a plan is expected to cost."""
    pace = Pace(partitions=draft.target.partitions or 1)
    relations = {node.name for node in walk(draft.bound) if isinstance(node, Relation)}
    constants = draft.planning.constants
    return plan_cost(physical, draft.context.statistics, constants, pace, relations)


def _merge_joins(draft: Draft) -> Draft:
    is_set = draft.planning.joins is Joins.MULTIWAY
    if not (is_set or any(has_stages(one) for one in draft.joins)):
        return draft
    merged = merge_joins(draft.physical, draft.planning.lazy, draft.joins, all_=is_set)
    return draft.changed("merge_joins", *merged)


def _adapt_joins(draft: Draft) -> Draft:
    if not draft.planning.adaptive:
        return draft
    return draft.changed("adapt_joins", *adapt_joins(draft.physical))


def _merge_adjacent(draft: Draft) -> Draft:
    known, bound = draft.context.statistics, draft.bound
    if not (draft.planning.optimized and streams_of(bound) <= known.inputs.keys()):
        return draft
    pace = Pace(partitions=draft.target.partitions or 1)
    relations = frozenset(node.name for node in walk(bound) if isinstance(node, Relation))

    def works(physical: PhysicalPlan) -> Mapping[str, Work]:
        return estimate([physical], known, pace, relations)

    before, longest = draft.physical, draft.planning.max_delay
    plan, names, found = merge_adjacent(before, relations, longest, works, partial(_cost, draft))
    decided = replace(draft, decisions=(*draft.decisions, *found))
    return decided.changed("merge_adjacent", plan, names)


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
    # After the rules, which leave different plans if queries differ; what is chosen after it is
    # chosen alike for queries that say the same.
    _canonicalize,
    # After the rules, which leave joins side by side and conditions where they belong.
    _order_joins,
    # After it: what aggregates and DISTINCT below joins save depends on the order of these.
    _rewrite_by_cost,
    # From logical operators to physical ones, in which form, with exchanges where rows must meet.
    _implement,
    # Before exchanges are pushed: they do not go below what combines rows where they are.
    _split_aggregates,
    _merge_joins,
    # After it: a tree begins with the stages that there are.
    _adapt_joins,
    # Before the answer gets its form: it lies behind, if rows wait for others like them.
    _merge_adjacent,
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

SHAPED = PHASES.index(_cut_answer)
"""The phases before this one read of the target what decides on the shape of a plan."""
