"""Plans of the shapes that rules are for: plans drawn at random rarely have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.catalogue import PAIR, P, R, S, T
from laws.strategies import aggregate, aggregate_calls, conformed, expressions, join, predicates
from tidemill.algebra.expr import (
    FALSE,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjunction,
    replace_columns,
)
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
    NamedAggregate,
    Plan,
    Project,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
    WindowSpec,
)
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.logical.eager import with_exprs

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = [
    "SHAPES",
    "aggregates_of_joins",
    "chains",
    "conditions",
    "distinct_rows",
    "empty_inputs",
    "filled_joins",
    "filters",
    "last_rows",
    "outer_joins",
    "projected_windows",
    "self_joins",
    "sides",
    "unions_of_windows",
]

_LAST = Window(S, RowWindow(1, partition_by=("a",)))
_LATEST = Window(T, RowWindow(1, partition_by=("a", "b")))
_X, _Y = Window(S, TimeWindow(6)), Window(T, TimeWindow(4))
_BASES: tuple[Plan, ...] = (_X, _Y, S, T, _LAST, _LATEST, R, conformed(P, PAIR))


@st.composite
def sides(draw: DrawFn) -> Plan:
    """A stream with the columns (a, b): as it is, filtered, distinct, or with a key."""
    plan = draw(st.sampled_from(_BASES))
    match draw(st.integers(0, 5)):
        case 0:
            return Filter(plan, draw(conditions(plan)))
        case 1:
            return Distinct(plan)
        case 2:
            columns = (Named("a", Column("a", BIGINT)), Named("b", Column("b", VARCHAR)))
            return Aggregate(plan, columns, ())
        case _:
            return plan


@st.composite
def conditions(draw: DrawFn, plan: Plan) -> Expr:
    """One to four conditions that must all hold, on single columns often."""
    schema = plan.schema
    column = draw(st.sampled_from(schema.fields))
    values: list[Expr] = [Literal(v, BIGINT) for v in (0, 1, 2)]
    if column.type == VARCHAR:
        values = [Literal(v, VARCHAR) for v in ("x", "y")]
    bound: SearchStrategy[Expr] = st.builds(
        lambda sign, value: Call(sign, (Column(column.name, column.type), value), BOOLEAN),
        st.sampled_from(["=", "<", "<=", ">", ">="]),
        st.sampled_from(values),
    )
    null = Call("is_null", (Column(column.name, column.type),), BOOLEAN)
    part = st.one_of(bound, bound, bound, predicates(schema), st.just(null))
    return conjunction(*draw(st.lists(part, min_size=1, max_size=4)))


@st.composite
def chains(draw: DrawFn) -> Plan:
    """Joins of every kind on equal columns, with conditions on some sides and above."""
    plan = draw(sides())
    for number in range(draw(st.integers(1, 3))):
        other = draw(sides())
        left, right = (plan, other) if draw(st.booleans()) else (other, plan)
        names = tuple(f"l{number}{i}" for i in range(len(left.schema)))
        names += tuple(f"r{number}{i}" for i in range(len(right.schema)))
        fields = (*left.schema, *right.schema)
        numbers = [
            Column(name, BIGINT) for name, f in zip(names, fields, strict=True) if f.type == BIGINT
        ]
        of_left = [c for c in numbers if c.name.startswith("l")]
        of_right = [c for c in numbers if c.name.startswith("r")]
        on = Call("=", (draw(st.sampled_from(of_left)), draw(st.sampled_from(of_right))), BOOLEAN)
        kind = draw(st.sampled_from([*JoinKind, SemiJoin, AntiJoin]))
        if isinstance(kind, JoinKind):
            plan = Join(left, right, kind, on, names)
        else:
            plan = kind(left, right, on, names)
        if draw(st.booleans()):
            plan = Filter(plan, draw(conditions(plan)))
        if draw(st.integers(0, 3)) == 0:
            exprs = [Named("c0", draw(expressions(plan.schema, BIGINT)))]
            exprs += [Named(f"c{f.name}", Column(f.name, f.type)) for f in plan.schema.fields[:3]]
            plan = Project(plan, tuple(exprs))
            plan = Filter(plan, draw(conditions(plan)))
    return plan


@st.composite
def filled_joins(draw: DrawFn) -> Plan:
    """Joins that fill rows with NULLs, of sides with conditions on the columns that are equal."""
    left, right = draw(st.sampled_from(_BASES[:4])), draw(st.sampled_from(_BASES[:4]))
    bound = Call(">", (Column("a", BIGINT), Literal(draw(st.integers(0, 1)), BIGINT)), BOOLEAN)
    if draw(st.booleans()):
        left = Filter(left, bound)
    else:
        right = Filter(right, bound)
    on = Call("=", (Column("l0", BIGINT), Column("r0", BIGINT)), BOOLEAN)
    kinds = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
    return Join(left, right, draw(st.sampled_from(kinds)), on, ("l0", "l1", "r0", "r1"))


def outer_joins() -> SearchStrategy[Plan]:
    """Filters above joins that fill rows with NULLs."""

    @st.composite
    def drawn(draw: DrawFn) -> Plan:
        plan = join(draw, Join, draw(sides()), draw(sides()))
        plan = Filter(plan, draw(conditions(plan)))
        return Filter(plan, draw(predicates(plan.schema)))

    return drawn()


_EITHER: tuple[Callable[[Plan, Plan], Plan], ...] = (
    Union,
    MaxUnion,
    Difference,
    StrictDifference,
    Intersect,
)
_ONE: tuple[Callable[[Plan], Plan], ...] = (
    Distinct,
    Istream,
    Dstream,
    Rstream,
    lambda plan: Window(plan, TimeWindow(3)),
    lambda plan: Window(plan, RowWindow(1)),
    lambda plan: Window(plan, RowWindow(1, partition_by=plan.schema.names[:1])),
    lambda plan: Window(plan, SessionWindow(2)),
)


@st.composite
def empty_inputs(draw: DrawFn) -> Plan:
    """Operators with inputs that never have a row, below ROWS windows too."""
    nothing: list[Expr] = [FALSE, Literal(None, BOOLEAN)]

    def side() -> Plan:
        plan = draw(sides())
        if draw(st.booleans()):
            plan = Filter(plan, draw(st.sampled_from(nothing)))
        return draw(st.sampled_from(_ONE))(plan) if draw(st.integers(0, 2)) == 0 else plan

    plan = side()
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            plan = draw(st.sampled_from(_EITHER))(conformed(plan, PAIR), side())
        else:
            kinds: list[type[Plan]] = [Join, Join, SemiJoin, AntiJoin]
            plan = join(draw, draw(st.sampled_from(kinds)), plan, side())
        if draw(st.integers(0, 3)) == 0:
            plan = aggregate(draw, plan)
    return draw(st.sampled_from(_ONE))(plan) if draw(st.booleans()) else plan


@st.composite
def self_joins(draw: DrawFn) -> Plan:
    """Semi-joins and anti-joins of a stream with itself, and twice with the same."""
    base = draw(sides())
    left = Filter(base, draw(conditions(base))) if draw(st.booleans()) else base
    right: Plan = Filter(base, draw(conditions(base))) if draw(st.integers(0, 3)) == 0 else base
    if draw(st.booleans()):
        kept = draw(st.permutations(right.schema.fields))[: draw(st.integers(1, 2))]
        right = Project(right, tuple(Named(f"p{f.name}", Column(f.name, f.type)) for f in kept))
    kinds: tuple[type[SemiJoin | AntiJoin], ...] = (SemiJoin, AntiJoin)
    kind = draw(st.sampled_from(kinds))
    names = ("l0", "l1", *(f"r{i}" for i in range(len(right.schema))))
    pairs = [
        Call("=", (Column(one, f.type), Column(other, g.type)), BOOLEAN)
        for one, f in zip(names[:2], left.schema, strict=True)
        for other, g in zip(names[2:], right.schema, strict=True)
        if f.type == g.type
    ]
    on = conjunction(*draw(st.lists(st.sampled_from(pairs), max_size=2)))
    plan = kind(left, right, on, names)
    if draw(st.integers(0, 2)) == 0:
        return kind(plan, right, on, names)
    return Window(plan, RowWindow(1)) if draw(st.integers(0, 3)) == 0 else plan


@st.composite
def distinct_rows(draw: DrawFn) -> Plan:
    """Distinct above joins, unions, projects and aggregates, some of them of distinct rows."""
    plan: Plan
    match draw(st.integers(0, 3)):
        case 0:
            plan = join(draw, Join, draw(sides()), draw(sides()))
        case 1:
            plan = Union(draw(sides()), draw(sides()))
        case 2:
            plan = aggregate(draw, draw(sides()))
        case _:
            plan = draw(sides())
    if draw(st.booleans()):
        fields = draw(st.permutations(plan.schema.fields))[: draw(st.integers(1, 4))]
        columns = [Named(f"q{f.name}", Column(f.name, f.type)) for f in fields]
        columns.append(Named("extra", draw(expressions(plan.schema, BIGINT))))
        plan = Project(plan, tuple(columns[: draw(st.integers(1, len(columns)))]))
    plan = Distinct(plan)
    match draw(st.integers(0, 3)):
        case 0:
            return aggregate(draw, plan)
        case 1:
            kinds: tuple[type[Plan], ...] = (SemiJoin, AntiJoin)
            return join(draw, draw(st.sampled_from(kinds)), draw(sides()), plan)
        case 2:
            return StrictDifference(draw(sides()), conformed(plan, PAIR))
        case _:
            return plan


@st.composite
def filters(draw: DrawFn) -> Plan:
    """Conditions on one column: bounds above and below, constants, and others."""
    inputs: list[Plan] = [S, _X]
    plan = draw(st.sampled_from(inputs))
    signs = st.sampled_from(["=", "<", "<=", ">", ">="])
    bounds = st.builds(
        lambda sign, value: Call(sign, (Column("a", BIGINT), Literal(value, BIGINT)), BOOLEAN),
        signs,
        st.integers(0, 2),
    )
    parts: list[Expr] = [*draw(st.lists(bounds, min_size=1, max_size=3))]
    if draw(st.integers(0, 2)) == 0:
        parts.append(draw(conditions(plan)))
    return Filter(plan, conjunction(*draw(st.permutations(parts))))


@st.composite
def aggregates_of_joins(draw: DrawFn) -> Plan:
    """Aggregates above inner joins, of one side more often than of both."""
    if draw(st.booleans()):
        names = ("l0", "l1", "r0", "r1")
        on = Call("=", (Column("l0", BIGINT), Column("r0", BIGINT)), BOOLEAN)
        grouped = Join(draw(sides()), draw(sides()), JoinKind.INNER, on, names)
        keys = [Named("k0", Column(draw(st.sampled_from(["l0", "r0"])), BIGINT))]
        keys += [Named("k1", Column("r1", VARCHAR))][: draw(st.integers(0, 1))]
        of_left = grouped.left.schema
        call = draw(aggregate_calls(of_left))
        own = dict(zip(of_left.names, names, strict=False))
        call = with_exprs(call, lambda e: replace_columns(e, lambda c: Column(own[c.name], c.type)))
        return Aggregate(grouped, tuple(keys), (NamedAggregate("f", call),))
    plan = join(draw, Join, draw(sides()), draw(sides()), st.just(JoinKind.INNER))
    if isinstance(plan, Project) and draw(st.booleans()):
        plan = plan.input
    return aggregate(draw, plan)


@st.composite
def unions_of_windows(draw: DrawFn) -> Plan:
    """Unions of windows, equal ones or not, projected or not, below a project."""
    choice: tuple[WindowSpec, ...] = (TimeWindow(3), TimeWindow(5, 2), Unbounded(), RowWindow(2))
    specs = st.sampled_from(choice)
    one = draw(specs)
    other = one if draw(st.booleans()) else draw(specs)
    streams: tuple[Plan, ...] = (S, T, _X, Distinct(S))
    parts: list[Plan] = []
    for spec in (one, other):
        plan: Plan = Window(draw(st.sampled_from(streams)), spec)
        if draw(st.booleans()):
            exprs = (draw(expressions(PAIR, BIGINT)), draw(expressions(PAIR, VARCHAR)))
            plan = Project(plan, (Named("a", exprs[0]), Named("b", exprs[1])))
        parts.append(plan)
    plan = Union(parts[0], parts[1])
    if draw(st.booleans()):
        plan = Project(plan, (Named("q", draw(expressions(plan.schema, BIGINT))),))
    return plan


@st.composite
def projected_windows(draw: DrawFn) -> Plan:
    """Projects above windows of rows and of sessions."""
    sources: tuple[Plan, ...] = (S, T, _X, Distinct(S), Filter(S, FALSE))
    source = draw(st.sampled_from(sources))
    by: tuple[str, ...] = draw(st.sampled_from([(), ("a",), ("b",)]))
    unless = Call("=", (Column("a", BIGINT), Literal(1, BIGINT)), BOOLEAN)
    specs: tuple[WindowSpec, ...] = (
        RowWindow(2, 1, by),
        RowWindow(1, 1, by, unless),
        SessionWindow(2, by),
    )
    spec = draw(st.sampled_from(specs))
    column = draw(st.sampled_from(PAIR.fields))
    exprs: list[Expr] = [Column(column.name, column.type), draw(expressions(PAIR, BIGINT))]
    return Project(Window(source, spec), (Named("q", draw(st.sampled_from(exprs))),))


def last_rows() -> SearchStrategy[Plan]:
    """A column of the last rows of what is in the order of its values, and of what is not."""
    sources: tuple[Plan, ...] = (S, Distinct(S), Distinct(T))
    named = (Named("q", Column("b", VARCHAR)),)
    return st.sampled_from(sources).map(lambda one: Project(Window(one, RowWindow(1)), named))


SHAPES: dict[str, Callable[[], SearchStrategy[Plan]]] = {
    "filters": filters,
    "chains of joins": chains,
    "outer joins": outer_joins,
    "empty inputs": empty_inputs,
    "self joins": self_joins,
    "distinct rows": distinct_rows,
    "aggregates of joins": aggregates_of_joins,
    "unions of windows": unions_of_windows,
    "projected windows": projected_windows,
}
