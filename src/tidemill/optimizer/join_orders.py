"""Which tree of joins is chosen for a block, and what is said of it.

Law: what is written stays unless another tree is expected to cost less than ``CLEARLY`` of it, or
to keep to limits that it exceeds. Stages of three and more inputs are chosen only where that is
left open and there is a reason: limits, or inputs that have been measured. The same query is
ordered alike whenever the same is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.logical.join_block import leaves as leaves_of
from tidemill.optimizer.physical.merge_joins import JoinStages
from tidemill.optimizer.planning import Joins, Open
from tidemill.optimizer.search.best import best_tree
from tidemill.optimizer.search.costs import Costs, Counting, Engine
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import JoinTree, Stage, flat, leaves

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.constants import Constants
    from tidemill.optimizer.estimates.flow import Pace
    from tidemill.optimizer.logical.join_block import JoinBlock, Shape
    from tidemill.optimizer.logical.order_joins import Known
    from tidemill.optimizer.physical.merge_joins import Joined
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.search.choice import Choice
    from tidemill.optimizer.search.tree_cost import Plan as TreePlan

__all__ = ["CLEARLY", "Chooser", "Chosen", "join_costs", "shape_of"]

CLEARLY = 0.8
"""What is written stays unless something else is expected to cost less than this share of it."""

_SECOND = 1_000_000.0
_TWO = 2


def join_costs(constants: Constants, pace: Pace, *, signed: bool = False) -> Costs:
    """What joining costs in this engine, by microsecond of the streams' time.

    Args:
        constants: What operators cost.
        pace: How a plan is run.
        signed: Whether rows appear and are withdrawn.
    """
    form = "signed" if signed else "interval"
    engine = Engine(
        two=constants.operators[f"{form}.Join"],
        many=constants.operators[f"{form}.MultiJoin"],
        project=constants.operators["interval.Project"],
        scanned=constants.scanned,
        rounds=pace.steps,
        partitions=pace.partitions,
        moved=constants.exchange_row,
        message=constants.message,
        signed=signed,
    )
    return Costs(
        insert=0.0,
        delete=0.0,
        compare=constants.compared * (_TWO if signed else 1),
        counting=Counting.KEYS,
        apart=True,
        engine=engine,
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

    @property
    def stages(self) -> JoinStages:
        """What is joined at once, for a plan in which the inputs stand as in the shape."""
        place = {number: place for place, number in enumerate(leaves_of(self.shape))}
        found = {}
        for stage, orders in self.plan.orders.items():
            covered = [frozenset(place[leaf] for leaf in leaves(c)) for c in stage.children]
            at = sorted(range(len(covered)), key=lambda n: min(covered[n]))
            new = {old: number for number, old in enumerate(at)}
            moved = tuple(tuple(new[other] for other in orders[old]) for old in at)
            found[frozenset().union(*covered)] = moved
        return JoinStages(_joins_of(self.shape), found)


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses trees.

    Attributes:
        constants: What operators cost.
        pace: How plans are run.
        planning: The settings, with their limits.
    """

    constants: Constants
    pace: Pace
    planning: Planning

    def choose(self, block: JoinBlock, known: Known) -> Chosen:
        """The tree for a block."""
        if self.planning.joins is Joins.MULTIWAY:
            return self._asked_for(block, known)
        pricing = Pricing(known.graph, self._costs(known))
        written, choice = pricing.plan(_tree_of(block.written)), self._best(known)
        plan, limits = choice.plan, choice.limits
        is_nearer = plan.badness(limits)[0] < written.badness(limits)[0]
        if plan.cpu >= CLEARLY * written.cpu and not is_nearer:
            plan = written
        names = [_name(one) for one in block.inputs]
        every = [written, choice.plan, *(one.plan for one in choice.alternatives)]
        found = {one.tree: self._alternative(one, names) for one in every if one.cpu < inf}
        chosen = found.pop(plan.tree)
        return Chosen(
            plan,
            block.written if plan is written else shape_of(plan),
            Decision(
                "join order",
                chosen.name,
                chosen.cpu,
                tuple(sorted(found.values(), key=lambda one: (one.cpu, one.name))),
                self._why(choice, plan, is_written=plan is written),
                chosen.memory,
            ),
        )

    def _why(self, choice: Choice, plan: TreePlan, *, is_written: bool) -> str:
        """The reason, in units that people know."""
        if not plan.is_qualified(choice.limits):
            both = choice.needs.both
            cpu, memory = both.cpu * _SECOND, both.memory
            needs = [
                f"{taken:,.0f} {unit}"
                for taken, limit, unit in (
                    (cpu, self.planning.cpu_limit, "us/s"),
                    (memory, self.planning.memory_limit, "bytes"),
                )
                if limit is not None
            ]
            return (
                f"nothing that was found keeps to the limits; the nearest needs {', '.join(needs)}"
            )
        if is_written:
            return "as written, nothing is clearly cheaper"
        ended = f", the search ended by {choice.ended_by}" if choice.ended_by else ""
        return f"the cheapest of {choice.looked_at}, by {choice.found_by}{ended}"

    def _asked_for(self, block: JoinBlock, known: Known) -> Chosen:
        """One stage of all inputs, since the settings say so."""
        costs = replace(self._costs(known), apart=False)
        plan = Pricing(known.graph, costs).plan(flat(known.graph.inputs))
        one = self._alternative(plan, [_name(input_) for input_ in block.inputs])
        why = 'as set by joins="multiway"'
        return Chosen(
            plan, block.written, Decision("join order", one.name, one.cpu, (), why, one.memory)
        )

    def _costs(self, known: Known) -> Costs:
        return join_costs(self.constants, self.pace, signed=known.is_signed)

    def _limits(self) -> tuple[float | None, float | None]:
        """The limits in the units of the search: by microsecond, and in bytes."""
        cpu, memory = self.planning.cpu_limit, self.planning.memory_limit
        return (None if cpu is None else cpu / _SECOND, memory)

    def _best(self, known: Known) -> Choice:
        limits = self._limits()
        is_open = Open.JOINS in self.planning.left_open
        has_reason = limits != (None, None) or known.is_measured
        return best_tree(
            known.graph, self._costs(known), *limits, binary=not (is_open and has_reason)
        )

    def _alternative(self, plan: TreePlan, names: list[str]) -> Alternative:
        return Alternative(_text(plan.tree, names), plan.cpu * _SECOND, plan.memory)


def _tree_of(shape: Shape) -> JoinTree:
    if isinstance(shape, int):
        return shape
    return Stage((_tree_of(shape[0]), _tree_of(shape[1])))


def shape_of(plan: TreePlan) -> Shape:
    """The joins of a tree."""
    return _shape_of(plan, plan.tree)


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


def _joins_of(shape: Shape) -> Joined:
    """The joins of a shape, whatever is joined."""
    if isinstance(shape, int):
        return None
    return _joins_of(shape[0]), _joins_of(shape[1])


def _text(tree: JoinTree, names: list[str]) -> str:
    if isinstance(tree, int):
        return names[tree]
    return f"({' '.join(_text(child, names) for child in tree.children)})"


def _name(plan: Plan) -> str:
    """An input by the streams and relations that it reads."""
    read = [node.name for node in walk(plan) if isinstance(node, Source | Relation)]
    return "+".join(dict.fromkeys(read))
