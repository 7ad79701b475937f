"""Derived streams of every kind, with windows over them, and inputs in which neighbours are equal.

A window counts elements. So what matters here is rows that are equal at neighbouring instants: the
contents have two values, and an element at nearly every instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.catalogue import LAST, PAIR, Inputs, P, R, S, T, U
from laws.strategies import aggregate, conformed, row_windows, session_windows, time_windows
from streams import call, names_of_both
from tidemill.algebra.expr import TRUE, AggregateCall, Column, Expr, Named
from tidemill.algebra.plan import (
    NOW,
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    NamedAggregate,
    Plan,
    Project,
    Rstream,
    SemiJoin,
    StrictDifference,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.snapshot import Element
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

__all__ = ["DERIVED", "dense_inputs", "windows_over"]

_VALUES = (((1, "x"),), ((1, "x"), (1, None)))
_RUNS = ((1, 1, 1), (1, 1, 1, 1), (1, 2, 1), (1, 1, 0, 1, 1), (2, 0, 1), ())
"""How many elements come at each instant, one instant after another."""


@st.composite
def dense_inputs(draw: DrawFn) -> Inputs:
    """Streams with none, one or two elements at each of a few instants in a row."""

    def elements(width: int) -> tuple[Element, ...]:
        first = draw(st.integers(0, 2))
        each = draw(st.sampled_from(_RUNS))
        times = [first + offset for offset, count in enumerate(each) for _ in range(count)]
        values = draw(st.sampled_from(_VALUES))
        rows = [draw(st.sampled_from(values))[:width] for _ in times]
        return tuple(Element(t, i, row) for i, (t, row) in enumerate(zip(times, rows, strict=True)))

    rows = tuple(draw(st.lists(st.sampled_from(_VALUES[-1]), max_size=2)))
    periods = tuple((*row, draw(st.integers(0, 3)), LAST) for row in rows)
    streams = {S.name: elements(2), T.name: elements(2), U.name: elements(1)}
    return Inputs(streams, {R.name: rows, P.name: periods})


# What a stream can be derived by: from a stream of instants, and from what stays for longer


def _join(left: Plan, right: Plan, kind: JoinKind = JoinKind.INNER) -> Plan:
    names = names_of_both(left, right)
    joined = Join(left, right, kind, _equal(left, right, names), names)
    kept = [(n, f) for n, f in zip(names, (*left.schema, *right.schema), strict=True)]
    columns = tuple(Named(f"{f.name}{i}", Column(n, f.type)) for i, (n, f) in enumerate(kept))
    return conformed(Project(joined, columns), PAIR)


def _equal(left: Plan, right: Plan, names: tuple[str, ...]) -> Expr:
    if "a" not in left.schema.names or "a" not in right.schema.names:
        return TRUE
    others = names[len(left.schema) :]
    mine, other = names[left.schema.names.index("a")], others[right.schema.names.index("a")]
    return call("=", Column(mine, BIGINT), Column(other, BIGINT))


def _semi(left: Plan, right: Plan) -> Plan:
    names = names_of_both(left, right)
    return SemiJoin(left, right, _equal(left, right, names), names)


def _anti(left: Plan, right: Plan) -> Plan:
    names = names_of_both(left, right)
    return AntiJoin(left, right, _equal(left, right, names), names)


def _counted(plan: Plan) -> Plan:
    count = NamedAggregate("n", AggregateCall("count", None, BIGINT))
    keys = (Named("a", Column("a", BIGINT)),)
    return Aggregate(plan, keys, (count,))


def _of_group(plan: Plan) -> Plan:
    """A row for each group, which says nothing of its size, so that it stays as it is."""
    return conformed(_counted(plan), PAIR)


_BINARY: dict[str, Callable[[Plan, Plan], Plan]] = {
    "join": _join,
    "left join": lambda left, right: _join(left, right, JoinKind.LEFT),
    "full join": lambda left, right: _join(left, right, JoinKind.FULL),
    "semi-join": _semi,
    "anti-join": _anti,
    "union": Union,
    "max-union": MaxUnion,
    "difference": Difference,
    "strict difference": StrictDifference,
    "intersection": Intersect,
}
_UNARY: dict[str, Callable[[Plan], Plan]] = {
    "distinct": Distinct,
    "aggregate": _of_group,
    "istream": Istream,
    "dstream": Dstream,
    "rstream": Rstream,
    "filter": lambda plan: Filter(plan, call("is_not_distinct", *[Column("a", BIGINT)] * 2)),
    "window": lambda plan: Window(plan, NOW),
}

DERIVED = (*_UNARY, *_BINARY, "join of joins")


@st.composite
def windows_over(draw: DrawFn, derived: str) -> Plan:
    """A window, of every kind, over a derived stream, and what makes the number of rows visible."""

    def instants() -> Plan:
        return draw(st.sampled_from([S, T, conformed(U, PAIR), Istream(S)]))

    def side() -> Plan:
        """A stream, a relation, or a window over a stream, some of them with unknown ends."""
        source = draw(st.sampled_from([S, T]))
        window = draw(st.one_of(time_windows(), row_windows(PAIR), session_windows(PAIR)))
        windowed, other = Window(source, window), Window(T, Unbounded())
        derived = [windowed, _of_group(windowed), Distinct(windowed), Difference(windowed, other)]
        plain: list[Plan] = [source, conformed(R, PAIR), conformed(P, PAIR)]
        return draw(st.sampled_from(derived) | st.sampled_from(derived) | st.sampled_from(plain))

    if derived in _UNARY:
        plan = _UNARY[derived](draw(st.sampled_from([instants, side]))())
    elif derived in _BINARY:
        sides = draw(st.permutations([instants(), side()]))
        plan = _BINARY[derived](*sides)
    else:
        plan = _join(_join(instants(), side()), side())
    above = st.one_of(
        time_windows(), st.just(Unbounded()), row_windows(PAIR), session_windows(PAIR)
    )
    plan = Window(conformed(plan, PAIR), draw(above))
    return draw(st.sampled_from([plan, _counted(plan), aggregate(draw, plan)]))
