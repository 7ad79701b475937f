"""An index of predicates says of each row which conditions it meets, as each says for itself."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.test_mutants import fails
from tidemill.algebra.expr import Call, Column, Expr, Literal
from tidemill.engine import predicate_index
from tidemill.engine.predicate_index import WORD, PredicateIndex
from tidemill.model.batch import polars_schema
from tidemill.model.schema import Field, Schema
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)
from tidemill.physical import comparisons
from tidemill.physical.eval import compile_predicate

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from hypothesis.strategies import DrawFn

MONEY = decimal(6, 2)
VALUES: dict[DataType, list[Any]] = {
    BIGINT: [-(2**63), -1, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    INTEGER: [-3, 0, 3],
    DOUBLE: [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 2.5, float("inf"), float("nan")],
    VARCHAR: ["", "a", "a\0", "ab", "b", "é", "\uffff", "😀"],
    MONEY: [Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("9999.99")],
    DATE: [date(1970, 1, 1), date(2024, 2, 29)],
    TIMESTAMP: [datetime(1970, 1, 1), datetime(2024, 2, 29, 12)],  # noqa: DTZ001 — it has no zone
    BOOLEAN: [False, True],
}
SCHEMA = Schema(tuple(Field(f"c{i}", type_) for i, type_ in enumerate(VALUES)))
SIGNS = ("=", "=", "<", "<=", ">", ">=", "<>", "is_not_distinct")


@st.composite
def conditions(draw: DrawFn) -> Expr:
    """Comparisons with constants, and others."""
    field = draw(st.sampled_from(SCHEMA.fields))
    column: Expr = Column(field.name, field.type)
    if field.type == BIGINT and draw(st.booleans()):
        column = Call("+", (column, Literal(1, BIGINT)), BIGINT)
    constants = st.sampled_from([None, *VALUES[field.type]]).map(lambda v: Literal(v, field.type))
    match draw(st.integers(0, 7)):
        case 0:
            return Call("is_null", (column,), BOOLEAN)
        case 1:
            return Call("not", (Call("is_null", (column,), BOOLEAN),), BOOLEAN)
        case 2:
            items = draw(st.lists(constants, min_size=1, max_size=3))
            return Call("in", (column, *items), BOOLEAN)
        case 3:
            other = Call("=", (column, column), BOOLEAN)
            return Call("or", (other, draw(conditions())), BOOLEAN)
        case 4:
            return Call(draw(st.sampled_from(SIGNS)), (draw(constants), column), BOOLEAN)
        case _:
            return Call(draw(st.sampled_from(SIGNS)), (column, draw(constants)), BOOLEAN)


@st.composite
def bits(draw: DrawFn) -> list[tuple[Expr, ...]]:
    """What must be true for each bit, some of it twice."""
    some = st.lists(conditions(), min_size=1, max_size=3).map(
        lambda drawn: tuple(draw(st.permutations([*drawn, *drawn[: draw(st.integers(0, 1))]])))
    )
    return draw(st.lists(some, min_size=1, max_size=6))


@st.composite
def batches(draw: DrawFn) -> pl.DataFrame:
    """Rows with the values of the constants, NULL, and others between them."""
    height = draw(st.integers(0, 6))
    columns = {
        field.name: draw(
            st.lists(st.sampled_from([None, *VALUES[field.type]]), min_size=height, max_size=height)
        )
        for field in SCHEMA
    }
    return pl.DataFrame(columns, schema=polars_schema(SCHEMA), strict=False)


@settings(max_examples=2 * settings().max_examples)
@given(
    drawn=bits(), batch=batches(), fewest=st.sampled_from([1, 1, 3]), times=st.just(1) | st.just(25)
)
def test_an_index_says_what_each_condition_says(
    drawn: list[tuple[Expr, ...]], batch: pl.DataFrame, fewest: int, times: int
) -> None:
    found = drawn * times  # of more bits than a word has
    with patch.object(predicate_index, "_FEWEST", fewest):
        words = PredicateIndex(found).words(batch)
    assert words.shape == (batch.height, -(-len(found) // WORD))
    seen = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
    for bit, some in enumerate(found):
        judged = [batch.select(compile_predicate(one)).to_series().to_numpy() for one in some]
        assert seen[:, bit].tolist() == np.all(judged, axis=0).tolist(), some
    assert not seen[:, len(found) :].any(), "no bit is set that stands for nothing"


def test_terms_with_large_tables_are_evaluated() -> None:
    column = Column("c0", BIGINT)
    found = [(Call("=", (column, Literal(n, BIGINT)), BOOLEAN),) for n in range(40)]
    batch = pl.DataFrame({"c0": [5, 39, 40, None]}, schema={"c0": pl.Int64})
    wanted = PredicateIndex(found).words(batch)
    with patch.object(predicate_index, "_LARGEST", 100):
        assert PredicateIndex(found).words(batch).tolist() == wanted.tolist()
    assert wanted.tolist() == [[1 << 5], [1 << 39], [0], [0]]


def test_a_condition_that_is_said_twice_clears_its_own_bit() -> None:
    column = Column("c0", BIGINT)
    one, other = (Call(">", (column, Literal(n, BIGINT)), BOOLEAN) for n in (1, 2))
    batch = pl.DataFrame({"c0": [1, 2, 3]}, schema={"c0": pl.Int64})
    assert PredicateIndex([(other, other), (one,)]).words(batch).tolist() == [[0], [2], [3]]


# The law finds what is wrong


def _zeros_that_differ() -> ExitStack:
    def keys(values: pl.Series) -> pl.Series:
        numbers = values.fill_null(0.0).to_numpy().view(np.int64)
        ordered = np.where(numbers < 0, numbers ^ np.int64(2**63 - 1), numbers)
        return pl.Series(ordered).set(values.is_null(), None)

    return _patched("_bits", keys)


def _null_is_a_value() -> ExitStack:
    right = predicate_index._keys  # noqa: SLF001
    return _patched("_keys", lambda values: right(values).fill_null(strategy="zero"))


def _signs_are_not_mirrored() -> ExitStack:
    unmirrored = {sign: sign for sign in ("<", "<=", ">", ">=", "=", "<>")}
    return _patched("_MIRRORED", unmirrored, comparisons)


def _patched(name: str, wrong: object, where: ModuleType = predicate_index) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(patch.object(where, name, wrong))
    return stack


@pytest.mark.parametrize("mistake", [_zeros_that_differ, _null_is_a_value, _signs_are_not_mirrored])
def test_the_law_finds_what_is_wrong(mistake: Callable[[], ExitStack]) -> None:
    with mistake():
        fails(test_an_index_says_what_each_condition_says)
