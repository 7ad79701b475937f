"""Estimates of joins: of two inputs, and of many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from tidemill.algebra.expr import conjunction
from tidemill.optimizer.charges import looked_at
from tidemill.optimizer.estimates.combinations import (
    columns_of,
    combined,
    equality,
    matched,
    parts_of,
    probed,
)
from tidemill.optimizer.estimates.flow import MOST, Flow, Work
from tidemill.optimizer.estimates.rows import common_lag, kept, netted
from tidemill.optimizer.selectivity import selectivity
from tidemill.physical.joining.conditions import split_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical import interval, signed

__all__ = [
    "join",
    "multi_join",
    "named",
    "renamed",
    "signed_join",
    "signed_multi_join",
]

_Orders: TypeAlias = "Sequence[Sequence[int]]"

_SIDES: Final = ("left", "right")


def join(operator: interval.Join, left: Flow, right: Flow) -> Work:
    """Pairs, when the later of the two comes."""
    schemas = (operator.left, operator.right)
    flows = named(operator.names, schemas, (left, right))
    lag = common_lag(flows)
    state = {"left": flows[0].kept(lag), "right": flows[1].kept(lag)}
    keyed = _is_keyed(operator.names, schemas, operator.condition)
    looked = _looked_at(flows[0], state["right"], keyed=keyed)
    looked += _looked_at(flows[1], state["left"], keyed=keyed)
    compared = _candidates(flows, operator.condition)
    out = matched(flows[0], flows[1], operator.condition)
    return Work(out, left.passed + right.passed, state, compared, looked)


def signed_join(operator: signed.Join, left: Flow, right: Flow) -> Work:
    """Pairs that appear and are withdrawn; each side is remembered, and what is still ahead."""
    sides = (netted(left, operator.left), netted(right, operator.right))
    flows = named(operator.names, (operator.left, operator.right), sides)
    lag = common_lag(flows)
    state = {name: flow.edge.size for name, flow in zip(_SIDES, flows, strict=True)}
    for name, flow in zip(_SIDES, flows, strict=True):
        state[f"{name}.pending"] = flow.pending(lag)
    keyed = _is_keyed(operator.names, (operator.left, operator.right), operator.condition)
    touched = left.passed + right.passed
    if not keyed:
        touched += sum(flow.edge.size for flow in flows) * left.pace.steps
    compared = 2 * _candidates(flows, operator.condition)
    out = _withdrawn(matched(flows[0], flows[1], operator.condition), lag)
    return Work(out, left.passed + right.passed, state, compared, touched)


def multi_join(operator: interval.MultiJoin, inputs: Sequence[Flow]) -> Work:
    """Combinations, when the last of their elements comes.

    With lazy evaluation what has come waits, and so does the answer.
    """
    flows = named(operator.names, operator.inputs, inputs)
    pace, every = flows[0].pace, float(operator.evaluation)
    # What has come since the last round waits for the next one, and what goes goes in some of them.
    step = 1 / pace.steps
    waits = max(every - step, 0.0) / 2
    late = max(operator.expiration - max(every, step), 0.0) / 2
    lag = common_lag(flows)
    state = {f"joined{port}": flow.kept(lag + late) for port, flow in enumerate(flows)}
    sizes = list(state.values())
    if every:
        state |= {f"new{port}": flow.edge.rate * waits for port, flow in enumerate(flows)}
    lag += every / 2
    rounds = min(1 / every, pace.steps) if every else pace.steps
    compared, looked = _probed(flows, sizes, operator.condition, operator.orders, rounds)
    out = _combined(flows, operator.condition)
    out = replace(out, lag=lag, delay=out.delay + every / 2)
    return Work(out, sum(flow.passed for flow in inputs), state, compared, looked)


def signed_multi_join(operator: signed.MultiJoin, inputs: Sequence[Flow]) -> Work:
    """Combinations that appear and are withdrawn."""
    sides = [netted(flow, schema) for flow, schema in zip(inputs, operator.inputs, strict=True)]
    flows = named(operator.names, operator.inputs, sides)
    lag = common_lag(flows)
    sizes = [flow.edge.size for flow in flows]
    state = {f"rows{port}": size for port, size in enumerate(sizes)}
    state |= {f"pending{port}": flow.pending(lag) for port, flow in enumerate(flows)}
    steps = flows[0].pace.steps
    compared, looked = _probed(flows, sizes, operator.condition, operator.orders, steps)
    out = _withdrawn(_combined(flows, operator.condition), lag)
    return Work(out, sum(flow.passed for flow in inputs), state, 2 * compared, looked)


def _withdrawn(flow: Flow, lag: float) -> Flow:
    """The same elements in signed form, each change when the watermark has passed it."""
    return replace(flow, is_signed=True, is_ahead=False, lag=lag, delay=lag)


def renamed(flow: Flow, new: dict[str, str]) -> Flow:
    """The flow with other names for its columns."""
    values = {new[n]: v for n, v in flow.edge.distinct.items() if n in new}
    origins = {new[n]: o for n, o in flow.origins.items() if n in new}
    joined = None if flow.joined is None else flow.joined.renamed(new)
    edge = replace(flow.edge, distinct=values)
    return replace(flow, edge=edge, origins=origins, joined=joined)


def named(names: Sequence[str], schemas: Sequence[Schema], flows: Sequence[Flow]) -> list[Flow]:
    """The inputs with the names that the condition knows their columns by."""
    left = iter(names)
    return [
        renamed(flow, {field.name: next(left) for field in schema})
        for schema, flow in zip(schemas, flows, strict=True)
    ]


def _is_keyed(names: Sequence[str], inputs: Sequence[Schema], condition: Expr) -> bool:
    """Whether two inputs have an equality by which rows are looked up."""
    width = len(inputs[0])
    return bool(split_condition(condition, names[:width], names[width:])[0])


def _candidates(flows: Sequence[Flow], condition: Expr) -> float:
    """How many pairs are made before the rest of a condition is looked at."""
    left, right = flows
    equalities, _ = split_condition(condition, left.edge.distinct, right.edge.distinct)
    columns = columns_of(flows)
    share = selectivity(conjunction(*map(equality, equalities)), columns)
    pairs = left.begun * right.edge.size + right.begun * left.edge.size
    return min(pairs, MOST) * share


def _looked_at(own: Flow, other: float, *, keyed: bool) -> float:
    """How many rows of the other side are gone through because of the elements of one."""
    return looked_at(min(own.pace.steps, own.begun), own.begun, other, keyed=keyed)


def _combined(flows: Sequence[Flow], condition: Expr) -> Flow:
    """The combinations of several inputs that match."""
    parts = parts_of(flows, condition)
    alone = [kept(flow, parts.entry(port)) for port, flow in enumerate(flows)]
    return combined(parts, [(port,) for port in range(len(flows))], alone)


def _probed(
    flows: Sequence[Flow],
    sizes: Sequence[float],
    condition: Expr,
    orders: _Orders,
    rounds: float,
) -> tuple[float, float]:
    """How many rows are compared, and how many of the inputs are gone through.

    Args:
        flows: The inputs.
        sizes: How many rows of each are remembered.
        condition: What must be true.
        orders: For each input, in which order it probes the others.
        rounds: How often what has come probes, in a second.
    """
    groups = [(port,) for port in range(len(flows))]
    return probed(parts_of(flows, condition), groups, flows, sizes, orders, rounds)
