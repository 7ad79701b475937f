"""Estimates of how rows of several inputs meet: the combinations, and what finding them takes.

What leaves a join are pairs of elements of which both are valid. Where rows stay from the
beginning, as those of relations, pairs with these last as long as their partner does.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, conjunction
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.charges import looked_at
from tidemill.optimizer.estimates.flow import MOST, Flow, bounded
from tidemill.optimizer.estimates.joined import Input, Side, met
from tidemill.optimizer.estimates.rows import kept
from tidemill.optimizer.selectivity import Columns, selectivity, values_of
from tidemill.physical.joining.condition_parts import ConditionParts, member
from tidemill.physical.joining.conditions import split_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.physical.joining.conditions import Equality

__all__ = ["columns_of", "combined", "equality", "matched", "parts_of", "probed"]


def parts_of(flows: Sequence[Flow], condition: Expr) -> ConditionParts:
    """A condition taken apart by the inputs that it reads."""
    return ConditionParts([list(flow.edge.distinct) for flow in flows], condition)


def columns_of(flows: Sequence[Flow]) -> Columns:
    """What is known of the columns of several inputs."""
    return Columns(
        {n: v for flow in flows for n, v in flow.edge.distinct.items()},
        {n: o for flow in flows for n, o in flow.origins.items()},
        flows[0].conditions,
    )


def matched(left: Flow, right: Flow, condition: Expr) -> Flow:
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
        out = matched(out, flow, conjunction(*equal, parts.due(before, *group)))
        before += group
    return out


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


def probed(  # noqa: PLR0913, PLR0917 — what is known of a stage
    parts: ConditionParts,
    groups: Sequence[Sequence[int]],
    flows: Sequence[Flow],
    sizes: Sequence[float],
    orders: Sequence[Sequence[int]],
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
    columns = columns_of(flows)
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
            by_key = conjunction(*equal, *(equality(key) for key in keys))
            found = min(found * sizes[other], MOST) * selectivity(by_key, columns)
            compared += found
            found *= selectivity(rest, columns)
            prefix += group
    return compared, looked


def equality(key: Equality) -> Expr:
    """The condition that an equality is."""
    return Call("is_not_distinct" if key.null_safe else "=", (key.left, key.right), BOOLEAN)
