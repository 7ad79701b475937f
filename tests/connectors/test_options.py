"""The values of options: what is taken, and what is said about what is not."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tidemill.connectors.options import (
    Choice,
    Flag,
    Number,
    OptionType,
    Text,
    Value,
    Whole,
    fault,
    type_text,
    value_text,
)
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import CreateStream

TYPES: tuple[OptionType, ...] = (
    Text(),
    Flag(),
    Whole(),
    Whole(least=0, most=9),
    Number("seconds"),
    Number("rows", least=-1, most=1),
    Choice(("a", "b")),
)

VALUES = (
    st.booleans()
    | st.integers()
    | st.integers(-3, 12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "b", "A", "1"])
    | st.text(max_size=5)
)


def is_described(text: str, value: Value) -> bool:
    """Whether a value is what the text of a type says; read from the text alone."""
    if text == "a string":
        return isinstance(value, str) and value != ""
    if text == "TRUE or FALSE":
        return isinstance(value, bool)
    if text.startswith("'"):
        return value in re.findall(r"'(.*?)'", text) and isinstance(value, str)
    if isinstance(value, bool | str) or ("whole" in text and not isinstance(value, int)):
        return False
    low, *high = (int(number) for number in re.findall(r"-?\d+", text))
    return low <= value <= (high[0] if high else 2**31 - 1)


@given(type_=st.sampled_from(TYPES), value=VALUES)
def test_a_value_is_taken_if_and_only_if_the_type_says_so(type_: OptionType, value: Value) -> None:
    assert (fault(type_, value) is None) == is_described(type_text(type_), value)


@given(value=VALUES)
def test_a_value_is_read_as_it_was_written(value: Value) -> None:
    if isinstance(value, str) and not value.isprintable():
        return
    text = f"CREATE STREAM s (x BIGINT) SOURCE c(v => {value_text(value)})"
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    ((_, read),) = statement.source.named
    assert (type(read), read) == (type(value), value)


def test_a_number_that_is_too_large_is_told_so() -> None:
    assert fault(Whole(), 2**31) == fault(Number("seconds"), 1e300)
    assert fault(Whole(), 2**31) == "must not be more than 2147483647"
    assert fault(Text(), 2**31) == "must be a string"
    assert fault(Whole(least=0, most=9), 12) == "must be a whole number, from 0 to 9"
