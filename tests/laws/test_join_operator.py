"""The join in interval form obeys its law for every batching and schedule.

Its answer is computed here from the elements that come in: all pairs, instant by instant.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import predicates
from physical.letters import is_chronon
from physical.run import Arrive, Element, Schedule, run, schedules
from physical.searching import search_all
from streams import both, call
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import TRUE, Call, Column, Expr, Literal
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.joining import pairs as pairs_module
from tidemill.physical.operator import RIGHT
from tidemill.physical.operators.join.join import Join

if TYPE_CHECKING:
    from tidemill.algebra.snapshot import Bag

LEFT_PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
RIGHT_PAIR = Schema((Field("b", VARCHAR), Field("a", BIGINT)))
NAMES = ("l0", "l1", "r0", "r1")
BOTH = Schema(tuple(map(Field, NAMES, (BIGINT, VARCHAR, VARCHAR, BIGINT))))

NUMBER = Schema((Field("x", DOUBLE),))


def column(name: str) -> Column:
    return Column(name, BOTH[name].type)


def equality(left: Expr, right: Expr) -> st.SearchStrategy[Expr]:
    sides = [(left, right), (right, left)]
    return st.sampled_from([call(f, *both) for f in ("=", "is_not_distinct") for both in sides])


NUMBERS = equality(column("l0"), column("r1"))
TEXTS = equality(column("l1"), column("r0"))
COMPUTED = equality(
    Call("+", (column("l0"), Literal(1, BIGINT)), BIGINT),
    Call("coalesce", (column("r1"), Literal(2, BIGINT)), BIGINT),
)
CONDITIONS = st.one_of(
    st.just(TRUE),
    NUMBERS,
    TEXTS,
    COMPUTED,
    predicates(BOTH),
    st.builds(both, NUMBERS, TEXTS),
    st.builds(both, NUMBERS, COMPUTED),
    st.builds(both, TEXTS, predicates(BOTH)),
)


def pairs(schedule: Schedule, names: tuple[str, ...], condition: Expr, time: int) -> Bag:
    return Counter(
        a + b
        for a in schedule.snapshot(0, time).elements()
        for b in schedule.snapshot(1, time).elements()
        if evaluate(condition, dict(zip(names, a + b, strict=True))) is True
    )


@pytest.mark.parametrize("many", [4, 1 << 21], ids=["bounded", "free"])
@pytest.mark.parametrize("few", [1, None], ids=["searched", "gone through"])
@given(
    schedule=schedules(LEFT_PAIR, RIGHT_PAIR),
    condition=CONDITIONS,
    orderly=st.tuples(st.booleans(), st.booleans()),
    reload=st.booleans(),
)
def test_join_is_snapshot_reducible(  # noqa: PLR0913 — whatever is drawn
    schedule: Schedule,
    condition: Expr,
    orderly: tuple[bool, bool],
    many: int,
    few: int | None,
    *,
    reload: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "_PAIRS_AT_ONCE", many)
        if few is not None:
            search_all(patch, small=few)
        join = Join(LEFT_PAIR, RIGHT_PAIR, NAMES, condition, orderly)
        output = run(join, schedule, reload=reload)
    for t in schedule.times():
        assert output.snapshot(t) == pairs(schedule, NAMES, condition, t), t


@pytest.mark.parametrize("function", ["=", "is_not_distinct", "<"])
@given(schedule=schedules(NUMBER, NUMBER))
def test_join_of_doubles_finds_nan(schedule: Schedule, function: str) -> None:
    condition = call(function, Column("l", DOUBLE), Column("r", DOUBLE))
    output = run(Join(NUMBER, NUMBER, ("l", "r"), condition), schedule)
    for t in schedule.times():
        assert output.snapshot(t) == pairs(schedule, ("l", "r"), condition, t), t


@given(
    left=schedules(LEFT_PAIR, lengths=(1,)),
    rows=st.lists(st.tuples(st.sampled_from([None, "x", "y"]), st.integers(0, 2)), max_size=6),
    condition=CONDITIONS,
)
def test_a_relation_is_an_input_that_is_there_from_the_beginning(
    left: Schedule, rows: list[tuple[str | None, int]], condition: Expr
) -> None:
    relation = Arrive(RIGHT, tuple(Element(row, 0, END_OF_TIME) for row in rows))
    schedule = Schedule((LEFT_PAIR, RIGHT_PAIR), (relation, *left.events))
    output = run(Join(LEFT_PAIR, RIGHT_PAIR, NAMES, condition), schedule)
    for t in schedule.times():
        assert output.snapshot(t) == pairs(schedule, NAMES, condition, t), t
    assert is_chronon(output)


@given(schedule=schedules(LEFT_PAIR, RIGHT_PAIR, lengths=(1,)), condition=CONDITIONS)
def test_a_join_with_chronons_gives_chronons(schedule: Schedule, condition: Expr) -> None:
    assert is_chronon(run(Join(LEFT_PAIR, RIGHT_PAIR, NAMES, condition), schedule))
