"""Hooks: the plans whose rows are kept, so that those of an answer can be explained from them.

Asked lazily, plans with hidden columns are computed from what streams have kept (``trace.py``).
Eagerly, rows are kept where hidden columns end: at the inputs of aggregates and the like, and at
the answer. Only rows with ids are kept, in the columns that they have there, with the values that
they have in their streams:

    sum by key                 a row of the window: key, value; @id1, @time2; from when to when
      window            ->     it is in it; and the values of the row of the stream
        stream

So a row is kept once, in however many windows it is. What stands above, up to the answer, is what
operators make at one instant of rows that are there: it is made of those when it is asked for.

Law: the rows of a hook are those of the plans that it serves, with more columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.explain import describe
from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import (
    AntiJoin,
    Dstream,
    Istream,
    Plan,
    Project,
    SemiJoin,
    Source,
    Window,
)
from tidemill.algebra.tree import children, walk
from tidemill.errors import PlanError
from tidemill.provenance.annotate import annotate
from tidemill.provenance.same_columns import same_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.provenance.leaves import Annotated, Leaf

__all__ = ["Hook", "hooks_of", "looks_back"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A plan whose rows are kept.

    Attributes:
        plan: The plan; columns that always have one value are kept once.
        columns: What each column of the plans that it serves is called in it.
        leaves: Where its hidden columns lead to.
        serves: The plans whose rows it has.
    """

    plan: Plan
    columns: Mapping[str, str]
    leaves: tuple[Leaf, ...]
    serves: tuple[Plan, ...]


def hooks_of(plan: Plan) -> tuple[Hook, ...]:
    """The hooks of a query, the highest first, each once.

    Raises:
        PlanError: A window stands over rows that other operators have made.
    """
    found: dict[Plan, Hook | None] = {}
    todo = [plan]
    while todo:
        node = todo.pop(0)
        if node in found:
            continue
        whole = annotate(node, values=True)
        if whole.cuts:
            raise _over_made_rows(whole)
        has_ids = any(leaf.has_ids for leaf in whole.leaves)
        found[node] = _hook(node, whole) if has_ids else None
        for leaf in whole.leaves:
            if isinstance(leaf.plan, SemiJoin | AntiJoin):
                todo.append(leaf.plan.right)
            elif not leaf.has_ids:
                todo += children(leaf.plan)
    return tuple(hook for hook in found.values() if hook is not None)


def _hook(node: Plan, whole: Annotated) -> Hook:
    columns = same_columns(whole.plan)
    kept = (one for one in whole.plan.schema if columns[one.name] == one.name)
    narrow = Project(whole.plan, tuple(Named(o.name, Column(o.name, o.type)) for o in kept))
    return Hook(narrow, columns, whole.leaves, (annotate(node).plan, node))


def _over_made_rows(found: Annotated) -> PlanError:
    made = [describe(leaf.plan) for leaf in found.leaves if leaf.at is not None]
    what = f", of {made[0]}" if made else ""
    cuts = {cut.name for cut in found.cuts}
    windows = [node for node in walk(found.plan) if isinstance(node, Window)]
    over = (w.span for w in windows if isinstance(w.input, Source) and w.input.name in cuts)
    return PlanError(
        f"a window stands over rows that an operator has made{what}, and what these were made of"
        " cannot be kept",
        span=next(over, None),
        hint="leave WITH PROVENANCE out: WHY computes it when it is asked, if streams KEEP",
    )


def looks_back(plan: Plan) -> int:
    """How many instants before an answer rows may have gone that explain it."""
    return sum(isinstance(node, Istream | Dstream) for node in walk(plan))
