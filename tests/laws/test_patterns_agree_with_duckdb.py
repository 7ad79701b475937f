"""Patterns that match nothing, and LIKE: all short texts, by reference, engine and DuckDB."""

from __future__ import annotations

from itertools import product

import duckdb
import polars as pl
import pytest

from tidemill.algebra.expr import Call, Column, Literal
from tidemill.algebra.functions import STRICT
from tidemill.model.types import BOOLEAN, VARCHAR
from tidemill.physical.eval import compile_expr

PATTERNS = ["|a", "a??", "a*?", "(a|b)??", "a*", "a|", "(|b)", r"\b", "^", "$", "a?b?", "b|a*?"]
LIKES = ["".join(signs) for length in range(4) for signs in product("ab%_", repeat=length)]
TEXTS = ["".join(signs) for length in range(5) for signs in product("ab ", repeat=length)]


def asked(expression: str, pattern: str) -> list[object]:
    """What DuckDB says of each text."""
    query = f"SELECT {expression} FROM (SELECT unnest(?) AS text)"
    return [row[0] for row in duckdb.execute(query, [pattern, TEXTS]).fetchall()]


def computed(call: Call) -> list[object]:
    """What the engine says of each text."""
    return pl.DataFrame({"text": TEXTS}).select(compile_expr(call).alias("r"))["r"].to_list()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_match_is_replaced_where_some_are_empty(pattern: str) -> None:
    constants = tuple(Literal(value, VARCHAR) for value in (pattern, "X", "g"))
    call = Call("regexp_replace", (Column("text", VARCHAR), *constants), VARCHAR)
    expected = asked("regexp_replace(text, ?, 'X', 'g')", pattern)
    assert [STRICT["regexp_replace"](text, pattern, "X", "g") for text in TEXTS] == expected
    assert computed(call) == expected


@pytest.mark.parametrize("pattern", LIKES)
def test_like(pattern: str) -> None:
    call = Call("like", (Column("text", VARCHAR), Literal(pattern, VARCHAR)), BOOLEAN)
    expected = asked("text LIKE ?", pattern)
    assert [STRICT["like"](text, pattern) for text in TEXTS] == expected
    assert computed(call) == expected
