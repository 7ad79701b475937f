"""One rule for all formats: every case through CSV, JSON, Parquet, memory and the rows of Spark."""

# ruff: noqa: DTZ001 — timestamps carry no zone

from __future__ import annotations

import csv
import io
import json
import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from reading.judge import BAD, CASES, judge
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.ingest import Refused
from tidemill.errors import RunError
from tidemill.lang.statements import ConnectorCall, MalformedPolicy, Name
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
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
from tidemill.runtime.files import read_file
from tidemill.runtime.reading.frames import shaped_frame
from tidemill.runtime.reading.shaping import Input
from tidemill.runtime.spark.io.sources import Needed, _row_pieces
from tidemill.runtime.spark.worker.intake import Origin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = ConnectorCall(Name("memory"))


def stream(type_: DataType, *, nullable: bool = True) -> StreamEntry:
    schema = Schema((Field("x", type_, nullable),))
    return StreamEntry("s", schema, SOURCE, malformed=MalformedPolicy.QUARANTINE)


def taken(type_: DataType, read: Callable[[Refused], list[pl.DataFrame]]) -> list[object]:
    """What became of one row: its value, or ``BAD``."""
    refused = Refused(stream(type_))
    rows = [value for frame in read(refused) for value in frame["x"].to_list()]
    return rows + [BAD] * refused.counts.get("malformed", 0)


def through_file(
    place: Path, kind: str, content: bytes, type_: DataType, *, shown: bool = True
) -> list[object]:
    assert shown
    path = place / f"x.{kind}"
    path.write_bytes(content)
    schema = stream(type_).schema
    return taken(type_, lambda r: list(read_file(path, kind, schema, r.add_malformed)))


def through_memory(column: pl.Series, type_: DataType) -> list[object]:
    frame = pl.DataFrame({"X": column})
    input_ = Input('frame "f"', unit="row")
    schema = stream(type_).schema
    return taken(type_, lambda r: [shaped_frame(frame, schema, input_, r.add_malformed)])


def through_spark(column: pa.Array, type_: DataType) -> list[object]:
    batch = pa.record_batch({"x": column})
    pieces = _row_pieces(stream(type_))
    origin = Origin(0, 0, Time(0))
    return taken(
        type_, lambda r: [p.rows for p in pieces([batch], origin, r.add_malformed, Needed())]
    )


def same(found: list[object], expected: object) -> bool:
    if len(found) != 1:
        return False
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found[0], float) and math.isnan(found[0])
    return type(found[0]) is type(expected) and found[0] == expected


CASE = pytest.mark.parametrize(
    ("text", "type_", "expected"), CASES, ids=[f"{t} as {k}" for t, k, _ in CASES]
)


@CASE
def test_the_judge_agrees_with_the_cases(text: str, type_: DataType, expected: object) -> None:
    assert same([judge(text, type_)], expected)


@CASE
def test_a_field_of_csv(tmp_path: Path, text: str, type_: DataType, expected: object) -> None:
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([["x"], [text]])
    assert same(through_file(tmp_path, "csv", content.getvalue().encode(), type_), expected)


JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
CONSTANTS = ("NaN", "Infinity", "-Infinity")


@CASE
def test_a_field_of_json(tmp_path: Path, text: str, type_: DataType, expected: object) -> None:
    written = json.dumps(text)
    if type_.is_numeric and (JSON_NUMBER.fullmatch(text) or text in CONSTANTS):
        written = text
    elif type_.is_numeric and type_.kind is not Kind.DECIMAL:
        expected = BAD  # a text is no number
    elif type_ == BOOLEAN:
        written, expected = text, expected if text in ("true", "false") else BAD
    line = f'{{"other": [1, {{}}], "x": {written}}}\n'
    found = through_file(tmp_path, "json", line.encode(), type_)
    assert same(found, expected)


@CASE
def test_a_text_of_parquet_of_memory_and_of_spark(
    tmp_path: Path, text: str, type_: DataType, expected: object
) -> None:
    buffer = io.BytesIO()
    pl.DataFrame({"x": [text]}).write_parquet(buffer)
    assert same(through_file(tmp_path, "parquet", buffer.getvalue(), type_), expected)
    assert same(through_memory(pl.Series([text]), type_), expected)
    assert same(through_spark(pa.array([text]), type_), expected)


OSLO = timezone(timedelta(hours=1))
TYPED: list[tuple[pa.Array, DataType, object]] = [
    (pa.array([1.0]), BIGINT, 1),
    (pa.array([1.5]), BIGINT, BAD),
    (pa.array([math.nan]), BIGINT, BAD),
    (pa.array([2.0**63]), BIGINT, BAD),
    (pa.array([1.5], pa.float32()), DOUBLE, 1.5),
    (pa.array([2**40]), INTEGER, BAD),
    (pa.array([2**64 - 1], pa.uint64()), BIGINT, BAD),
    (pa.array([2**53 + 1]), decimal(18, 2), Decimal(2**53 + 1)),
    (pa.array([100]), decimal(4, 2), BAD),
    (pa.array([0.25]), decimal(10, 2), Decimal("0.25")),
    (pa.array([0.1]), decimal(10, 2), BAD),
    (pa.array([Decimal("1.005")]), decimal(10, 2), BAD),
    (pa.array([Decimal("1.500")]), decimal(10, 2), Decimal("1.50")),
    (pa.array([Decimal("1.500")]), BIGINT, BAD),
    (pa.array([Decimal("2.000")]), BIGINT, 2),
    (pa.array([1_500], pa.timestamp("ns")), TIMESTAMP, BAD),
    (pa.array([2_000], pa.timestamp("ns")), TIMESTAMP, datetime(1970, 1, 1, 0, 0, 0, 2)),
    (pa.array([1_500], pa.timestamp("ms")), TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, 500_000)),
    (pa.array([2**60], pa.timestamp("ms")), TIMESTAMP, BAD),
    (pa.array([7], pa.timestamp("us")), BIGINT, 7),
    (
        pa.array([datetime(2026, 3, 1, 12, tzinfo=OSLO)], pa.timestamp("us", "+01:00")),
        TIMESTAMP,
        datetime(2026, 3, 1, 11),
    ),
    (
        pa.array([datetime(2026, 3, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        DATE,
        date(2026, 3, 1),
    ),
    (pa.array([datetime(2026, 3, 1, 1)], pa.timestamp("us")), DATE, BAD),
    (pa.array([date(2026, 3, 1)]), TIMESTAMP, datetime(2026, 3, 1)),
    (pa.array([b"abc"]), VARCHAR, "abc"),
    (pa.array([b"\xff"]), VARCHAR, BAD),
    (pa.array(["abc"]).dictionary_encode(), VARCHAR, "abc"),
    (pa.array([None], pa.null()), BIGINT, None),
]


@pytest.mark.parametrize(("column", "type_", "expected"), TYPED)
def test_a_typed_column(
    tmp_path: Path, column: pa.Array, type_: DataType, expected: object
) -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"x": column}), buffer, version="2.6")
    assert same(through_file(tmp_path, "parquet", buffer.getvalue(), type_), expected)
    series = pl.Series(column)
    assert same(through_memory(series, type_), expected)
    assert same(through_spark(column, type_), expected)


OTHER: list[tuple[pa.Array, DataType]] = [
    (pa.array([7], pa.timestamp("ms")), BIGINT),
    (pa.array([7], pa.timestamp("ns")), BIGINT),
    (pa.array([7]), TIMESTAMP),
    (pa.array([True]), BIGINT),
    (pa.array([1]), BOOLEAN),
    (pa.array([1]), VARCHAR),
    (pa.array([date(2026, 3, 1)]), BIGINT),
    (pa.array([[1]]), BIGINT),
    (pa.array([7], pa.duration("us")), BIGINT),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), VARCHAR),
]


@pytest.mark.parametrize(("column", "type_"), OTHER)
def test_a_column_that_says_something_else_is_never_taken_for_the_declared_one(
    tmp_path: Path, column: pa.Array, type_: DataType
) -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"x": column}), buffer, version="2.6")
    message = rf'column "x" of .* is .* and not {re.escape(str(type_))}'
    with pytest.raises(RunError, match=message):
        through_file(tmp_path, "parquet", buffer.getvalue(), type_)
    if not pa.types.is_map(column.type):
        with pytest.raises(RunError, match=message):
            through_memory(pl.Series(column), type_)
