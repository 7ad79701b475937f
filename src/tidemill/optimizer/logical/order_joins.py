"""Order inner joins: which inputs meet first.

    Join on b.k = c.k              Join on b.k = c.k
      Join                           Join on a.k = b.k
        a                    ->        a
        c                              b
      b                              c

Law: the plan has the same snapshots and columns as before (``join_block.py``), and its joins are
expected to cost less. Where that is not clear, the order that the query has written stays.

What is known of an input is that of its plan (``edge``); of a condition, its selectivity. Without
statistics all inputs look alike, and what is left is the conditions: inputs that one links are
joined before those that none does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, used_columns
from tidemill.algebra.plan import Join, Plan
from tidemill.algebra.tree import children, walk, with_children
from tidemill.optimizer.logical.join_block import JoinBlock, Shape, join_block
from tidemill.optimizer.search.join_graph import JoinGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.optimizer.statistics import Edge

__all__ = ["JoinOrder", "join_graph", "order_joins", "shape_text"]

_FEWEST = 3
"""Two inputs have one order: the sides of a join are alike."""


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """The order of one block of joins.

    Attributes:
        block: The joins.
        shape: The order that was chosen.
        graph: What was known.
    """

    block: JoinBlock
    shape: Shape
    graph: JoinGraph


def order_joins(
    plan: Plan,
    edge: Callable[[Plan], Edge],
    share: Callable[[Expr], float],
    choose: Callable[[JoinGraph, Shape], Shape],
) -> tuple[Plan, tuple[JoinOrder, ...]]:
    """The plan with its joins in a good order, and what was chosen for each block.

    Args:
        plan: The plan.
        edge: What is known of the rows of a part of it.
        share: The share of pairs that meet a condition.
        choose: The order for a graph, given the written one.
    """
    parents = Counter(id(child) for node in walk(plan) for child in children(node))
    done: dict[int, Plan] = {}
    settled: set[int] = set()
    found: list[JoinOrder] = []

    def visit(node: Plan) -> Plan:
        if id(node) not in done:
            done[id(node)] = ordered(node)
        return done[id(node)]

    def ordered(node: Plan) -> Plan:
        block = None
        if isinstance(node, Join) and id(node) not in settled:
            block = join_block(node, lambda part: parents[id(part)] > 1)
        if block is not None and len(block.inputs) >= _FEWEST:
            graph = join_graph(block, [edge(one) for one in block.inputs], share)
            order = JoinOrder(block, choose(graph, block.written), graph)
            found.append(order)
            if order.shape != block.written:
                return block.shaped(order.shape, [visit(one) for one in block.inputs])
            settled.update(block.inside)
        old = children(node)
        new = tuple(visit(child) for child in old)
        changed = any(a is not b for a, b in zip(old, new, strict=True))
        return with_children(node, new) if changed else node

    return visit(plan), tuple(found)


def join_graph(
    block: JoinBlock, edges: Sequence[Edge], share: Callable[[Expr], float]
) -> JoinGraph:
    """What is known of a block.

    Args:
        block: The joins.
        edges: What is known of each input.
        share: The share of pairs that meet a condition.
    """
    links: dict[tuple[int, int], float] = {}
    for part in block.parts.rest:
        reads = sorted(block.parts.reads(part))
        if len(reads) == 2:  # noqa: PLR2004 — an edge has two ends
            pair = reads[0], reads[1]
            links[pair] = links.get(pair, 1.0) * share(part)
    classes = []
    for class_ in block.parts.classes:
        values: dict[int, float] = {}
        for expr, number in class_.items():
            values[number] = max(values.get(number, 1.0), _distinct(block, expr, number, edges))
        if len(values) > 1:
            classes.append(values)
    return JoinGraph(
        rates=tuple(one.rate for one in edges),
        windows=tuple(min(one.length, _FOR_EVER) for one in edges),
        selectivities=links,
        standing=tuple(one.standing for one in edges),
        classes=tuple(classes),
    )


_FOR_EVER = 3_600_000_000.0
"""What never ends is looked at for an hour."""


def _distinct(block: JoinBlock, expr: Expr, number: int, edges: Sequence[Edge]) -> float:
    """How many values an expression over an input has."""
    edge, names = edges[number], block.names[number]
    back = dict(zip(names, block.inputs[number].schema.names, strict=True))
    known = [edge.distinct.get(back[name], inf) for name in used_columns(expr)]
    size = max(edge.size, 1.0)
    if isinstance(expr, Column):
        return max(1.0, min(*known, size, _MOST))
    return max(1.0, min(size, _MOST))


_MOST = 1e12


def shape_text(shape: Shape, names: Sequence[str]) -> str:
    """A shape for people.

    >>> shape_text(((0, 2), 1), ["a", "b", "c"])
    '((a c) b)'
    """
    if isinstance(shape, int):
        return names[shape]
    return f"({shape_text(shape[0], names)} {shape_text(shape[1], names)})"
