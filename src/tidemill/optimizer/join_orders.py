"""Which tree of joins is chosen for a block, and what is said of it.

Law: what is written stays unless another tree is expected to cost less than ``CLEARLY`` of it, or
to keep to limits that it exceeds. Stages of three and more inputs are chosen only where that is
left open and there is a reason: limits, or inputs that have been measured. The same query is
ordered alike whenever the same is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.planning import Joins, Open
from tidemill.optimizer.search.best import best_tree
from tidemill.optimizer.search.costs import Costs
from tidemill.optimizer.search.tree import JoinTree, Stage, flat, leaves
from tidemill.optimizer.search.tree_cost import Pricing

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.constants import Constants
    from tidemill.optimizer.estimates.flow import Pace
    from tidemill.optimizer.logical.join_block import JoinBlock, Shape
    from tidemill.optimizer.logical.order_joins import Known
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.search.choice import Choice
    from tidemill.optimizer.search.tree_cost import Plan as TreePlan

__all__ = ["CLEARLY", "Chooser", "Chosen", "join_costs"]

CLEARLY = 0.8
"""What is written stays unless something else is expected to cost less than this share of it."""

_SECOND = 1_000_000.0
_TWO = 2


def join_costs(constants: Constants, pace: Pace) -> Costs:
    """What joining costs in this engine, by microsecond of the streams' time."""
    join = constants.operators["interval.Join"]
    return Costs(
        insert=join.row_in,
        delete=0.0,
        compare=constants.compared,
        output=join.row_out,
        step=join.step / _TWO * pace.steps * pace.partitions,  # a join probes from two sides
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tree of joins.

    Attributes:
        plan: The tree, with the orders in which its stages probe.
        shape: The same as joins of two; those of a stage follow each other.
        decision: What was chosen, and why.
    """

    plan: TreePlan
    shape: Shape
    decision: Decision


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses trees.

    Attributes:
        costs: What joining costs.
        planning: The settings, with their limits.
    """

    costs: Costs
    planning: Planning

    def choose(self, block: JoinBlock, known: Known) -> Chosen:
        """The tree for a block."""
        pricing = Pricing(known.graph, self.costs)
        written = pricing.plan(_tree_of(block.written))
        if self.planning.joins is Joins.MULTIWAY:
            written = pricing.plan(flat(known.graph.inputs))
        limits = self._limits(known)
        choice = self._best(known, limits)
        lacks = not written.is_qualified(choice.limits)
        if choice.plan.cpu < CLEARLY * written.cpu or (lacks and choice.is_qualified):
            plan, why = choice.plan, choice.why
        else:
            plan, why = written, "as written, nothing is clearly cheaper"
        if lacks and plan is written:
            why = f"as written, {choice.why}"
        shape = block.written if plan is written else _shape_of(plan, plan.tree)
        names = [_name(one) for one in block.inputs]
        every = [written, choice.plan, *(one.plan for one in choice.alternatives)]
        found = {one.tree: self._alternative(one, names, known) for one in every}
        chosen = found.pop(plan.tree)
        others = tuple(sorted(found.values(), key=lambda one: (one.cpu, one.name)))
        decision = Decision("join order", chosen.name, chosen.cpu, others, why, chosen.memory)
        return Chosen(plan, shape, decision)

    def _limits(self, known: Known) -> tuple[float | None, float | None]:
        """The limits in the units of the search: by microsecond, and in rows."""
        cpu, memory = self.planning.cpu_limit, self.planning.memory_limit
        return (
            None if cpu is None else cpu / _SECOND,
            None if memory is None else memory / known.row_bytes,
        )

    def _best(self, known: Known, limits: tuple[float | None, float | None]) -> Choice:
        is_open = Open.JOINS in self.planning.left_open
        has_reason = limits != (None, None) or known.is_measured
        return best_tree(known.graph, self.costs, *limits, binary=not (is_open and has_reason))

    def _alternative(self, plan: TreePlan, names: list[str], known: Known) -> Alternative:
        memory = plan.memory * known.row_bytes
        return Alternative(_text(plan.tree, names), plan.cpu * _SECOND, memory)


def _tree_of(shape: Shape) -> JoinTree:
    if isinstance(shape, int):
        return shape
    return Stage((_tree_of(shape[0]), _tree_of(shape[1])))


def _shape_of(plan: TreePlan, tree: JoinTree) -> Shape:
    """The joins of a tree: those of a stage in the order in which its first child probes."""
    if isinstance(tree, int):
        return tree
    first, *others = plan.orders[tree][0]
    children = [tree.children[0], *(tree.children[n] for n in (first, *others))]
    shape = _shape_of(plan, children[0])
    for child in children[1:]:
        shape = (shape, _shape_of(plan, child))
    return shape


def _text(tree: JoinTree, names: list[str]) -> str:
    if isinstance(tree, int):
        return names[tree]
    return f"({' '.join(_text(child, names) for child in tree.children)})"


def _name(plan: Plan) -> str:
    """An input by the streams and relations that it reads."""
    read = [node.name for node in walk(plan) if isinstance(node, Source | Relation)]
    return "+".join(dict.fromkeys(read))
