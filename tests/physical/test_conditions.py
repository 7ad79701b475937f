"""Join conditions are taken apart into equalities and a rest."""

from __future__ import annotations

import pytest

from streams import both, call, equal, number
from tidemill.algebra.expr import TRUE, Call, Column, Expr
from tidemill.model.types import BIGINT, DOUBLE
from tidemill.physical.joining.conditions import Equality, split_condition

A, B = Column("a", BIGINT), Column("b", BIGINT)
X, Y = Column("x", BIGINT), Column("y", BIGINT)
WIDE = Column("w", DOUBLE)
SUM = Call("+", (A, number(1)), BIGINT)
MIXED = Call("+", (A, X), BIGINT)


def taken_apart(condition: Expr) -> tuple[tuple[Equality, ...], Expr]:
    return split_condition(condition, ("a", "b"), ("x", "y", "w"))


def test_equalities_of_the_two_sides_are_found_whichever_way_they_are_written() -> None:
    same = Equality(A, X, null_safe=False)
    assert taken_apart(equal(A, X)) == ((same,), TRUE)
    assert taken_apart(equal(X, A)) == ((same,), TRUE)


def test_is_not_distinct_is_an_equality_that_takes_nulls() -> None:
    assert taken_apart(call("is_not_distinct", X, A)) == ((Equality(A, X, null_safe=True),), TRUE)


def test_both_sides_may_be_expressions() -> None:
    assert taken_apart(equal(X, SUM)) == ((Equality(SUM, X, null_safe=False),), TRUE)


def test_of_a_conjunction_what_is_no_equality_is_left() -> None:
    less = call("<", A, Y)
    condition = both(both(equal(A, X), less), both(equal(B, Y), equal(A, X)))
    first, second = Equality(A, X, null_safe=False), Equality(B, Y, null_safe=False)
    assert taken_apart(condition) == ((first, second), less)


@pytest.mark.parametrize(
    "condition",
    [
        call("or", equal(A, X), equal(B, Y)),
        call("<", A, X),
        equal(A, B),
        equal(A, number(1)),
        equal(MIXED, Y),
        equal(A, WIDE),
        call("not", equal(A, X)),
    ],
    ids=["or", "less", "one side", "constant", "mixed", "types", "not"],
)
def test_what_is_no_equality_of_the_two_sides_is_left(condition: Expr) -> None:
    assert taken_apart(condition) == ((), condition)


def test_true_has_no_parts() -> None:
    assert taken_apart(TRUE) == ((), TRUE)
