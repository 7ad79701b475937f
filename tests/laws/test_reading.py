"""However lines are cut into files, batches and blocks, the same rows are taken and refused.

Drawn are columns with types, lines with cells that are right and wrong, and where they are cut. A
judge in plain Python says what each cell is. The same files are read by a session of the local
engine, and by what reads them in a task on Spark.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from reading.judge import BAD, judge
from tidemill.catalog.entries import StreamEntry
from tidemill.engine.ingest import FILE, LINE, Refused
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
from tidemill.runtime.reading import blocks, json_files
from tidemill.runtime.spark.io.sources import Needed, _content_pieces, _file_pieces
from tidemill.runtime.spark.worker.intake import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TYPES = [BIGINT, INTEGER, decimal(6, 2), DOUBLE, BOOLEAN, DATE, TIMESTAMP, VARCHAR]

numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-999, 999).map(str),
    st.decimals(-(10**5), 10**5, places=3).map(str),
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,4}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "inf", "nan", "1e400", "1.0", "1e3", "0E-18"]),
)
dates = st.one_of(
    st.dates().map(str),
    st.from_regex(r"20[0-9]{2}-[0-9]{1,2}-[0-3][0-9]", fullmatch=True),
    st.sampled_from(["03/01/2026", "2026-02-30", "0000-01-01"]),
)
moments = st.one_of(
    st.datetimes().map(lambda d: d.isoformat()),
    st.datetimes().map(lambda d: d.isoformat(" ", "minutes")),
    st.from_regex(
        r"2026-0[0-9]-[0-3][0-9][T ][012][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?"
        r"(Z|[+-][012][0-9](:?[0-9]{2})?)?",
        fullmatch=True,
    ),
    dates,
)
words = st.text(st.sampled_from('ab ,"\n\r\\é🙂{}:'), max_size=5)
booleans = st.sampled_from(["true", "false", "TRUE", "yes", "0"])


def texts(type_: DataType) -> st.SearchStrategy[str]:
    match type_.kind:
        case Kind.VARCHAR:
            return words
        case Kind.BOOLEAN:
            return booleans | words
        case Kind.DATE:
            return dates | words
        case Kind.TIMESTAMP:
            return moments | words
        case _:
            return numbers | words


class Line(NamedTuple):
    """A row of a file: how it is written, and its values; none if it is malformed."""

    text: str
    values: tuple[object, ...] | None


class Case(NamedTuple):
    """Lines of a format, and where they are cut."""

    kind: str
    types: list[DataType]
    files: list[list[Line]]
    files_per_batch: int
    block: int


def field(text: str | None, *, quoted: bool) -> str:
    if text is None:
        return ""
    if quoted or not text or re.search(r'[",\n\r]', text):
        return '"' + text.replace('"', '""') + '"'
    return text


@st.composite
def csv_lines(draw: st.DrawFn, types: Sequence[DataType]) -> Line:
    broken = draw(st.integers(0, 9))
    if broken == 0:
        # Neither of them can be the begin of a row that goes on in the next line.
        return Line(draw(st.sampled_from(['x"y', '"x"y', "a" + "," * (len(types) + 1)])), None)
    if broken == 1 and len(types) > 1:
        return Line("," * draw(st.integers(1, len(types) - 2)) if len(types) > 2 else "z", None)
    cells = [draw(st.none() | texts(type_)) for type_ in types]
    text = ",".join(field(cell, quoted=draw(st.booleans())) for cell in cells)
    values = tuple(judge(cell, type_) for cell, type_ in zip(cells, types, strict=True))
    return Line(text, None if BAD in values else values)


JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
CONSTANTS = ("NaN", "Infinity", "-Infinity")
odd_values = st.sampled_from(["{}", "[1]", '{"c0": 1}', "7", '"text"', "true", "1.5", "NaN", "Inf"])


def json_value(text: str, type_: DataType, *, quoted: bool) -> tuple[str, object]:
    """A cell as it is written in JSON, and its value."""
    value = judge(text, type_)
    is_number = JSON_NUMBER.fullmatch(text) is not None or text in CONSTANTS
    if is_number and not quoted:
        return text, value if type_.is_numeric else BAD
    if type_ == BOOLEAN and text in ("true", "false") and not quoted:
        return text, value
    if type_ == BOOLEAN or type_.is_integer:
        return json.dumps(text), BAD
    if type_ == DOUBLE and text not in CONSTANTS:
        return json.dumps(text), BAD
    return json.dumps(text), value


@st.composite
def json_lines(draw: st.DrawFn, types: Sequence[DataType]) -> Line:
    broken = draw(st.integers(0, 9))
    if broken == 0:
        text = draw(st.sampled_from(['{"c0": 1', "[1]", "7", '{"c0": 1}{"c0": 2}', "{,}", "}\t{"]))
        return Line(text, None)
    fields: list[str] = []
    values: list[object] = []
    for number, type_ in enumerate(types):
        cell = draw(st.none() | texts(type_))
        if cell is None:
            values.append(None)
            fields += draw(st.sampled_from([[], [f'"c{number}": null']]))
            continue
        text, value = json_value(cell, type_, quoted=draw(st.booleans()))
        if draw(st.integers(0, 19)) == 0:
            text, value = draw(st.sampled_from(["{}", "[]"])), BAD
        name = draw(st.sampled_from(["c", "c", "c", "C", "\\u0063"]))
        fields.append(f'"{name}{number}": {text}')
        values.append(value)
    if draw(st.booleans()):
        other = draw(odd_values)
        fields.insert(draw(st.integers(0, len(fields))), f'"other": {other}')
        if other == "Inf":
            values.append(BAD)
    return Line("{" + ", ".join(fields) + "}", None if BAD in values else tuple(values))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(["csv", "json"]))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    lines = draw(st.lists((csv_lines if kind == "csv" else json_lines)(types), max_size=12))
    cuts = sorted(draw(st.lists(st.integers(0, len(lines)), max_size=3)))
    bounds = zip([0, *cuts], [*cuts, len(lines)], strict=True)
    files = [lines[begin:end] for begin, end in bounds]
    return Case(kind, types, files, draw(st.integers(1, 3)), draw(st.integers(1, 60)))


def write(case: Case, place: Path) -> Iterator[Path]:
    header = [",".join(f"c{number}" for number in range(len(case.types)))] * (case.kind == "csv")
    for number, lines in enumerate(case.files):
        path = place / f"{number}.{case.kind}"
        content = "\n".join([*header, *(line.text for line in lines), ""])
        path.write_bytes(content.encode())
        yield path


def rows_of(lines: Sequence[Line]) -> Counter[str]:
    return Counter(repr(line.values) for line in lines if line.values is not None)


@settings(max_examples=6 * settings().max_examples)
@given(case=cases())
def test_the_same_rows_are_malformed_however_lines_are_cut(case: Case) -> None:
    lines = [line for lines in case.files for line in lines]
    columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(case.types))
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(blocks, "BLOCK", case.block),
        mock.patch.object(json_files, "_BY_LINE_BYTES", case.block),
    ):
        paths = list(write(case, Path(folder)))
        with tidemill.connect() as session:
            session.sql(
                f"CREATE STREAM s ({columns}) SOURCE {case.kind}('{folder}', "
                f"files_per_batch => {case.files_per_batch}) MALFORMED QUARANTINE"
            )
            query = session.sql("SELECT * FROM s")
            assert isinstance(query, tidemill.Query)
            session.run()
            # An equal row of the next batch goes on with the one before.
            found: Counter[str] = Counter()
            for *row, start, end in query.results().rows():
                found[repr(tuple(row))] += (end - start) // timedelta(microseconds=1)
            assert found == rows_of(lines)
            kept = session.quarantine("s")
            stream = session.catalog.find("s")
        bad = [line.text for line in lines if line.values is None]
        assert kept["text"].to_list() == bad
        assert set(kept["reason"]) <= {"malformed"}
        assert isinstance(stream, StreamEntry)
        on_spark(case, stream, paths)


def on_spark(case: Case, stream: StreamEntry, paths: list[Path]) -> None:
    """The same files, read as a task does."""
    numbers = list(range(len(paths)))
    entries = pa.record_batch(
        {
            "number": numbers,
            "path": [str(path) for path in paths],
            "size": [path.stat().st_size for path in paths],
            "changed": [path.stat().st_mtime_ns for path in paths],
        }
    )
    contents = [path.read_bytes() for path in paths]
    brought = pa.record_batch({"path": [str(path) for path in paths], "content": contents})
    origin = Origin(0, 0, Time(0))
    lines = [line for lines in case.files for line in lines]
    for pieces, batch in (
        (_file_pieces(case.kind, stream), entries),
        (_content_pieces(case.kind, stream), brought),
    ):
        refused = Refused(stream)
        found = list(pieces([batch], origin, refused.add_malformed, Needed()))
        assert Counter(repr(row) for piece in found for row in piece.rows.rows()) == rows_of(lines)
        ids = [range(p.first, p.first + p.rows.height) for p in found]
        everyone = [number for numbers in ids for number in numbers]
        assert everyone == sorted(set(everyone)), "each row has an id, in their order"
        held = refused.held()
        expected = []
        for path, content in zip(paths, case.files, strict=True):
            number = 1 + (case.kind == "csv")
            for line in content:
                if line.values is None:
                    expected.append((str(path), number))
                number += line.text.count("\n") + 1
        assert held.select(FILE, LINE).rows() == expected
