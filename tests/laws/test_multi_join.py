"""The join of many inputs in interval form obeys its law for every batching and schedule.

Its answer is computed here from the elements that come in: all combinations, instant by instant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import predicates
from physical.letters import is_chronon
from physical.run import (
    VALUES,
    Advance,
    Arrive,
    Element,
    Schedule,
    at_once,
    normal,
    run,
    schedules,
)
from physical.searching import searching
from streams import both, call
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import TRUE, Call, Column, Expr, Literal, conjunction
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.joining import pairs as pairs_module
from tidemill.physical.kernels.window_closure import window_closure
from tidemill.physical.operators.join.join import Join
from tidemill.physical.operators.join.multi_join import EAGER, MultiJoin, ShortLived

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.physical.kernels.window_closure import Windows

PAIR = Schema((Field("x", BIGINT), Field("y", VARCHAR)))
NUMBER = Schema((Field("x", DOUBLE),))

NAMES = ("ax", "ay", "bx", "by", "cx", "cy")
AX, AY, BX, BY, CX, CY = (Column(n, BIGINT if n[1] == "x" else VARCHAR) for n in NAMES)
THREE = Schema(tuple(Field(c.name, c.type) for c in (AX, AY, BX, BY, CX, CY)))

ROUND = ((1, 2), (2, 0), (0, 1))
"""An order of probing for three inputs."""

ORDERS3 = [tuple(o) for o in product(*(list(permutations({0, 1, 2} - {i})) for i in range(3)))]


def plus(*arguments: Expr) -> Call:
    return Call("+", arguments, BIGINT)


def equality(left: Expr, right: Expr) -> st.SearchStrategy[Expr]:
    sides = [(left, right), (right, left)]
    return st.sampled_from([call(f, *both) for f in ("=", "is_not_distinct") for both in sides])


COMMON = both(call("=", AX, BX), call("=", BX, CX))
CONDITIONS = st.one_of(
    st.just(TRUE),
    st.just(COMMON),
    predicates(THREE),
    st.builds(both, equality(AX, BX), equality(BY, CY)),
    st.builds(both, equality(AX, BX), predicates(THREE)),
    st.builds(conjunction, equality(AX, CX), equality(BX, CX), equality(AY, CY)),
    st.builds(conjunction, equality(AX, AX), equality(BX, BX), equality(AX, CX)),
    st.builds(conjunction, equality(plus(AX, BX), CX), equality(AY, BY)),
    st.builds(conjunction, equality(plus(AX, BX), CX), equality(BX, CX), equality(AX, BX)),
    st.builds(both, equality(plus(AX, Literal(1, BIGINT)), BX), st.just(call("<=", BX, CX))),
    st.just(both(call("=", AX, BX), call("<", plus(AX, BX), plus(CX, Literal(1, BIGINT))))),
    st.just(conjunction(call("=", AX, plus(BX, BX)), call("=", AX, plus(BX, Literal(0, BIGINT))))),
)

TIMINGS = [EAGER, 1, 3, 5]
SEARCHED = st.sampled_from([None, 1, 3])
"""How many rows a segment has at least that is searched by its keys."""


def combinations(schedule: Schedule, names: Sequence[str], condition: Expr) -> dict[int, Bag]:
    """The relational join of the snapshots of all inputs, at each instant."""

    @cache
    def matches(row: Row) -> bool:
        return evaluate(condition, dict(zip(names, row, strict=True))) is True

    def joined(time: int) -> Bag:
        bags = (schedule.snapshot(port, time).items() for port in range(len(schedule.schemas)))
        found = ((sum((row for row, _ in rows), ()), rows) for rows in product(*bags))
        return Counter({row: prod(n for _, n in rows) for row, rows in found if matches(row)})

    return {time: joined(time) for time in schedule.times()}


def results(schedule: Schedule, names: Sequence[str], condition: Expr) -> Iterator[Element]:
    """Every combination of elements, as one element that begins with the last of them."""
    for found in product(*(schedule.elements(port) for port in range(len(schedule.schemas)))):
        start, end = max(e.start for e in found), min(e.end for e in found)
        row = normal([value for e in found for value in e.row])
        if start < end and evaluate(condition, dict(zip(names, row, strict=True))) is True:
            yield Element(row, start, end)


def tree(schedule: Schedule, condition: Expr) -> list[Element]:
    """What two joins of two inputs give, one on top of the other."""
    lower = Join(PAIR, PAIR, NAMES[:4], TRUE)
    of_two = (e for e in schedule.events if isinstance(e, Advance) or e.port < 2)
    below = run(lower, Schedule((PAIR, PAIR), tuple(of_two)))
    upper = Join(lower.schema, PAIR, NAMES, condition)
    above = at_once((lower.schema, below.elements), (PAIR, schedule.elements(2)))
    return run(upper, above).elements


JOINS = st.builds(
    MultiJoin,
    inputs=st.just((PAIR, PAIR, PAIR)),
    names=st.just(NAMES),
    condition=CONDITIONS,
    orders=st.sampled_from(ORDERS3),
    orderly=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    evaluation=st.sampled_from(TIMINGS),
    expiration=st.sampled_from(TIMINGS),
)


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    join=JOINS,
    many=st.sampled_from([4, 1 << 21]),
    searched=SEARCHED,
    reload=st.booleans(),
)
def test_a_join_of_three_is_snapshot_reducible(
    schedule: Schedule, join: MultiJoin, many: int, searched: int | None, *, reload: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch, searching(searched):
        patch.setattr(pairs_module, "_PAIRS_AT_ONCE", many)
        output = run(join, schedule, reload=reload)
    for t, expected in combinations(schedule, NAMES, join.condition).items():
        assert output.snapshot(t) == expected, t


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    condition=CONDITIONS,
    evaluation=st.sampled_from(TIMINGS),
)
def test_lazy_or_eager_or_a_tree_of_joins_gives_each_result_once(
    schedule: Schedule, condition: Expr, evaluation: int
) -> None:
    expected = Counter(results(schedule, NAMES, condition))
    join = MultiJoin((PAIR, PAIR, PAIR), NAMES, condition, ROUND, evaluation=evaluation)
    assert Counter(run(join, schedule).elements) == expected
    assert Counter(tree(schedule, condition)) == expected


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    join=JOINS,
    evaluation=st.integers(1, 6),
    searched=SEARCHED,
    reload=st.booleans(),
)
def test_without_restore_only_what_lives_at_a_multiple_of_the_interval_is_there(
    schedule: Schedule, join: MultiJoin, evaluation: int, searched: int | None, *, reload: bool
) -> None:
    join = replace(join, evaluation=evaluation, short_lived=ShortLived.NO_RESTORE)
    with searching(searched):
        output = run(join, schedule, reload=reload)
    expected: Counter[Element] = Counter()
    for e in results(schedule, NAMES, join.condition):
        seen = next(t for t in range(e.start, e.start + evaluation) if t % evaluation == 0)
        if seen < e.end:
            expected[Element(e.row, seen, e.end)] += 1
    assert Counter(output.elements) == expected
    exact = combinations(schedule, NAMES, join.condition)
    assert all(output.snapshot(t) == exact[t] for t in exact if t % evaluation == 0)


NUMBERS = ("a", "b", "c", "d")
A, B, C, D = (Column(name, DOUBLE) for name in NUMBERS)
CHAINS = [
    conjunction(call("=", A, B), call("=", B, C), call("=", C, D)),
    conjunction(call("=", A, D), call("is_not_distinct", B, D), call("<=", A, C)),
    conjunction(call("is_not_distinct", A, C), call("is_not_distinct", C, D), call("=", B, B)),
    conjunction(call("=", A, C), call("or", call("<", A, B), call("=", C, D))),
]


@given(
    schedule=schedules(NUMBER, NUMBER, NUMBER, NUMBER),
    condition=st.sampled_from(CHAINS),
    orders=st.tuples(*(st.permutations(sorted({0, 1, 2, 3} - {i})).map(tuple) for i in range(4))),
    evaluation=st.sampled_from(TIMINGS),
    searched=SEARCHED,
)
def test_a_join_of_four_finds_nan_and_null(
    schedule: Schedule,
    condition: Expr,
    orders: tuple[tuple[int, ...], ...],
    evaluation: int,
    searched: int | None,
) -> None:
    join = MultiJoin((NUMBER,) * 4, NUMBERS, condition, orders, evaluation=evaluation)
    with searching(searched):
        output = run(join, schedule)
    for t, expected in combinations(schedule, NUMBERS, condition).items():
        assert output.snapshot(t) == expected, t


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    condition=st.sampled_from([TRUE, COMMON]),
    given=st.dictionaries(st.sampled_from([(0, 1), (1, 2), (2, 0)]), st.integers(0, 4)),
    evaluation=st.sampled_from(TIMINGS),
    short_lived=st.sampled_from(ShortLived),
    searched=SEARCHED,
)
def test_a_window_removes_what_is_too_far_apart_and_its_closure_no_more(  # noqa: PLR0913, PLR0917 — whatever is drawn
    schedule: Schedule,
    condition: Expr,
    given: dict[tuple[int, int], int],
    evaluation: int,
    short_lived: ShortLived,
    searched: int | None,
) -> None:
    def join(within: Windows | None) -> MultiJoin:
        return MultiJoin(
            (STAMPED,) * 3,
            STAMPS,
            both(condition, near) if within is None else condition,
            ROUND,
            evaluation=evaluation,
            short_lived=short_lived if evaluation else ShortLived.RESTORE,
            within=within,
        )

    near = conjunction(*(limit for pair, w in given.items() for limit in apart(*pair, w)))
    stamped = stamp(schedule)
    plain = run(join(None), stamped)
    with searching(searched):
        bounded = run(join(window_closure(given, 3)), stamped)
    assert Counter(bounded.elements) == Counter(plain.elements)
    assert all(a <= b for a, b in zip(bounded.sizes, plain.sizes, strict=True))


STAMPED = Schema((*PAIR, Field("s", BIGINT)))
STAMPS = ("ax", "ay", "as", "bx", "by", "bs", "cx", "cy", "cs")


def stamp(schedule: Schedule) -> Schedule:
    """The same schedule; the rows carry their starts."""
    events = [
        event
        if isinstance(event, Advance)
        else Arrive(event.port, tuple(replace(e, row=(*e.row, e.start)) for e in event.elements))
        for event in schedule.events
    ]
    return Schedule((STAMPED,) * 3, tuple(events))


def apart(one: int, other: int, most: int) -> list[Expr]:
    """That two starts are so far apart at most."""
    a, b = (Column("abc"[port] + "s", BIGINT) for port in (one, other))
    limit = Literal(most, BIGINT)
    return [call("<=", a, plus(b, limit)), call("<=", b, plus(a, limit))]


@given(chronons=schedules(PAIR, lengths=(1,)), others=schedules(PAIR, PAIR), condition=CONDITIONS)
def test_a_join_with_chronons_gives_chronons(
    chronons: Schedule, others: Schedule, condition: Expr
) -> None:
    early = [Arrive(port + 1, tuple(others.elements(port))) for port in (0, 1)]
    schedule = Schedule((PAIR,) * 3, (*early, *chronons.events))
    assert is_chronon(run(MultiJoin((PAIR,) * 3, NAMES, condition, ROUND), schedule))


# All orders


def crowd(schema: Schema, seed: int) -> list[Element]:
    """Many elements, of few values."""
    choices = list(product(*(VALUES[f.type] for f in schema)))
    return [
        Element(choices[(7 * i + seed) % len(choices)], start, start + (1, 3, 9)[i % 3])
        for i in range(40)
        for start in [(11 * i + 5 * seed) % 30]
    ]


DENSE = [
    COMMON,
    conjunction(call("=", AX, CX), call("is_not_distinct", AY, BY), call("<>", BX, CX)),
    conjunction(call("=", plus(AX, BX), CX), call("=", BY, CY)),
    conjunction(call("=", AX, BX), call("=", CX, AX), call("=", BX, plus(CX, CX))),
    conjunction(call("=", plus(AX, BX), CX), call("is_not_distinct", BY, CY)),
]


def probing(schedule: Schedule) -> Iterator[tuple[Schedule, tuple[tuple[int, ...], ...]]]:
    """Each input as the one that comes last and does all the probing, in each order."""
    ports = set(range(len(schedule.schemas)))
    for last in sorted(ports):
        events = sorted(schedule.events, key=lambda e: isinstance(e, Arrive) and e.port == last)
        for order in permutations(ports - {last}):
            orders = tuple(order if i == last else tuple(ports - {i}) for i in sorted(ports))
            yield Schedule(schedule.schemas, tuple(events)), orders


@pytest.mark.parametrize("condition", DENSE, ids=["common", "mixed", "of two", "twice", "safe"])
def test_all_orders_of_three_give_the_same(condition: Expr) -> None:
    schedule = at_once(*((PAIR, crowd(PAIR, seed)) for seed in range(3)))
    expected = Counter(results(schedule, NAMES, condition))
    assert len(expected) > 30
    for events, orders in probing(schedule):
        for evaluation in (EAGER, 4):
            join = MultiJoin((PAIR,) * 3, NAMES, condition, orders, evaluation=evaluation)
            assert Counter(run(join, events).elements) == expected, orders


def test_all_orders_of_four_give_the_same() -> None:
    condition = CHAINS[1]
    schedule = at_once(*((NUMBER, crowd(NUMBER, seed)[:16]) for seed in range(4)))
    expected = Counter(results(schedule, NUMBERS, condition))
    assert len(expected) > 4
    for events, orders in probing(schedule):
        join = MultiJoin((NUMBER,) * 4, NUMBERS, condition, orders)
        assert Counter(run(join, events).elements) == expected, orders
