"""Which order of joins is chosen, and what is said of it.

Law: the order is that of the query unless another is expected to cost less than ``CLEARLY`` of it.
The same query is ordered alike whenever the same is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.optimizer.decisions import Alternative, Decision
from tidemill.optimizer.search.best import best_tree
from tidemill.optimizer.search.costs import Costs
from tidemill.optimizer.search.tree import JoinTree, Stage, mask_of
from tidemill.optimizer.search.tree_cost import Pricing

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.constants import Constants
    from tidemill.optimizer.estimates.flow import Pace
    from tidemill.optimizer.logical.join_block import JoinBlock, Shape
    from tidemill.optimizer.logical.order_joins import JoinOrder
    from tidemill.optimizer.search.join_graph import JoinGraph

__all__ = ["CLEARLY", "Chooser", "join_costs"]

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
class Chooser:
    """Chooses orders.

    Attributes:
        costs: What joining costs.
    """

    costs: Costs

    def shape(self, block: JoinBlock, graph: JoinGraph) -> Shape:
        """The order for a block."""
        written = self._cpu(graph, block.written)
        best, cpu = self._best(graph)
        if cpu >= CLEARLY * written:
            return block.written
        return _shape_of(best)

    def decision(self, order: JoinOrder) -> Decision:
        """What was decided, in words."""
        names = [_name(plan) for plan in order.block.inputs]
        written = order.block.written
        chosen = Alternative(_text(order.shape, names), self._cpu(order.graph, order.shape))
        others = [Alternative(_text(written, names), self._cpu(order.graph, written))]
        if order.shape == written:
            best, cpu = self._best(order.graph)
            others = [Alternative(_text(_shape_of(best), names), cpu)]
            why = "as written, nothing is clearly cheaper"
        else:
            why = "cheaper than as written"
        kept = tuple(
            Alternative(one.name, one.cpu * _SECOND) for one in others if one.name != chosen.name
        )
        return Decision("join order", chosen.name, chosen.cpu * _SECOND, kept, why)

    def _best(self, graph: JoinGraph) -> tuple[JoinTree, float]:
        best = best_tree(graph, self.costs, binary=True).plan
        return best.tree, best.cpu

    def _cpu(self, graph: JoinGraph, shape: Shape) -> float:
        return Pricing(graph, self.costs).plan(_tree_of(shape)).cpu


def _tree_of(shape: Shape) -> JoinTree:
    if isinstance(shape, int):
        return shape
    return Stage((_tree_of(shape[0]), _tree_of(shape[1])))


def _shape_of(tree: JoinTree) -> Shape:
    """The joins of a binary tree; the side with the least input stands left."""
    if isinstance(tree, int):
        return tree
    left, right = tree.children
    assert not mask_of(left) & mask_of(right), "each input is joined once"
    return _shape_of(left), _shape_of(right)


def _text(shape: Shape, names: list[str]) -> str:
    if isinstance(shape, int):
        return names[shape]
    return f"({_text(shape[0], names)} {_text(shape[1], names)})"


def _name(plan: Plan) -> str:
    """An input by the streams and relations that it reads."""
    read = [node.name for node in walk(plan) if isinstance(node, Source | Relation)]
    return "+".join(dict.fromkeys(read))
