"""Estimates of operators that compare whole rows: DISTINCT and set operations."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log
from typing import TYPE_CHECKING, Final, assert_never

from tidemill.optimizer import characteristics as shape
from tidemill.optimizer import multiplicities
from tidemill.optimizer.estimates.flow import Flow, Work, shaped
from tidemill.optimizer.estimates.joins import renamed
from tidemill.optimizer.estimates.rows import common_lag, held_back
from tidemill.optimizer.selectivity import seen
from tidemill.physical import interval, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["counting", "distinct"]

_LEAST: Final = 1e-12
"""A share so small that nothing is left."""


def distinct(operator: interval.Distinct, below: Flow) -> Work:
    """Each row once, given when it begins as far as it is known."""
    rows = below.different(operator.schema)
    present = seen(rows, below.edge.size)
    touched = seen(rows, below.in_step) * below.pace.steps
    state = {"pending": below.pending(below.lag), "covered": present}
    out = replace(_once(below, rows), delay=below.lag, joined=None)
    return Work(out, below.rows, state, scanned=touched)


def counting(operator: interval.Counting, inputs: Sequence[Flow]) -> Work:
    """Rows as often as a function of how often they are on either side."""
    first, *others = _aligned(operator, inputs)
    lag = common_lag(inputs)
    flows = (first, *others)
    rows = max(flow.different(operator.schema) for flow in flows)
    is_part = bool(others) and _is_part(operator, first, others[0])
    size = first.edge.size if is_part else sum(flow.edge.size for flow in flows)
    present = seen(rows, size)
    ends = sum(
        0.0 if flow.is_signed or flow.lasts else flow.edge.rate * flow.edge.length for flow in flows
    )
    pending = sum(flow.pending(lag) for flow in flows)
    taken = sum(flow.rows for flow in inputs)
    touched = seen(rows, 2 * taken / first.pace.steps) * first.pace.steps
    state = {"pending": pending, "ends": ends, "totals": present}
    out = _out(operator, first, others, rows)
    out = replace(out, lag=lag, is_ahead=False, is_chained=False, joined=None)
    if isinstance(operator, signed.Counting):
        out = replace(out, is_signed=True, delay=lag)
    else:
        out = _cut_by_changes(out, flows, rows)
        oldest = max(flow.edge.length for flow in flows)
        out = held_back(replace(out, is_signed=False), operator.max_delay, oldest)
    return Work(out, taken, state, scanned=touched)


def _cut_by_changes(out: Flow, flows: Sequence[Flow], rows: float) -> Flow:
    """In interval form all copies of a row end and begin whenever one comes or goes."""
    changes = sum(2 * flow.edge.rate for flow in flows if not flow.lasts)
    if out.edge.rate <= 0 or out.lasts or rows == inf:
        return out
    rate = max(out.edge.rate, out.edge.rate * out.edge.length * changes / rows)
    return shaped(out, out.triple._replace(distance=1 / rate, length=out.edge.size / rate))


def _aligned(operator: interval.Counting, inputs: Sequence[Flow]) -> list[Flow]:
    """The inputs with the columns of the output."""
    return [
        renamed(flow, dict(zip(schema.names, operator.schema.names, strict=True)))
        for flow, schema in zip(inputs, operator.inputs, strict=True)
    ]


def _out(operator: interval.Counting, first: Flow, others: Sequence[Flow], rows: float) -> Flow:
    """What leaves, as elements."""
    kind = interval.Multiplicity
    if operator.multiplicity is kind.DISTINCT:
        return _once(first, rows, merged=True)
    (other,) = others
    come = first.edge.rate > 0 and other.edge.rate > 0
    lasting = first.lasts or other.lasts or bool(first.edge.standing or other.edge.standing)
    if come and not lasting and not _is_part(operator, first, other):
        bags = _BAGS.get(operator.multiplicity)
        if bags is not None:
            return shaped(first, bags(first.triple, other.triple, rows))
    covered = _covered(operator, first, other, rows)
    stretch = _stretch(operator, first, other, rows, covered) if come else 1.0
    match operator.multiplicity:
        case kind.SEMI | kind.INTERSECT:
            triple = shape.matched(first.triple, covered, stretch) if come else None
            return _thinned(first, covered, triple)
        case kind.DIFFERENCE | kind.STRICT_DIFFERENCE:
            triple = shape.difference(first.triple, covered, stretch) if come else None
            return _thinned(first, 1 - covered, triple)
        case kind.MAX_UNION:
            both = [flow.triple for flow in (first, other) if flow.edge.rate > 0]
            standing = max(first.edge.standing, other.edge.standing)
            out = shaped(first, shape.union(both)) if both else first
            return replace(out, edge=replace(out.edge, standing=standing))
        case _:
            assert_never(operator.multiplicity)


_BAGS: Final = {
    interval.Multiplicity.DIFFERENCE: multiplicities.surplus,
    interval.Multiplicity.INTERSECT: multiplicities.intersection,
    interval.Multiplicity.MAX_UNION: multiplicities.maximum,
}
"""Set operations that count copies on both sides."""


def _is_part(operator: interval.Counting, first: Flow, other: Flow) -> bool:
    """Whether the second input is made of rows of the first, as that of an anti-join is.

    Rows that are all different, because they are numbered, are met by themselves only.
    """
    if first.different(operator.schema) == inf:
        return True
    return all(
        first.origins.get(name) == other.origins.get(name) is not None
        for name in operator.schema.names
    )


def _stretch(
    operator: interval.Counting, first: Flow, other: Flow, rows: float, covered: float
) -> float:
    """For how long a row is in the second input, from when it is until it is not.

    Where that is made of rows of the first, it has these pieces cut by the lengths of the first.
    In interval form pieces may adjoin; then there are as many stretches as if they came at random.
    """
    length, for_ever = other.edge.length, first.pace.for_ever
    if not _is_part(operator, first, other):
        return min(shape.presence(other.triple, rows).length, for_ever)
    uncut = 1 / length - 1 / first.edge.length
    length = 1 / uncut if uncut > 1 / for_ever else for_ever
    free = 1 - covered
    if other.is_signed or not 0 < free < 1:
        return length
    return min(length * covered / free / -log(free), for_ever)


def _covered(operator: interval.Counting, first: Flow, other: Flow, rows: float) -> float:
    """With which probability a row of the first input is in the second as well.

    The second may be made of rows of the first, as that of an anti-join is; then it is a part of
    it. Otherwise the rows of the side with fewer are among those of the other.
    """
    size, met = first.edge.size, other.edge.size
    if _is_part(operator, first, other):
        return min(1.0, met / size) if size else 0.0
    different = max(min(rows, max(size, met)), 1.0)
    return shape.covered_part(met / different)


def _once(below: Flow, rows: float, *, merged: bool = False) -> Flow:
    """Each different row once, as long as it is there; one element, if what adjoins is merged."""
    standing = seen(rows, below.edge.standing)
    for_ever = below.pace.for_ever
    if below.edge.rate <= 0:
        return replace(below, edge=replace(below.edge, standing=standing))
    if below.lasts:
        # Each row comes once, and stays.
        rate = seen(rows, below.edge.rate * for_ever) / for_ever
        return replace(below, edge=replace(below.edge, distance=1 / rate, standing=standing))
    if rows == inf:
        return below
    if not merged:
        triple = shape.stretches(below.triple, rows, 1 / below.pace.steps)
    else:
        triple = shape.presence(below.triple, rows)
        if triple.length >= for_ever:
            triple = triple._replace(distance=for_ever / rows, length=for_ever)
    out = shaped(below, triple)
    return replace(out, edge=replace(out.edge, standing=standing), is_ahead=False)


def _thinned(flow: Flow, share: float, triple: shape.Triple | None) -> Flow:
    """A share of the rows, cut if partners come and go."""
    least = max(share, _LEAST)
    if triple is None:
        out = replace(flow, edge=replace(flow.edge, distance=flow.edge.distance / least))
    else:
        out = shaped(flow, triple)
    return replace(out, edge=replace(out.edge, standing=flow.edge.standing * least))
