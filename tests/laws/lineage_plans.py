"""Plans of the classes that laws of provenance are about, and inputs cut down to some origins.

A plan of a class is any plan with what is not of the class replaced by what is, under the same
names: so parts are shared, and joined with themselves, as everywhere.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs
from laws.strategies import aggregate, conformed, join, plans, predicates
from tidemill.algebra.expr import Column, Literal, Named
from tidemill.algebra.lineage import is_certain, leaves
from tidemill.algebra.plan import (
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
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.algebra.tree import children, transform_up, with_children

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.origins import Made, Origin
    from tidemill.algebra.snapshot import Bag, Row

__all__ = [
    "DIFFERENCES",
    "LONE",
    "OUTER",
    "SUMS",
    "all_origins",
    "apart",
    "at_present",
    "by_time",
    "counted",
    "linear",
    "one_step",
    "only",
    "origins_of",
    "positive",
    "simple",
    "snapshot",
    "some_instant",
]

SUMS: tuple[type[Plan], ...] = (Aggregate, Aggregate, Istream, Dstream)
DIFFERENCES: tuple[type[Plan], ...] = (Difference, StrictDifference, AntiJoin)
OUTER: tuple[type[Plan], ...] = (Join,)
LONE: tuple[type[Plan], ...] = (Distinct, Join, SemiJoin, Intersect, MaxUnion, *DIFFERENCES)


# Classes


def by_time(plan: Plan) -> Plan:
    """All windows are time windows or unbounded."""

    def rewrite(node: Plan) -> Plan | None:
        match node:
            case Window(input_, RowWindow(rows, slide)):
                return Window(input_, TimeWindow(rows, slide))
            case Window(input_, SessionWindow(gap)):
                return Window(input_, TimeWindow(gap))
            case _:
                return None

    return transform_up(plan, rewrite)


def at_present(plan: Plan) -> Plan:
    """Windows are over streams only, and those of rows and sessions hold the last rows."""

    def rewrite(node: Plan) -> Plan | None:
        match node:
            case Window(input_) if not is_certain(Window(input_, RowWindow(1))):
                return input_
            case Window(input_, RowWindow(rows, _, by) | SessionWindow(rows, by)):
                return Window(input_, RowWindow(rows, 1, by))
            case _:
                return None

    return transform_up(plan, rewrite)


def positive(plan: Plan) -> Plan:
    """Nothing is taken away, looked back at or summed up: more input makes no row fewer."""

    def rewrite(node: Plan) -> Plan | None:
        match node:
            case Aggregate(input_, keys, aggregates):
                values = (Named(a.name, Literal(None, a.call.type)) for a in aggregates)
                return Distinct(Project(input_, (*keys, *values)))
            case Istream(input_) | Dstream(input_):
                return Rstream(input_)
            case Join(left, right, _, condition, names):
                return Join(left, right, JoinKind.INNER, condition, names)
            case AntiJoin(left, right, condition, names):
                return SemiJoin(left, right, condition, names)
            case Difference(left, right):
                return Intersect(left, right)
            case StrictDifference(left, right):
                return MaxUnion(left, right)
            case _:
                return None

    return transform_up(plan, rewrite)


def simple(plan: Plan) -> Plan:
    """Only filters, projections, windows, unions and inner joins: each copy is made by itself."""

    def rewrite(node: Plan) -> Plan | None:
        match node:
            case Distinct(input_):
                return Rstream(input_)
            case SemiJoin(left, right, condition, names):
                pairs = Join(left, right, JoinKind.INNER, condition, names)
                kept = zip(names, left.schema, strict=False)
                return Project(pairs, tuple(Named(f.name, Column(n, f.type)) for n, f in kept))
            case MaxUnion(left, right) | Intersect(left, right):
                return Union(left, right)
            case _:
                return None

    return transform_up(positive(plan), rewrite)


def linear(plan: Plan) -> Plan:
    """Only filters, projections, windows and unions: each copy is made of one element."""

    def rewrite(node: Plan) -> Plan | None:
        if not isinstance(node, Join):
            return None
        names, fields = iter(node.names), (node.left.schema, node.right.schema)
        own = [Named(next(names), Column(f.name, f.type)) for f in fields[0]]
        other = [Named(next(names), Literal(None, f.type)) for f in fields[1]]
        return Project(node.left, (*own, *other))

    return transform_up(simple(plan), rewrite)


@st.composite
def one_step(
    draw: DrawFn, below: Callable[[Plan], Plan], steps: tuple[type[Plan], ...], depth: int = 2
) -> Plan:
    """One operator of some kinds over plans of a class, and perhaps a filter above it."""
    left = below(draw(plans(depth)))
    right = left if draw(st.integers(0, 3)) == 0 else below(draw(plans(depth)))
    plan = _step(draw, draw(st.sampled_from(steps)), left, right)
    return Filter(plan, draw(predicates(plan.schema))) if draw(st.booleans()) else plan


def _step(draw: DrawFn, step: type[Plan], left: Plan, right: Plan) -> Plan:
    if step is Aggregate:
        return aggregate(draw, left)
    if step in (SemiJoin, AntiJoin):
        return join(draw, step, left, right)
    if step is Join:
        whole = join(draw, step, left, right)
        return whole.input if isinstance(whole, Project) else whole
    made: Callable[..., Plan] = step
    if step in (Distinct, Istream, Dstream):
        return made(left)
    return made(left, conformed(right, left.schema))


# Inputs


def apart(plan: Plan) -> Plan:
    """The plan as a tree whose leaves have names of their own: their numbers."""

    def visit(node: Plan, numbers: Iterator[str]) -> Plan:
        match node:
            case Source(_, schema, since):
                return Source(next(numbers), schema, since)
            case Relation(_, schema, validity):
                return Relation(next(numbers), schema, validity)
            case _:
                return with_children(node, tuple(visit(c, numbers) for c in children(node)))

    return visit(plan, (str(number) for number in range(len(leaves(plan)))))


def all_origins(content: Inputs, plan: Plan) -> list[Origin]:
    """Everything that there is on the leaves of a plan."""
    return [
        (number, one)
        for number, leaf in enumerate(leaves(plan))
        for one in (
            [e.id for e in content.streams[leaf.name]]
            if isinstance(leaf, Source)
            else range(len(content.relations[leaf.name]))
        )
    ]


def only(content: Inputs, plan: Plan, origins: Collection[Origin]) -> Inputs:
    """What there is for a plan whose leaves are apart, if there is nothing but some origins."""
    of = list(enumerate(leaves(plan)))
    return Inputs(
        {
            str(n): tuple(e for e in content.streams[leaf.name] if (n, e.id) in origins)
            for n, leaf in of
            if isinstance(leaf, Source)
        },
        {
            str(n): tuple(
                r for i, r in enumerate(content.relations[leaf.name]) if (n, i) in origins
            )
            for n, leaf in of
            if isinstance(leaf, Relation)
        },
    )


def snapshot(content: Inputs, plan: Plan, origins: Collection[Origin], time: int) -> Bag:
    """The answer of a plan at an instant if there is nothing but some origins."""
    return only(content, plan, origins).reference().snapshot(apart(plan), time)


def counted(rows: Iterable[Made]) -> Bag:
    """The rows without their origins."""
    return Counter(row for row, _ in rows)


def origins_of(rows: Iterable[Made]) -> dict[Row, frozenset[Origin]]:
    """What each row is made of, all its copies together."""
    found: dict[Row, frozenset[Origin]] = {}
    for row, origins in rows:
        found[row] = found.get(row, frozenset()) | origins
    return found


def some_instant(data: st.DataObject, plan: Plan, content: Inputs) -> tuple[int, list[Made]]:
    """An instant at which the plan has rows, and these."""
    lineage = content.lineage()
    found = [(time, rows) for time in HORIZON if (rows := lineage.rows(plan, time))]
    assume(found)
    return data.draw(st.sampled_from(found))
