"""The driver: applies rules to a plan until none has anything left to do.

A rule looks at one node. The driver walks, from the leaves up; it visits a shared node once and
keeps it shared, and shares what has become equal. A phase is repeated until nothing changes, and
every change is kept as a step, so that EXPLAIN TRACE can show how a plan came about.

>>> from tidemill.algebra.explain import explain
>>> from tidemill.algebra.expr import TRUE
>>> from tidemill.algebra.plan import Filter, Source
>>> from tidemill.model.schema import Field, Schema
>>> from tidemill.model.types import BIGINT
>>> bid = Source("bid", Schema((Field("price", BIGINT),)))
>>> rewritten = rewrite(Filter(bid, TRUE))
>>> print(explain(rewritten.plan))
Source bid
>>> [step.rule for step in rewritten.steps]
['drop_true_filter']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.tree import share, transform_up
from tidemill.errors import PlanError
from tidemill.optimizer.logical.context import CONTEXT
from tidemill.optimizer.logical.rules import RULES, rules_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context
    from tidemill.optimizer.logical.rules import Negation, Phase, Rule

__all__ = ["Rewritten", "Step", "optimize", "rewrite"]


@dataclass(frozen=True, slots=True)
class Step:
    """What one rule made of one node."""

    rule: str
    before: Plan
    after: Plan


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A plan, and the steps that led to it."""

    plan: Plan
    steps: tuple[Step, ...]


def optimize(plan: Plan, *, negation: Negation = "written") -> Plan:
    """A better plan with the same answer at every instant.

    Args:
        plan: What a query means.
        negation: Where anti-joins go: whether it pays to move them is for the caller to know.
    """
    return rewrite(plan, rules_with(negation)).plan


def rewrite(plan: Plan, rules: tuple[Phase, ...] = RULES, context: Context = CONTEXT) -> Rewritten:
    """The plan after all phases.

    Raises:
        PlanError: Rules undo each other's work.
    """
    steps: list[Step] = []
    plan = share(plan)
    for phase in rules:
        if isinstance(phase, tuple):
            plan = _repeated(plan, phase, context, steps)
        else:
            plan = share(_applied(plan, (phase,), context, steps))
    return Rewritten(plan, tuple(steps))


def _repeated(plan: Plan, phase: tuple[Rule, ...], context: Context, steps: list[Step]) -> Plan:
    """The plan after as many walks as change it."""
    seen = [(plan, len(steps))]
    while True:
        walked = transform_up(plan, lambda node: _applied(node, phase, context, steps))
        if walked is plan:
            return plan
        plan = share(walked)
        for earlier, mark in seen:
            if plan == earlier:
                raise _in_circles(steps[mark:])
        seen.append((plan, len(steps)))


def _applied(node: Plan, rules: Sequence[Rule], context: Context, steps: list[Step]) -> Plan:
    """What the rules make of a node, one after the other."""
    for rule in rules:
        after = rule(node, context)
        if after is not None:
            steps.append(Step(rule.__name__, node, after))
            node = after
    return node


def _in_circles(steps: Sequence[Step]) -> PlanError:
    names = ", ".join(f'"{name}"' for name in dict.fromkeys(step.rule for step in steps))
    return PlanError(
        f"the optimizer goes round in circles with {names}",
        hint="this is a mistake in Tidemill, not in the query; please report it",
    )
