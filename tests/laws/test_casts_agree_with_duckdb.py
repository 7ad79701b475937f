"""CAST means what TRY_CAST means in DuckDB, for every pair of types that can be cast.

Text is drawn from the forms of numbers, dates and times that we read, and from texts that are close
to them. What only DuckDB reads (``1_000``, ``1.5`` as an integer, ``2020/01/02``) and what only
we do (blanks behind a time) have literal tests in ``tests/algebra/test_casts.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.typed_values import ask_duckdb, disagreements, values
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Column
from tidemill.catalog.functions import cast
from tidemill.catalog.functions.conversion import castable
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.types import Value

NUMBERS = (INTEGER, BIGINT, decimal(5, 2), decimal(18, 0), decimal(38, 10), DOUBLE)
TYPES = (BOOLEAN, *NUMBERS, VARCHAR, DATE, TIMESTAMP)
JUNK = st.sampled_from(("", " ", "-", "+", ".", "abc", "--1", "1 2", "1-", "é", "٣", "1x", "e5"))


def targets(source: DataType) -> list[DataType]:
    """The types that the source can be cast to."""
    return [target for target in TYPES if castable(source, target) and target != source]


def _spaced(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    blanks = st.sampled_from(("", "", " ", "\t", "\n "))
    return st.tuples(blanks, texts, blanks).map("".join)


def texts(target: DataType) -> st.SearchStrategy[Value]:
    whole = st.integers(-(2**64), 2**64) | st.integers(-999, 999)
    signed = st.sampled_from(("", "+")).flatmap(
        lambda sign: whole.map(lambda n: sign * (n >= 0) + str(n))
    )
    match target.kind:
        case Kind.BOOLEAN:
            yes, no = ("true", "T", "yes", "Y", "1"), ("false", "f", "NO", "n", "0")
            return st.sampled_from((*yes, *no, "on", "2", " true")) | JUNK
        case Kind.INTEGER | Kind.BIGINT:
            return _spaced(signed) | JUNK
        case Kind.DECIMAL:
            return _spaced(_decimal_texts(signed)) | JUNK
        case Kind.DOUBLE:
            exponents = st.sampled_from(("", "", "e5", "E-3", "e+20", "e400", "e-400"))
            numbers = st.tuples(_decimal_texts(signed), exponents).map("".join)
            words = st.sampled_from(("inf", "-Infinity", "NaN", "+INF", "infinit"))
            return _spaced(numbers) | words | JUNK
        case _:
            return _moment_texts() | JUNK


def _decimal_texts(whole: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    fractions = st.sampled_from(("", ".", ".0", ".5", ".005", ".125", ".99999", ".4999999"))
    return st.tuples(whole, fractions).map("".join) | st.sampled_from((".5", "-.25"))


def _moment_texts() -> st.SearchStrategy[str]:
    days = st.dates().map(str) | st.sampled_from(("2023-02-29", "2020-13-01", "2020-00-10"))
    good = ("", " 00:00", "T01:02", " 23:59:59", "T12:00:00.5", " 12:00:00.1234567", " 12:00:00Z")
    bad = (" 25:00:00", " 12:60:00", " x", "T")
    times = st.sampled_from((*good, *bad))
    return st.tuples(days, times).map("".join)


@pytest.mark.parametrize("source", [t for t in TYPES if t != VARCHAR], ids=str)
@given(data=st.data())
def test_casts_mean_what_they_mean_in_duckdb(source: DataType, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(values(source)), min_size=1, max_size=12))
    check(source, targets(source), rows)


@pytest.mark.parametrize("target", targets(VARCHAR), ids=str)
@given(data=st.data())
def test_text_is_read_as_in_duckdb(target: DataType, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(texts(target)), min_size=1, max_size=12))
    check(VARCHAR, [target], rows)


SPECIAL = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""What DuckDB writes in another way."""


def check(source: DataType, to: list[DataType], rows: Sequence[tuple[Value]]) -> None:
    query = f"SELECT {', '.join(f'TRY_CAST(c0 AS {t})' for t in to)} FROM t ORDER BY row"
    theirs, types = ask_duckdb(query, [source], rows)
    assert types == [str(target) for target in to]
    for index, target in enumerate(to):
        expr = cast(Column("c0", source), target)
        ours = [evaluate(expr, {"c0": value}) for (value,) in rows]
        given = [answer[index] for answer in theirs]
        if source == DOUBLE and target == VARCHAR:
            given = [SPECIAL.get(str(text), text) for text in given]
        wrong = disagreements(ours, given)
        assert [(str(target), rows[row], a, b) for row, a, b in wrong] == []
