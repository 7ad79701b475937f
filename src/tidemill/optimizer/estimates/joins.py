"""Estimates of joins: of two inputs, and of many.

What leaves a join are pairs of elements of which both are valid. Where rows stay from the
beginning, as those of relations, pairs with these last as long as their partner does.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from tidemill.algebra.expr import Call, conjunction
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.charges import looked_at
from tidemill.optimizer.estimates.flow import MOST, Flow, Work, bounded
from tidemill.optimizer.estimates.joined import Input, Side, met
from tidemill.optimizer.estimates.rows import common_lag, kept, netted
from tidemill.optimizer.selectivity import Columns, selectivity, values_of
from tidemill.physical.joining.condition_parts import ConditionParts, member
from tidemill.physical.joining.conditions import split_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical import interval, signed
    from tidemill.physical.joining.conditions import Equality

__all__ = [
    "combined",
    "join",
    "multi_join",
    "named",
    "parts_of",
    "probed",
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
    out = _matched(flows[0], flows[1], operator.condition)
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
    out = _withdrawn(_matched(flows[0], flows[1], operator.condition), lag)
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


def _matched(left: Flow, right: Flow, condition: Expr) -> Flow:
    """The pairs of which a condition is true."""
    pairs = _pairs(left, right)
    out = kept(pairs, condition)
    if pairs.edge.rate <= 0 or out.edge.rate <= 0:
        return out
    first, second = (
        Input(
            flow.joined,
            flow.edge.rate,
            Side(frozenset(flow.edge.distinct), flow.edge.size, flow.edge.counted),
        )
        for flow in (left, right)
    )
    return replace(out, joined=met(first, second, out.edge.rate / pairs.edge.rate, condition))


def _pairs(left: Flow, right: Flow) -> Flow:
    """All pairs of rows of two inputs, valid while both are."""
    one, other = left.edge, right.edge
    both = one.length + other.length
    # Of rates and lengths: of pairs that both come, and of those with rows that are there.
    kinds = (
        (one.rate * other.rate * both, one.length * other.length / both),
        (one.rate * other.standing, one.length),
        (other.rate * one.standing, other.length),
    )
    rate = sum(rate for rate, _ in kinds)
    edge = replace(
        one,
        distance=1 / rate if rate else inf,
        length=sum(rate * length for rate, length in kinds) / rate if rate else 1.0,
        standing=one.standing * other.standing,
        granule=min(one.granule, other.granule),
        distinct={**one.distinct, **other.distinct},
        counted=inf,
    )
    return replace(
        left,
        edge=bounded(edge, left.pace),
        origins={**left.origins, **right.origins},
        is_ahead=False,
        is_chained=False,
        repeats=0.0,
        lag=max(left.lag, right.lag),
        delay=max(left.delay, right.delay),
        weight=(left.weight + right.weight) / 2,
        widths={**left.widths, **right.widths},
        joined=None,
    )


def _is_keyed(names: Sequence[str], inputs: Sequence[Schema], condition: Expr) -> bool:
    """Whether two inputs have an equality by which rows are looked up."""
    width = len(inputs[0])
    return bool(split_condition(condition, names[:width], names[width:])[0])


def _candidates(flows: Sequence[Flow], condition: Expr) -> float:
    """How many pairs are made before the rest of a condition is looked at."""
    left, right = flows
    equalities, _ = split_condition(condition, left.edge.distinct, right.edge.distinct)
    columns = _columns(flows)
    share = selectivity(conjunction(*map(_equality, equalities)), columns)
    pairs = left.begun * right.edge.size + right.begun * left.edge.size
    return min(pairs, MOST) * share


def _columns(flows: Sequence[Flow]) -> Columns:
    """What is known of the columns of several inputs."""
    return Columns(
        {n: v for flow in flows for n, v in flow.edge.distinct.items()},
        {n: o for flow in flows for n, o in flow.origins.items()},
        flows[0].conditions,
    )


def _looked_at(own: Flow, other: float, *, keyed: bool) -> float:
    """How many rows of the other side are gone through because of the elements of one."""
    return looked_at(min(own.pace.steps, own.begun), own.begun, other, keyed=keyed)


def combined(parts: ConditionParts, groups: Sequence[Sequence[int]], flows: Sequence[Flow]) -> Flow:
    """The combinations that match: of two flows, of these with a third, and so on.

    Args:
        parts: What must be true.
        groups: For each flow, the inputs that are joined in it.
        flows: What has met all that its inputs must meet by themselves.
    """
    out, before = flows[0], list(groups[0])
    for group, flow in zip(groups[1:], flows[1:], strict=True):
        equal = _looked_up(parts, before, group, out.columns)
        out = _matched(out, flow, conjunction(*equal, parts.due(before, *group)))
        before += group
    return out


def _combined(flows: Sequence[Flow], condition: Expr) -> Flow:
    """The combinations of several inputs that match."""
    parts = parts_of(flows, condition)
    alone = [kept(flow, parts.entry(port)) for port, flow in enumerate(flows)]
    return combined(parts, [(port,) for port in range(len(flows))], alone)


def parts_of(flows: Sequence[Flow], condition: Expr) -> ConditionParts:
    """A condition taken apart by the inputs that it reads."""
    return ConditionParts([list(flow.edge.distinct) for flow in flows], condition)


def _looked_up(
    parts: ConditionParts, before: Sequence[int], group: Sequence[int], columns: Columns
) -> list[Expr]:
    """The equalities by which inputs are met when they come after others: one of each class.

    Of what is there already, that one is equated that has the fewest values: no others are left.
    """
    found: list[Expr] = []
    for equal in parts.classes:
        own = next((part for port in group if (part := member(equal, port)) is not None), None)
        met = [expr for expr, owner in equal.items() if owner in before]
        if own is not None and met:
            least = min(met, key=lambda expr: values_of(expr, columns))
            found.append(Call("=", (least, own), BOOLEAN))
    return found


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


def probed(  # noqa: PLR0913, PLR0917 — what is known of a stage
    parts: ConditionParts,
    groups: Sequence[Sequence[int]],
    flows: Sequence[Flow],
    sizes: Sequence[float],
    orders: _Orders,
    rounds: float,
) -> tuple[float, float]:
    """How many rows are compared in a stage of joins, and how many are gone through.

    Compared are, at each step of a probe, those with the keys looked up (G-35).

    Args:
        parts: What must be true.
        groups: For each part of the stage, the inputs that are joined in it.
        flows: Their rows.
        sizes: How many rows of each are remembered.
        orders: For each part, the numbers of the others in the order in which it probes them.
        rounds: How often what has come probes, in a second.
    """
    columns = _columns(flows)
    compared = looked = 0.0
    for number, order in enumerate(orders):
        found, prefix = flows[number].begun, list(groups[number])
        # An input of which nothing comes probes nothing.
        times = min(rounds, found)
        for other in order:
            group = groups[other]
            due = parts.due(prefix, *group)
            equal = _looked_up(parts, prefix, group, columns)
            keys, rest = split_condition(due, parts.names(*prefix), parts.names(*group))
            looked += looked_at(times, found, sizes[other], keyed=bool(equal or keys))
            by_key = conjunction(*equal, *(_equality(key) for key in keys))
            found = min(found * sizes[other], MOST) * selectivity(by_key, columns)
            compared += found
            found *= selectivity(rest, columns)
            prefix += group
    return compared, looked


def _equality(key: Equality) -> Expr:
    return Call("is_not_distinct" if key.null_safe else "=", (key.left, key.right), BOOLEAN)
