"""Hooks: the plans whose rows tell what the rows of an answer were made of, when these are kept.

Asked lazily, plans with hidden columns are computed from the rows that streams have kept, step by
step (``trace.py``). Eagerly, the rows of all these plans are kept while the query runs. There is
one for the answer, and one for each input of an operator at which hidden columns end:

    sum by key                 the answer: key, sum; and copies of both
      window            ->     the input: key as @by0, @id1, @time2, and the values of the row
        stream

Rows of streams bring their values with their ids, so that nothing has to be read of the streams.
Nothing of this depends on how many windows a row is in: it is kept once, with its start and end.

Law: the rows of a hook, without those values, are those of the plan that lazy tracing computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.explain import describe
from tidemill.algebra.plan import AntiJoin, Dstream, Istream, Plan, SemiJoin, Window
from tidemill.algebra.tree import walk
from tidemill.errors import PlanError
from tidemill.provenance.annotate import Annotated, Leaf, annotate
from tidemill.provenance.steps import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Hook", "hooks_of", "looks_back"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A plan whose rows are kept.

    Attributes:
        plan: The plan.
        leaves: Where its hidden columns lead to.
        serves: The plans whose rows it has, in some of its columns.
    """

    plan: Plan
    leaves: tuple[Leaf, ...]
    serves: tuple[Plan, ...]


def hooks_of(plan: Plan) -> tuple[Hook, ...]:
    """The hooks of a query, the answer first, each once.

    Raises:
        PlanError: A window stands over rows that other operators have made.
    """
    found: dict[Plan, Hook] = {}
    todo = [_hook(annotate(plan, values=True), annotate(plan), plan)]
    while todo:
        hook = todo.pop(0)
        if hook.plan in found:
            continue
        found[hook.plan] = hook
        for leaf in hook.leaves:
            if not leaf.has_ids:
                todo += _below(leaf.plan)
    return tuple(found.values())


def _below(node: Plan) -> Iterator[Hook]:
    """The hooks of the inputs of an operator."""
    if isinstance(node, SemiJoin | AntiJoin):
        # Which of them are partners is found when it is asked.
        yield _hook(annotate(node.right, values=True), annotate(node.right))
        return
    for whole, plain in zip(steps_of(node, {}, values=True), steps_of(node, {}), strict=True):
        yield _hook(whole.annotated, plain.annotated)


def _hook(whole: Annotated, plain: Annotated, *more: Plan) -> Hook:
    if whole.cuts:
        raise _over_made_rows(whole)
    return Hook(whole.plan, whole.leaves, (plain.plan, *more))


def _over_made_rows(found: Annotated) -> PlanError:
    below = found.cuts[0].plan
    made = [describe(leaf.plan) for leaf in found.leaves if leaf.at is not None]
    what = f", of {made[0]}" if made else ""
    window = next((node.span for node in walk(below) if isinstance(node, Window)), None)
    return PlanError(
        f"a window stands over rows that an operator has made{what}, and what these were made of"
        " cannot be kept",
        span=window,
        hint="leave WITH PROVENANCE out: WHY computes it when it is asked, if streams KEEP",
    )


def looks_back(plan: Plan) -> int:
    """How many instants before an answer rows may have gone that explain it."""
    return sum(isinstance(node, Istream | Dstream) for node in walk(plan))
