"""Estimates of operators that look at one row at a time, and of those that change its times."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import Call, Column, Literal, conjuncts
from tidemill.algebra.marked import ROW
from tidemill.optimizer import characteristics as shape
from tidemill.optimizer.estimates.flow import MOST, Flow, Work, never, shaped
from tidemill.optimizer.selectivity import VALUES, harmonic, selectivity, values_of
from tidemill.physical import interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.physical import signed
    from tidemill.physical.operator import Operator

__all__ = [
    "changes",
    "coalesce",
    "filter_",
    "granularity",
    "hold",
    "netted",
    "number",
    "project",
    "repeated",
    "shorten",
    "split",
    "stretch",
    "to_intervals",
    "to_signed",
    "union",
]


_ALL: Final = 0.99
_AGAIN: Final = 0.9
"""Of ten results that pass a filter, nine are followed by one that does."""


def filter_(operator: interval.Filter, below: Flow) -> Work:
    """The share of rows for which the predicate is true."""
    return Work(kept(below, operator.predicate), below.rows)


def kept(below: Flow, predicate: Expr) -> Flow:
    """The rows for which a condition is true."""
    share = selectivity(predicate, below.columns)
    if share <= 0:
        return never(below)
    edge = below.edge
    out = replace(
        edge,
        distance=edge.distance / share,
        standing=edge.standing * share,
        distinct=_left(edge.distinct, predicate),
        counted=max(edge.counted * share, 1.0),
    )
    joined = None if below.joined is None else below.joined.thinned(share)
    return replace(below, edge=out, joined=joined)


def _left(values: Mapping[str, float], predicate: Expr) -> dict[str, float]:
    """How many values columns have where a condition is true.

    One, if it says which, and of two that are equal those of the one with fewer (G-35).
    """
    left = dict(values)
    for part in conjuncts(predicate):
        match part:
            case Call("=", (Column(name), Literal()) | (Literal(), Column(name))):
                left[name] = 1.0
            case Call("=", (Column(one), Column(other))):
                left[one] = left[other] = min(left.get(one, VALUES), left.get(other, VALUES))
            case _:
                pass
    return left


def project(operator: interval.Project, below: Flow) -> Work:
    """The same elements with other columns."""
    values = {c.name: values_of(c.expr, below.columns) for c in operator.columns}
    origins = {
        c.name: below.origins[c.expr.name]
        for c in operator.columns
        if isinstance(c.expr, Column) and c.expr.name in below.origins
    }
    edge = replace(below.edge, distinct=values)
    joined = None if below.joined is None else below.joined.projected(operator.columns)
    return Work(replace(below, edge=edge, origins=origins, joined=joined), below.rows)


def number(below: Flow) -> Work:
    """The same elements, each with a number of its own."""
    values = {**below.edge.distinct, interval.NUMBER: inf}
    return Work(replace(below, edge=replace(below.edge, distinct=values)), below.rows)


def identify(below: Flow) -> Work:
    """The same elements, each with the id that it has."""
    values = {**below.edge.distinct, ROW: inf}
    return Work(replace(below, edge=replace(below.edge, distinct=values)), below.rows)


def union(operator: interval.Union, left: Flow, right: Flow) -> Work:
    """The elements of both."""
    names = dict(zip(operator.right_names, operator.schema.names, strict=True))
    moved = {names[name]: v for name, v in right.edge.distinct.items() if name in names}
    values = {
        name: max(known.get(name, 1.0) for known in (left.edge.distinct, moved))
        for name in left.edge.distinct.keys() | moved.keys()
    }
    taken, standing = left.rows + right.rows, left.edge.standing + right.edge.standing
    both = [one for one in (left, right) if one.edge.rate > 0]
    out = replace(
        left,
        is_ahead=left.is_ahead or right.is_ahead,
        is_chained=left.is_chained and right.is_chained,
        groups=left.groups + right.groups,
        repeats=min(left.repeats, right.repeats),
        lag=max(left.lag, right.lag),
        delay=max(left.delay, right.delay),
        origins={n: o for n, o in left.origins.items() if o in right.origins.values()},
        widths={**left.widths, **right.widths},
        joined=None,
    )
    if both:
        out = shaped(out, shape.union([one.triple for one in both]))
    counted = left.edge.counted + right.edge.counted
    edge = replace(out.edge, standing=standing, distinct=values, counted=counted)
    return Work(replace(out, edge=edge), taken)


def since(below: Flow) -> Work:
    """All elements: none come from before any more."""
    return Work(below, below.rows)


def shorten(operator: interval.Shorten, below: Flow) -> Work:
    """What is left of elements that are shorter than their windows since they are pairs.

    Pairs of windows of size w are w/2 long, combinations of n are w/n long, and there are as many
    as the power n - 1 of w says. So a size that is smaller by a share leaves that share of the
    length, and for each further input of the number.
    """
    if below.edge.length >= below.pace.for_ever:
        return Work(below, below.rows)
    longest = float(operator.longest)
    share = 1 - operator.by / longest
    partners = max(longest / below.edge.length - 1, 0.0)
    kept_share = max(share**partners, 1 / MOST)
    length = max(below.edge.length * share, 1.0)
    edge = replace(below.edge, distance=below.edge.distance / kept_share, length=length)
    joined = None if below.joined is None else below.joined.thinned(kept_share)
    return Work(replace(below, edge=edge, joined=joined), below.rows)


def granularity(operator: interval.Granularity, below: Flow) -> Work:
    """The elements on a coarser grid."""
    coarser = float(operator.granule)
    out = below if below.lasts else shaped(below, shape.granularity(below.triple, coarser))
    return Work(replace(out, delay=below.delay - coarser / 2), below.rows)


def split(operator: interval.Split, below: Flow) -> Work:
    """The elements in pieces; the rest of each waits for time."""
    length = float(operator.length)
    if below.edge.length <= length:
        return Work(below, below.rows, {"rest": 0.0})
    # The last piece of an element leaves when it begins.
    rest = max(below.kept(below.lag) - below.edge.rate * length, 0.0)
    out = shaped(below, shape.split(below.triple, length))
    out = replace(out, repeats=1 - length / below.edge.length)
    if below.edge.standing:
        rate = out.edge.rate + below.edge.standing / length
        out = replace(out, edge=replace(out.edge, distance=1 / rate, standing=0.0))
    return Work(out, below.rows, {"rest": rest}, scanned=rest * below.pace.steps)


def coalesce(operator: interval.Coalesce, below: Flow) -> Work:
    """Adjacent elements of equal rows merged; those that are open are looked at in every step."""
    most = float(operator.max_length)
    if below.edge.length >= most:
        return Work(below, below.rows, {"pending": 0.0, "open": 0.0})
    if below.edge.rate <= 0:
        return Work(below, below.rows, {"pending": below.pending(below.lag), "open": 0.0})
    out = shaped(below, shape.coalesce(below.triple, repeated(below, operator.schema), most))
    opened = out.edge.size
    state = {"pending": below.pending(below.lag), "open": opened}
    oldest = min(out.edge.length * harmonic(opened), most)
    moved = replace(
        out,
        repeats=0.0,
        groups=0.0,
        is_chained=False,
        is_ahead=False,
        lag=below.lag + oldest,
        delay=max(below.delay, below.lag + out.edge.length),
    )
    return Work(moved, below.rows, state, scanned=opened * below.pace.steps)


def repeated(below: Flow, schema: Schema) -> float:
    """With which probability an element is followed by an equal one, where it ends.

    At random, it is met by one of those that begin at that instant; instants are granules. Where
    one element begins as another ends, as results of a group do, it is followed by any of the rows
    that there are for its group. What has passed a filter mostly does so again, since the results
    of a group change little from one to the next.
    """
    edge, rows = below.edge, below.different(schema)
    if below.lasts or edge.rate <= 0:
        return 0.0
    begun = min(edge.granule * edge.rate, MOST) / rows
    found = max(begun / (1 + begun), below.repeats)
    if below.is_chained and below.groups:
        is_whole = edge.size >= _ALL * below.groups
        found = max(found, min(below.groups / rows, 1.0) * (1 if is_whole else _AGAIN))
    return found


def netted(below: Flow, schema: Schema) -> Flow:
    """Changes as operators in signed form look at them: what repeats has cancelled itself."""
    if not below.is_signed or below.lasts or below.edge.rate <= 0:
        return below
    longest = max(below.pace.for_ever, below.edge.length)
    merged = shape.coalesce(below.triple, repeated(below, schema), longest)
    return replace(shaped(below, merged), repeats=0.0, is_chained=False, groups=0.0)


def changes(operator: interval.Changes, below: Flow) -> Work:
    """Each element when it comes, or when it goes; what ends is remembered until then."""
    comes = operator.change is interval.Change.INSERTED
    ends = 0.0 if below.is_signed or below.lasts else below.edge.rate * below.edge.length
    out = shaped(below, shape.changes(below.triple))
    if below.lasts and not comes:
        out = never(out)
    edge = replace(out.edge, standing=0.0)
    moved = replace(out, edge=edge, is_signed=False, is_ahead=False, is_chained=False)
    moved = replace(moved, delay=below.lag)
    return Work(moved, below.rows, {"pending": below.pending(below.lag), "ends": ends})


def to_signed(below: Flow) -> Work:
    """Each element as two messages, both at once."""
    return Work(replace(below, is_signed=True, is_ahead=True), below.rows)


def to_intervals(operator: signed.ToIntervals, below: Flow) -> Work:
    """Each element when it is withdrawn, or has been open for too long."""
    state = {"pending": below.pending(below.lag), "open": below.edge.size}
    out = replace(below, is_signed=False, is_ahead=False)
    return Work(held_back(out, operator.max_delay, below.edge.length), below.rows, state)


def held_back(flow: Flow, most: int | None, oldest: float) -> Flow:
    """What leaves when it has ended, or has been open for longer than ``most``.

    Args:
        flow: The elements, not cut.
        most: How long an element is open at most, if there is a limit.
        oldest: How long the oldest that is open has been there.
    """
    limit = flow.pace.for_ever if most is None else float(max(most, flow.pace.step * 1e6, 1.0))
    standing = flow.edge.standing
    out = shaped(flow, shape.split(flow.triple, limit)) if flow.edge.rate > 0 else flow
    if standing and most is not None:
        rate = out.edge.rate + standing / limit
        out = replace(out, edge=replace(out.edge, distance=1 / rate, length=limit, standing=0.0))
    return replace(out, lag=flow.lag + min(oldest, limit), delay=out.edge.length)


def hold(below: Flow) -> Work:
    """The same changes, when they are due."""
    pending = below.pending(below.lag)
    return Work(replace(below, is_ahead=False), below.rows, {"pending": pending})


def stretch(operator: Operator, below: Flow) -> Work:
    """The same elements; those that are there are remembered, if the answer may stop later."""
    tables = operator.new_state().tables
    state = dict.fromkeys(tables, 0.0)
    if "standing" in tables:
        state["standing"] = below.edge.size
    if "pending" in tables:
        state["pending"] = below.pending(below.lag)
    return Work(replace(below, is_ahead=False), below.rows, state)


def common_lag(flows: Sequence[Flow]) -> float:
    """How far the watermark of several inputs is behind: as far as the last of them."""
    return max((flow.lag for flow in flows), default=0.0)
