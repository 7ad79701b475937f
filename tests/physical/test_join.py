"""Join in interval form: the fixture of the paper, NULL, NaN, state and bounded memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from physical.letters import LETTERS, P1, P2, assert_stream, one_by_one, stream, together
from physical.run import Advance, Arrive, Element, Schedule, at_once, batch, run
from streams import both, call, equal
from tidemill.algebra.expr import TRUE, Column, Expr
from tidemill.algebra.values import NAN
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.joining import pairs as pairs_module
from tidemill.physical.operator import LEFT, RIGHT
from tidemill.physical.operators.join.join import Join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.types import DataType, Value

LEFT_LETTER, RIGHT_LETTER = Column("l", VARCHAR), Column("r", VARCHAR)
EQUI = Join(LETTERS, LETTERS, ("l", "r"), equal(LEFT_LETTER, RIGHT_LETTER))
CROSS = Join(LETTERS, LETTERS, ("l", "r"), TRUE)


@pytest.mark.parametrize(
    "schedule",
    [together(P1, P2), one_by_one(P1, P2), one_by_one([], P2), one_by_one(P1, [])],
    ids=["all", "single", "no left", "no right"],
)
def test_equi_join_keeps_only_the_overlap(schedule: Schedule) -> None:
    both_sides = schedule.elements(0) and schedule.elements(1)
    assert_stream(run(EQUI, schedule), "dd[6,9) bb[12,15)" if both_sides else "")


def test_elements_that_only_touch_do_not_meet() -> None:
    assert_stream(run(CROSS, together(stream("a[0,5)"), stream("b[5,9)"))), "")


def test_without_an_equality_all_pairs_are_tried() -> None:
    less = Join(LETTERS, LETTERS, ("l", "r"), call("<", LEFT_LETTER, RIGHT_LETTER))
    schedule = together(stream("a[0,9) c[2,6)"), stream("b[4,7) d[5,inf)"))
    assert_stream(run(less, schedule), "ab[4,7) ad[5,9) cd[5,6)")
    assert_stream(run(CROSS, schedule), "ab[4,7) ad[5,9) cb[4,6) cd[5,6)")


def test_a_relation_stays_because_it_never_ends() -> None:
    relation = Arrive(RIGHT, tuple(stream("a[0,inf) b[0,inf)")))
    events = (relation, Advance(5), Arrive(LEFT, tuple(stream("a@7"))), Advance(1000))
    output = run(EQUI, Schedule((LETTERS, LETTERS), events))
    assert_stream(output, "aa[7,8)")
    assert output.sizes == [2, 2, 0]


def test_state_is_what_the_other_input_can_still_meet() -> None:
    state = EQUI.new_state()
    list(EQUI.on_batch(state, LEFT, batch(LETTERS, stream("a[0,5) b[0,6) c[9,10)"))))
    list(EQUI.on_watermark(state, Time(5)))
    assert state.tables["left"].all()["@0"].to_list() == ["b", "c"]


def test_equal_joins_are_equal_and_have_one_text() -> None:
    again = Join(LETTERS, LETTERS, ("l", "r"), equal(LEFT_LETTER, RIGHT_LETTER))
    assert again == EQUI
    assert hash(again) == hash(EQUI)
    assert repr(again) == repr(EQUI)


# Equal values


def pairs(
    type_: DataType, function: str, left: Sequence[Value], right: Sequence[Value]
) -> Counter[tuple[str, str]]:
    """The pairs that a join on one column finds, each value in a batch of its own or all in one."""
    schema = Schema((Field("x", type_),))
    condition = call(function, Column("l", type_), Column("r", type_))
    sides = [[Element((x,), 0, 9) for x in side] for side in (left, right)]
    found = [
        Counter((str(e.row[0]), str(e.row[1])) for e in run(operator, schedule).elements)
        for operator in [Join(schema, schema, ("l", "r"), condition)]
        for schedule in (together(*sides, schema=schema), one_by_one(*sides, schema=schema))
    ]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("others", [[], [1.5], [3.5, 1.5, -7.0]], ids=["alone", "two", "many"])
def test_nan_equals_nan_and_a_zero_has_no_sign(others: list[Value]) -> None:
    # Polars finds no NaN where both columns are sorted, and a column of one row always is.
    same = Counter({(str(x), str(x)): 1 for x in others})
    assert pairs(DOUBLE, "=", [NAN, *others], [NAN, *others]) == same + Counter([("nan", "nan")])
    zeros = pairs(DOUBLE, "=", [-0.0, *others], [0.0, *others])
    assert zeros == same + Counter([("0.0", "0.0")])


@pytest.mark.parametrize("type_", [BIGINT, VARCHAR, DOUBLE], ids=str)
def test_null_equals_nothing_unless_asked_not_to_be_distinct(type_: DataType) -> None:
    assert pairs(type_, "=", [None, None], [None]) == Counter()
    assert pairs(type_, "is_not_distinct", [None, None], [None]) == Counter({("None", "None"): 2})


def test_a_row_that_can_meet_nothing_is_not_remembered() -> None:
    state = EQUI.new_state()
    list(EQUI.on_batch(state, LEFT, batch(LETTERS, [Element((None,), 0, 9)])))
    assert state.rows() == 0


TWO = Schema((Field("p", VARCHAR), Field("q", VARCHAR)))
A, B, X, Y = (Column(name, VARCHAR) for name in "abxy")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (both(equal(A, X), call("is_not_distinct", B, Y)), {"k-k-", "klkl"}),
        (both(equal(A, X), equal(A, Y)), set()),
        (both(equal(A, X), equal(B, X)), set()),
        (both(equal(A, X), call("is_null", B)), {"k-k-", "k-kl"}),
    ],
    ids=["mixed", "left twice", "right twice", "residual"],
)
def test_several_conditions(condition: Expr, expected: set[str]) -> None:
    rows = [Element(row, 0, 5) for row in (("k", None), ("k", "l"), (None, None))]
    output = run(Join(TWO, TWO, ("a", "b", "x", "y"), condition), together(rows, rows, schema=TWO))
    assert {"".join(str(v or "-") for v in e.row) for e in output.elements} == expected


# Memory


@pytest.mark.parametrize("operator", [EQUI, CROSS], ids=["equi", "cross"])
@pytest.mark.parametrize("bound", [1, 7, 1000])
def test_pairs_are_made_a_bounded_number_at_a_time(
    operator: Join, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_module, "_PAIRS_AT_ONCE", bound)
    rows = [Element((x,), t, t + 4) for t in range(12) for x in "aab"]
    state = operator.new_state()
    list(operator.on_batch(state, RIGHT, batch(LETTERS, rows)))
    parts = list(operator.on_batch(state, LEFT, batch(LETTERS, rows)))
    found = Counter(tuple(row) for part in parts for row in part.iter_rows())
    expected = Counter(
        (*a.row, *b.row, max(a.start, b.start), min(a.end, b.end))
        for a in rows
        for b in rows
        if max(a.start, b.start) < min(a.end, b.end) and (operator is CROSS or a.row == b.row)
    )
    assert found == expected
    # One element at least is joined with all its partners at a time.
    assert max(part.height for part in parts) <= 2 * bound + len(rows)


def test_after_the_end_of_time_nothing_is_left() -> None:
    state = CROSS.new_state()
    list(CROSS.on_batch(state, LEFT, batch(LETTERS, stream("a[0,inf)"))))
    list(CROSS.on_watermark(state, END_OF_TIME))
    assert state.rows() == 0


def test_columns_may_be_called_like_patterns() -> None:
    left, right = Schema((Field("x", BIGINT),)), Schema((Field("^x$", BIGINT),))
    join = Join(left, right, ("x", "^x$"), call("=", Column("x", BIGINT), Column("^x$", BIGINT)))
    output = run(join, at_once((left, [Element((1,), 0, 5)]), (right, [Element((1,), 2, 9)])))
    assert output.elements == [Element((1, 1), 2, 5)]
