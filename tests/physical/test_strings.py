"""What stays in memory has buffers of its own: not those of rows that passed by."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.physical.state.keyed import KeyedTable
from tidemill.physical.state.strings import compact_strings, held_bytes
from tidemill.physical.state.table import Table
from tidemill.runtime.answers import Answer

SCHEMA: dict[str, pl.DataType] = {
    "x": pl.Int64(),
    "s": pl.String(),
    START: pl.Int64(),
    END: pl.Int64(),
}
LENGTH = 200


def step(time: int, rows: int, *, stay: int) -> pl.DataFrame:
    """Rows with long texts; one of so many stays for ever, the others for a short time."""
    number = pl.int_range(rows, eager=True)
    return pl.DataFrame(
        {
            "x": number,
            "s": [f"{time * rows + n:0{LENGTH}d}" for n in range(rows)],
            START: [time] * rows,
            END: [10**6 if n % stay == 0 else time + 3 for n in range(rows)],
        },
        schema=SCHEMA,
    )


def held(frames: list[pl.DataFrame]) -> int:
    """The bytes of strings in memory, of all frames."""
    return sum(held_bytes(frame["s"]) for frame in frames)


def table(kind: str) -> Table:
    if kind == "key":
        return KeyedTable(SCHEMA, (START, END), index=("x",))
    return Table(SCHEMA, (START, END), key=("x",), by_expiry=kind == "expiry")


KINDS = ("arrival", "expiry", "key")


@given(
    texts=st.lists(st.none() | st.text(max_size=40), max_size=20),
    name=st.sampled_from(["s", "*", "^.*$", ""]),
    data=st.data(),
)
def test_the_rows_are_the_same(texts: list[str | None], name: str, data: st.DataObject) -> None:
    whole = pl.DataFrame({name: pl.Series(texts, dtype=pl.String), "n": range(len(texts))})
    left = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    part = whole.filter(pl.Series(left, dtype=pl.Boolean))
    own = compact_strings(part)
    assert own.rows() == part.rows()
    assert own.schema == part.schema
    own_bytes = sum(len((text or "").encode()) for text in part[name])
    assert held_bytes(own[name]) <= 2 * own_bytes


def test_rows_that_hold_no_others_are_not_copied() -> None:
    frame = step(0, 100, stay=1)
    assert compact_strings(frame) is frame
    assert compact_strings(frame[:60])["s"].to_list() == frame["s"].to_list()[:60]


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_of_a_stream_do_not_keep_the_strings_of_all(kind: str) -> None:
    rows = table(kind)
    for time in range(50):
        rows.insert(step(time, 400, stay=1).filter(pl.col("x") % 200 == 0))
    assert rows.rows() == 100
    assert held([segment.frame for segment in rows.segments()]) <= 2 * 100 * LENGTH


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_gone_take_their_strings_along(kind: str) -> None:
    rows = table(kind)
    for time in range(60):
        rows.insert(step(time, 400, stay=100))
        rows.purge(END, Time(time))
    left = rows.rows()
    assert left < 60 * 4 + 4 * 400
    segments = [segment.frame for segment in rows.segments() if "s" in segment.frame.columns]
    # Half of a segment may be over, and half of what it holds be of others.
    assert held(segments) <= 4 * left * LENGTH


def test_an_answer_in_memory_has_its_own_strings() -> None:
    answer = Answer(Schema((Field("x", BIGINT), Field("s", VARCHAR))))
    batches = [step(time, 400, stay=1).filter(pl.col("x") == time) for time in range(20)]
    answer.add(batches)
    assert held(batches) == 20 * 400 * LENGTH
    assert held(answer._batches) == 20 * LENGTH  # noqa: SLF001 — nobody else can see it
