"""Order inner joins: which inputs meet first.

    Join on b.k = c.k              Join on b.k = c.k
      Join                           Join on a.k = b.k
        a                    ->        a
        c                              b
      b                              c

Law: the plan has the same snapshots and columns as before (``join_block.py``), and its joins are
expected to cost clearly less. Where that is not so, the order that the query has written stays.

What is known of an input is what flows out of its plan. Where nothing has been measured, a join is
taken to have as many rows as the greater of its sides, so that all orders that follow the
conditions cost about the same, and what is left to avoid are products: inputs that a condition
links are joined before those that none does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from tidemill.algebra.expr import Call, Column, used_columns
from tidemill.algebra.plan import Join, Plan, Project
from tidemill.algebra.tree import children, walk, with_children
from tidemill.model.types import BOOLEAN, Kind
from tidemill.optimizer.estimates.flow import width_of
from tidemill.optimizer.logical.join_block import JoinBlock, Shape, join_block
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.widths import Widths
from tidemill.optimizer.selectivity import Columns, selectivity, values_of
from tidemill.physical.joining.conditions import split_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.optimizer.estimates.flow import Flow
    from tidemill.optimizer.search.widths import Carried

__all__ = ["Known", "Ordered", "join_graph", "known_of", "order_joins"]

_FEWEST = 3
"""Two inputs have one order: the sides of a join are alike."""

_TWO = 2
_LEAST_SHARE = 1e-30
_TIMES = 16.0
"""How many bytes the times of a row take."""
_COUNT = 8.0
"""How many bytes it takes to say how often a row is there."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a block.

    Attributes:
        graph: Its inputs, and what links them.
        is_measured: Whether all of its inputs have been measured.
        is_signed: Whether rows of an input appear and are withdrawn, and so all that is joined.
    """

    graph: JoinGraph
    is_measured: bool = False
    is_signed: bool = False


class Ordered(Protocol):
    """What was chosen for a block."""

    @property
    def shape(self) -> Shape:
        """Its joins of two."""
        ...


T = TypeVar("T", bound=Ordered)


def order_joins(
    plan: Plan,
    flow: Callable[[Plan], Flow],
    choose: Callable[[JoinBlock, Known], T],
) -> tuple[Plan, tuple[T, ...]]:
    """The plan with its joins in a good order, and what was chosen for each block.

    Args:
        plan: The plan.
        flow: What is known of the rows of a part of it.
        choose: What is best for a block, given what is known of it.
    """
    parents = Counter(id(child) for node in walk(plan) for child in children(node))
    done: dict[int, Plan] = {}
    wanted: dict[int, frozenset[str]] = {}
    settled: set[int] = set()
    found: list[T] = []

    def visit(node: Plan) -> Plan:
        if id(node) not in done:
            done[id(node)] = ordered(node)
        return done[id(node)]

    def ordered(node: Plan) -> Plan:
        block = None
        match node:
            case Project(Join() as below, columns) if parents[id(below)] == 1:
                wanted[id(below)] = frozenset().union(*(used_columns(c.expr) for c in columns))
            case _:
                pass
        if isinstance(node, Join) and id(node) not in settled:
            block = join_block(node, lambda part: parents[id(part)] > 1)
        if block is not None and len(block.inputs) >= _FEWEST:
            flows = [flow(one) for one in block.inputs]
            order = choose(block, known_of(block, flows, wanted.get(id(node))))
            found.append(order)
            if order.shape != block.written:
                return block.shaped(order.shape, [visit(one) for one in block.inputs])
            settled.update(block.inside)
        old = children(node)
        new = tuple(visit(child) for child in old)
        changed = any(a is not b for a, b in zip(old, new, strict=True))
        return with_children(node, new) if changed else node

    return visit(plan), tuple(found)


def known_of(
    block: JoinBlock, flows: Sequence[Flow], wanted: Collection[str] | None = None
) -> Known:
    """What is known of a block, given what is known of its inputs.

    Args:
        block: The block.
        flows: What flows out of its inputs.
        wanted: The columns of the block that are asked for; ``None`` for all.
    """
    is_measured = all(flow.edge.is_measured for flow in flows)
    is_signed = any(flow.is_signed for flow in flows)
    asked = frozenset(
        column.expr.name
        for column in block.columns
        if isinstance(column.expr, Column) and (wanted is None or column.name in wanted)
    )
    widths = _widths(block, flows, asked, _COUNT if is_signed else _TIMES)
    return Known(join_graph(block, flows, widths), is_measured, is_signed)


def join_graph(block: JoinBlock, flows: Sequence[Flow], widths: Widths | None = None) -> JoinGraph:
    """What is known of a block, given what is known of its inputs."""
    columns = _columns(block, flows)
    is_measured = any(flow.edge.is_measured for flow in flows)
    links: dict[tuple[int, int], float] = {}
    keys: dict[tuple[int, int], float] = {}
    for part in block.parts.rest:
        reads = sorted(block.parts.reads(part))
        if len(reads) == 2:  # noqa: PLR2004 — an edge has two ends
            pair, share = (reads[0], reads[1]), selectivity(part, columns)
            links[pair] = links.get(pair, 1.0) * share
            if split_condition(part, *(block.names[end] for end in pair))[0]:
                keys[pair] = keys.get(pair, 1.0) * share
    found = (_values(class_, columns) for class_ in block.parts.classes)
    classes = [values for values in found if len(values) > 1]
    if not is_measured:
        classes = [_as_few(values, flows) for values in classes]
    horizon = flows[0].pace.for_ever
    return JoinGraph(
        rates=tuple(flow.edge.rate for flow in flows),
        windows=tuple(min(flow.edge.length, horizon) for flow in flows),
        selectivities=links,
        standing=tuple(flow.edge.standing for flow in flows),
        classes=tuple(classes),
        keys=keys,
        horizon=horizon,
        widths=widths,
    )


def _widths(
    block: JoinBlock, flows: Sequence[Flow], asked: Collection[str], overhead: float
) -> Widths:
    """How wide rows are: texts as long as those that come in."""
    places: dict[str, int] = {}
    columns: list[Carried] = []
    for number, (plan, names, flow) in enumerate(
        zip(block.inputs, block.names, flows, strict=True)
    ):
        for name, one in zip(names, plan.schema, strict=True):
            readers = tuple(
                sum(1 << owner for owner in block.parts.reads(part))
                for part in block.parts.rest
                if name in used_columns(part)
            )
            places[name] = len(columns)
            weight = max(flow.weight, 1.0) if one.type.kind is Kind.VARCHAR else 1.0
            columns.append((width_of(one.type) * weight, number, name in asked, readers))
    classes = tuple(
        tuple((owner, tuple(places[n] for n in used_columns(expr))) for expr, owner in one.items())
        for one in block.parts.classes
    )
    return Widths(tuple(columns), classes, overhead)


def _columns(block: JoinBlock, flows: Sequence[Flow]) -> Columns:
    """What is known of the columns of a block, under their names in it."""
    values: dict[str, float] = {}
    origins: dict[str, str] = {}
    conditions: dict[str, float] = {}
    for plan, names, flow in zip(block.inputs, block.names, flows, strict=True):
        new = dict(zip(plan.schema.names, names, strict=True))
        known = flow.columns
        values |= {new[name]: found for name, found in known.values.items() if name in new}
        origins |= {new[name]: origin for name, origin in known.origins.items() if name in new}
        conditions |= known.conditions
    return Columns(values, origins, conditions)


def _values(class_: Mapping[Expr, int], columns: Columns) -> dict[int, float]:
    """How many values each input has of what must be equal; of two inputs, what was measured."""
    values: dict[int, float] = {}
    for expr, number in class_.items():
        values[number] = max(values.get(number, 1.0), values_of(expr, columns))
    if len(class_) == len(values) == _TWO:
        share = selectivity(Call("=", tuple(class_), BOOLEAN), columns)
        return dict.fromkeys(values, 1 / max(share, _LEAST_SHARE))
    return values


def _as_few(values: Mapping[int, float], flows: Sequence[Flow]) -> dict[int, float]:
    """So many values for all that a join has as many rows as the greater side."""
    least = max(1.0, min(flows[number].edge.size for number in values))
    return dict.fromkeys(values, least)
