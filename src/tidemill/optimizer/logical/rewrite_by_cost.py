"""The driver of rules that make a plan better or worse: what it is expected to cost decides.

Each rule is asked at each node for what else could stand there. Every candidate is a whole plan,
rewritten by the other rules again, so that what they make of it counts. The cheapest is taken if it
is cheaper, clearly so where numbers of rows differ, and the rules are asked again.

Laws: the plan has the snapshots of the one before. Its expected cost is that of the one before, or
less. It ends: no plan is tried twice, and at most so many are tried. A plan that could run
for ever in bounded memory still can. The same plan is chosen whenever the same is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.algebra.bounds import unbounded_state
from tidemill.algebra.tree import share, transform_up, walk
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.logical.context import CONTEXT
from tidemill.optimizer.logical.rewrite import Rewritten, Step
from tidemill.optimizer.logical.rules import DEPENDING, SAVING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context
    from tidemill.optimizer.logical.rules import CostedRule

__all__ = ["CLEARLY", "MOST_TRIED", "Choice", "rewrite_by_cost"]

CLEARLY: Final = 0.8
"""A plan with other numbers of rows is taken if it costs less than this share of the one before.

Estimates are not more exact. But what is wrong is wrong for both plans in the same way, since most
of their parts are the same.
"""

_AT_ALL: Final = 0.999
"""A plan with the same rows is taken if it costs less at all."""

MOST_TRIED: Final = 2_000
"""So many nodes the plans that are tried have together.

Each of them has to be implemented in order to know what it costs. The first is always tried.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """A plan that was taken instead of another one.

    Attributes:
        rule: What has made it, as a step from plan to plan.
        steps: What the other rules have made of it.
        cost: What it is expected to cost.
        before: What the plan before was expected to cost.
        others: The other candidates, by what made them, with what they were expected to cost.
    """

    rule: Step
    steps: tuple[Step, ...]
    cost: float
    before: float
    others: tuple[tuple[str, float], ...]

    def decision(self) -> Decision:
        """The same as it is kept with the plan."""
        others = [Alternative("as before", self.before)]
        others += [Alternative(rule, cost) for rule, cost in self.others]
        others.sort(key=lambda one: one.cpu)
        why = "cheaper than as before"
        return Decision("rewrite", self.rule.rule, self.cost, tuple(others), why)


def rewrite_by_cost(
    plan: Plan,
    cost: Callable[[Plan], float],
    again: Callable[[Plan], Rewritten],
    rules: tuple[CostedRule, ...] = (*SAVING, *DEPENDING),
    context: Context = CONTEXT,
) -> tuple[Plan, tuple[Choice, ...]]:
    """A plan that is expected to cost no more, and what was chosen on the way to it.

    Args:
        plan: The plan, as all other rules have left it.
        cost: What a plan is expected to cost.
        again: What all other rules make of a plan.
        rules: The rules.
        context: What they may know besides the plan.
    """
    known: dict[tuple[object, ...], Plan] = {}  # in which equal plans are one object
    plan = share(plan, known)
    tried = {id(plan)}
    chosen: list[Choice] = []
    is_bounded = unbounded_state(plan) is None
    left, now = MOST_TRIED, None
    while True:
        found: list[tuple[float, Step, Rewritten]] = []
        for step in _candidates(plan, rules, context):
            if left <= 0:
                break
            new = again(step.after)
            same = share(new.plan, known)
            if id(same) in tried:
                continue
            tried.add(id(same))
            left -= sum(1 for _ in walk(same))
            if not is_bounded or unbounded_state(same) is None:
                found.append((cost(same), step, Rewritten(same, new.steps)))
        if not found:
            return plan, tuple(chosen)
        now = cost(plan) if now is None else now
        clear = [one for one in found if one[0] < _share(one[1]) * now]
        if not clear:
            return plan, tuple(chosen)
        best, step, new = min(clear, key=lambda one: one[0])
        others = tuple((other.rule, price) for price, other, _ in found if other is not step)
        chosen.append(Choice(step, new.steps, best, now, others))
        plan, now = new.plan, best


def _share(step: Step) -> float:
    return _AT_ALL if step.rule in {rule.__name__ for rule in SAVING} else CLEARLY


def _candidates(plan: Plan, rules: tuple[CostedRule, ...], context: Context) -> Iterator[Step]:
    """The plans that differ in what a rule makes of one node."""
    for rule in rules:
        for node in walk(plan):
            for after in rule(node, context):
                yield Step(rule.__name__, plan, _replaced(plan, node, after))


def _replaced(plan: Plan, node: Plan, new: Plan) -> Plan:
    """The plan with another part in the place of one of its nodes."""
    return transform_up(plan, lambda part: new if part is node else None)
