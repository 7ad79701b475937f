"""One cost: what the search says of a tree of joins is what the plan that it becomes costs.

Law: in one partition, with columns chosen for nothing, the cost of a plan is that of its tree in
the search and what all trees of the block have in common; so is its memory. In several partitions
the search does not see where each row lies; there, and with choosing columns charged, the tree
that it finds cheapest is at most so much dearer as a plan than the cheapest plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import Phase, find, given, settings

from join_queries import JoinQuery, join_queries
from tidemill.algebra.expr import used_columns
from tidemill.algebra.plan import Join, Plan, Project, Relation
from tidemill.algebra.tree import share, walk
from tidemill.optimizer.constants import DEFAULTS, Constants, OperatorCost
from tidemill.optimizer.cost import Pace, plan_cost
from tidemill.optimizer.decisions import Decision
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.join_orders import Chosen, join_costs, shape_of
from tidemill.optimizer.logical.join_block import JoinBlock, join_block
from tidemill.optimizer.logical.order_joins import Known, known_of
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rules import rules_with
from tidemill.optimizer.physical import merge_joins as merging
from tidemill.optimizer.physical.implement import implement
from tidemill.optimizer.physical.push_exchanges import push_exchanges
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.search.costs import Costs, Counting
from tidemill.optimizer.search.extensions import all_trees
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import stages
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.optimizer.estimates.flow import Flow
    from tidemill.optimizer.search.tree_cost import Plan as TreePlan
    from tidemill.physical.plan import PhysicalPlan

FREE = replace(
    DEFAULTS, operators={**DEFAULTS.operators, "interval.Project": OperatorCost(0.0, 0.0, 0.0)}
)
"""The constants, with columns chosen for nothing."""

ONE, FOUR = Pace(partitions=1), Pace(partitions=4)
AT_MOST = 1.5
"""So much dearer than the cheapest plan is that of the tree that the search finds cheapest."""


@dataclass(frozen=True)
class Priced:
    """A tree in the search, and as a plan: CPU and memory of each."""

    searched: tuple[float, float]
    planned: tuple[float, float]
    is_as_chosen: bool


class Block:
    """The joins of a query."""

    def __init__(self, query: JoinQuery, pace: Pace) -> None:
        self.query, self.pace = query, pace
        plan = optimize(share(query.plan))
        joins = [n for n in walk(plan) if isinstance(n, Join)]
        block = join_block(joins[-1], lambda _: False)
        assert block is not None, "the query joins"
        self.block: JoinBlock = block
        self.above, wanted = None, None
        if isinstance(plan, Project) and plan.input is joins[-1]:
            self.above = plan
            wanted = frozenset[str]().union(*(used_columns(c.expr) for c in plan.columns))
        self.relations = {node.name for node in walk(plan) if isinstance(node, Relation)}
        self.known: Known = known_of(block, [self._flow(one) for one in block.inputs], wanted)

    def _flow(self, part: Plan) -> Flow:
        made = implement(part, Technique.PATTERN).placed.plan
        known = estimate([made], self.query.known, self.pace, self.relations)
        return known[made.fingerprint].flow

    def plan(self, found: TreePlan) -> PhysicalPlan:
        """The plan that a tree becomes."""
        shape = shape_of(found)
        chosen = Chosen(found, shape, Decision("join order", "", 0.0, (), ""))
        shaped = self.block.shaped(shape)
        whole = shaped if self.above is None else replace(self.above, input=shaped)
        logical = rewrite(whole, rules_with("written")).plan
        physical = implement(logical, Technique.PATTERN).placed.plan
        merged, _ = merging.merge_joins(physical, 0, (chosen.stages,), all_=False)
        return push_exchanges(merged)[0]

    def priced(self, constants: Constants, costs: Costs) -> list[Priced]:
        """All trees, in the search and as plans."""
        pricing = Pricing(self.known.graph, costs)
        trees = [pricing.plan(tree) for tree in all_trees(len(self.block.inputs))]
        return [self._priced(found, constants) for found in trees if found.cpu < inf]

    def _priced(self, found: TreePlan, constants: Constants) -> Priced:
        made = self.plan(found)
        cost = plan_cost(made, self.query.known, constants, self.pace, self.relations)
        joins = sum(isinstance(p, Apply) and "Join" in repr(type(p.operator)) for p in parts(made))
        searched = found.cpu * 1e6, found.memory
        stages_ = sum(1 for _ in stages(found.tree))
        return Priced(searched, (cost.cpu - cost.steps, cost.memory), joins == stages_)


def parts(made: PhysicalPlan) -> list[PhysicalPlan]:
    return list(walk_physical([made]))


def differing(query: JoinQuery, costs: Costs | None = None) -> list[str]:
    """Where the search and the plans of a query do not agree."""
    block = Block(query, ONE)
    found = block.priced(FREE, costs or join_costs(FREE, ONE))
    wrong = [f"{one} is another tree" for one in found if not one.is_as_chosen]
    for what in (0, 1):
        apart = [one.planned[what] - one.searched[what] for one in found]
        allowed = 1e-6 * max(one.planned[what] for one in found)
        if max(apart) - min(apart) > max(allowed, 1e-3):
            wrong.append(f"{('CPU', 'memory')[what]} differs by {apart}")
    return wrong


@given(join_queries(null_safe=False))
def test_a_tree_costs_in_the_search_what_its_plan_costs(query: JoinQuery) -> None:
    assert not differing(query)


@pytest.mark.parametrize("pace", [ONE, FOUR])
@given(query=join_queries())
def test_the_cheapest_tree_becomes_one_of_the_cheapest_plans(query: JoinQuery, pace: Pace) -> None:
    found = Block(query, pace).priced(DEFAULTS, join_costs(DEFAULTS, pace))
    best = min(found, key=lambda one: one.searched)
    assert best.planned[0] <= AT_MOST * min(one.planned[0] for one in found)


RIGHT = join_costs(FREE, ONE)
assert RIGHT.engine is not None
HARMS: dict[str, Costs] = {
    "stages of many cost what joins of two do": replace(
        RIGHT, engine=replace(RIGHT.engine, many=RIGHT.engine.two)
    ),
    "pairs are compared that match": replace(RIGHT, counting=Counting.MATCHES),
    "state is not gone through": replace(RIGHT, engine=replace(RIGHT.engine, scanned=0.0)),
    "steps cost nothing": replace(RIGHT, engine=replace(RIGHT.engine, rounds=0.0)),
    "the printed model": Costs(),
}
FEW = settings(max_examples=300, deadline=None, phases=[Phase.generate])


@pytest.mark.parametrize("harm", HARMS)
def test_the_law_finds_another_cost(harm: str) -> None:
    find(join_queries(null_safe=False), lambda q: bool(differing(q, HARMS[harm])), settings=FEW)


def without_widths(query: JoinQuery) -> bool:
    block = Block(query, ONE)
    block.known = replace(block.known, graph=replace(block.known.graph, widths=None))
    found = block.priced(FREE, RIGHT)
    apart = [one.planned[1] - one.searched[1] for one in found]
    return max(apart) - min(apart) > 1e-3 * max(one.planned[1] for one in found)


def test_the_law_finds_rows_instead_of_bytes() -> None:
    find(join_queries(null_safe=False), without_widths, settings=FEW)


def test_the_law_finds_stages_that_are_lost_where_rows_are_sent() -> None:
    join_of: Callable[[PhysicalPlan], PhysicalPlan | None] = merging._join_of  # noqa: SLF001 — to harm it

    def blind(part: PhysicalPlan) -> PhysicalPlan | None:
        found = join_of(part)
        sent = not isinstance(part, Apply) or any(not isinstance(p, Apply) for p in below(part))
        return None if sent and found is not part else found

    def below(part: PhysicalPlan) -> list[PhysicalPlan]:
        found = join_of(part)
        return [] if found is part or not isinstance(part, Apply) else list(part.inputs)

    with patch.object(merging, "_join_of", blind):
        find(join_queries(null_safe=False), lambda q: bool(differing(q)), settings=FEW)
