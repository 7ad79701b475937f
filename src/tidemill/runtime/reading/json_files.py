r"""JSON files: an object a line.

Fields are found by name, without regard to case. A field that is missing is NULL, whatever other
lines have; one that is not declared is passed over, whatever it holds. Numbers are read by their
digits and never by way of a DOUBLE. A DECIMAL may stand in quotes, as programs write it that want
to keep its digits; a DOUBLE may be ``NaN``, ``Infinity`` or ``-Infinity``, with quotes or without.

A block is read at once if no line of it makes difficulties. Otherwise it is halved until few lines
are left, which are read one by one. Law: both ways give the same rows.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyarrow import json as arrow_json

from tidemill.model.batch import polars_schema
from tidemill.model.types import MAX_PRECISION, Kind
from tidemill.runtime.reading.blocks import LONGEST, Block, blocks, chunks
from tidemill.runtime.reading.shaping import Broken, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from tidemill.engine.ingest import Malformed
    from tidemill.model.schema import Field, Schema
    from tidemill.model.types import DataType
    from tidemill.runtime.reading.shaping import Input, Refuse

__all__ = ["read_json"]

_BY_LINE_BYTES = 1 << 16
"""How many bytes are read line by line, if there is a difficulty among them."""

_PART = 1 << 22
"""How many bytes of a block a thread takes."""

_TYPES: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which is no character."""
_ODD = (b"\\u", b"\xe2\x84\xaa", b"Inf", b"NaN")
_VERY_ODD = re.compile(rb"\\u00[2-7]|\\u212[aA]|\xe2\x84\xaa|[:,\[]\s*[-+]?(?:Inf|NaN)")
"""What two readers could take differently: escaped characters in names, the sign for Kelvin, which
is a k in lower case, and numbers that are not finite."""

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
"""A name that is written in JSON in one way only."""


class _Number(str):
    """The digits of a number, which is no text."""

    __slots__ = ()


class _Object(list[tuple[str, object]]):
    """The fields of an object, which is no array."""

    __slots__ = ()


def read_json(
    file: BinaryIO, schema: Schema, input_: Input, refuse: Refuse
) -> Iterator[pl.DataFrame]:
    """The rows of a file, piece by piece.

    Args:
        file: The file.
        schema: Its columns; others are left out.
        input_: What it is.
        refuse: What is done with malformed rows.

    Raises:
        RunError: ``refuse`` raises it.
    """
    for block in blocks(chunks(file), lambda buffer: buffer.rfind(b"\n") + 1):
        if block.is_whole:
            yield pl.concat(_read_block(block, schema, input_, refuse))
        else:
            problem = f"it is longer than {LONGEST >> 20} MB"
            broken = Broken(block.line, problem, block.content.decode(errors="replace"))
            yield shaped(_nothing(schema), schema, input_, refuse, _nowhere, broken=[broken])


def _read_block(
    block: Block, schema: Schema, input_: Input, refuse: Refuse
) -> Iterator[pl.DataFrame]:
    """The rows of a block, in pieces."""
    frame = _read_at_once(block.content, schema)
    if frame is not None:
        malformed: list[Malformed] = []
        rows = shaped(frame.get_columns(), schema, input_, malformed.append, _nowhere)
        if not malformed:
            yield rows
            return
    middle = block.content.find(b"\n", len(block.content) // 2) + 1
    if len(block.content) <= _BY_LINE_BYTES or middle in (0, len(block.content)):
        yield _read_by_line(block, schema, input_, refuse)
        return
    first, second = block.content[:middle], block.content[middle:]
    yield from _read_block(Block(first, block.line), schema, input_, refuse)
    line = block.line + first.count(b"\n")
    yield from _read_block(Block(second, line), schema, input_, refuse)


def _read_at_once(content: bytes, schema: Schema) -> pl.DataFrame | None:
    """The fields of a block, if every line is an object in which nothing is unusual."""
    rows = content.count(b"\n")
    # A line that ends with } before one that begins with { is at an end: an object has no } {.
    if not (content.startswith(b"{") and content.endswith(b"}\n")):
        return None
    if content.count(b"}\n{") != rows - 1 or not _is_utf8(content):
        return None
    table = None
    if _has_only(content[: content.index(b"\n")], schema):
        table = _parsed(content, schema, others="error")
    if table is None and _has_usual_names(content, schema):
        table = _parsed(content, schema, others="ignore")
    if table is None or table.num_rows != rows:
        return None
    frame = pl.from_arrow(table.select(schema.names))
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    doubles = (frame[field.name] for field in schema if field.type.kind is Kind.DOUBLE)
    decimals = (frame[field.name] for field in schema if field.type.kind is Kind.DECIMAL)
    if not all(double.is_finite().all() for double in doubles):
        return None
    return frame if all(map(_has_few_digits, decimals)) else None


def _has_few_digits(column: pl.Series) -> bool:
    """Whether no number has more digits than a DECIMAL; an exponent may give it more (1e32)."""
    limit = 10**MAX_PRECISION
    digits = column.to_physical()
    return bool(((digits < limit) & (digits > -limit)).all())


def _is_utf8(content: bytes) -> bool:
    try:
        pa.array([content], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _has_only(line: bytes, schema: Schema) -> bool:
    """Whether a line has declared fields only; then the lines that follow it may be so as well."""
    try:
        return {*json.loads(line)} <= {*schema.names}
    except (ValueError, TypeError, RecursionError):
        return False


def _parsed(content: bytes, schema: Schema, *, others: str) -> pa.Table | None:
    """The declared fields of all lines, if they have the types; and what to do about others."""
    declared = pa.schema([(field.name, _arrow_type(field.type)) for field in schema])
    try:
        return arrow_json.read_json(
            pa.BufferReader(content),
            arrow_json.ReadOptions(use_threads=pl.thread_pool_size() > 1, block_size=_PART),
            arrow_json.ParseOptions(explicit_schema=declared, unexpected_field_behavior=others),
        )
    except pa.ArrowException:
        return None


def _has_usual_names(content: bytes, schema: Schema) -> bool:
    """Whether all fields that may be meant are spelled as they are declared."""
    if any(odd in content for odd in _ODD) and _VERY_ODD.search(content):
        return False
    if not all(_PLAIN.fullmatch(field.name) for field in schema):
        return False
    lower = content.lower()
    return all(_is_spelled_alike(content, lower, field.name.encode()) for field in schema)


def _is_spelled_alike(content: bytes, lower: bytes, name: bytes) -> bool:
    if lower.count(b'"%b"' % name.lower()) == content.count(b'"%b"' % name):
        return True
    form = rb'"%b"\s*:'  # a value may be spelled as it likes
    there = len(re.findall(form % re.escape(name.lower()), lower))
    return there == len(re.findall(form % re.escape(name), content))


def _arrow_type(type_: DataType) -> pa.DataType:
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(38, type_.scale)
    return _TYPES.get(type_.kind, pa.string())


def _read_by_line(block: Block, schema: Schema, input_: Input, refuse: Refuse) -> pl.DataFrame:
    """The rows of a block, line by line."""
    rows: list[dict[str, object]] = []
    lines: list[tuple[int | None, str]] = []
    broken: list[Broken] = []
    for number, line in enumerate(block.content.split(b"\n")):
        if not line.strip():
            continue
        text = line.decode(errors="replace").rstrip("\r")
        row = _row(line, schema)
        if isinstance(row, str):
            broken.append(Broken(block.line + number, row, text))
        else:
            rows.append(row)
            lines.append((block.line + number, text))
    columns, wrong = [], {}
    for field in schema:
        cells = [_cell(row.get(field.name), field) for row in rows]
        columns.append(pl.Series(field.name, [text for text, _ in cells], dtype=pl.String))
        if any(other for _, other in cells):
            wrong[field.name] = [other for _, other in cells]
    return shaped(
        columns,
        schema,
        input_,
        refuse,
        lambda places: [lines[place] for place in places],
        broken=broken,
        wrong=wrong,
    )


def _row(line: bytes, schema: Schema) -> dict[str, object] | str:
    """The declared fields of a line, or what is wrong with it."""
    try:
        found = json.loads(
            line.decode(),
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
        )
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(found, _Object):
        return "it is not a JSON object"
    names = {field.name.lower(): field.name for field in schema}
    row: dict[str, object] = {}
    for name, value in found:
        declared = names.get(name.lower())
        if declared in row:
            return f'column "{declared}" is there twice'
        if declared is not None:
            row[declared] = value
    return row


def _cell(value: object, field: Field) -> tuple[str | None, str | None]:
    """A value as text; or what it is, if it is of another type than declared."""
    kind = field.type.kind
    match value:
        case None:
            return None, None
        case _Number() if value in _NOT_FINITE:
            return (value, None) if kind is Kind.DOUBLE else (None, value)
        case _Number():
            return (value, None) if field.type.is_numeric else (None, value)
        case bool():
            text = "true" if value else "false"
            return (text, None) if kind is Kind.BOOLEAN else (None, text)
        case str():
            return (value, None) if _may_be_quoted(value, kind) else (None, json.dumps(value))
        case _:
            return None, "an object" if isinstance(value, _Object) else "an array"


def _may_be_quoted(text: str, kind: Kind) -> bool:
    if kind is Kind.DOUBLE:
        return text in _NOT_FINITE
    if kind not in (Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL):
        return False
    return not _SURROGATE.search(text)


def _nothing(schema: Schema) -> list[pl.Series]:
    return pl.DataFrame(schema=polars_schema(schema)).get_columns()


def _nowhere(places: list[int]) -> list[tuple[int | None, str]]:
    """Stands for lines that are reported when they are read one by one."""
    return [(None, "") for _ in places]
