r"""CSV files: a line with the names of the columns, then rows of as many fields.

Fields are separated by commas. A field may stand in double quotes, and then hold commas, line ends
and, doubled, quotes; one that is empty and not in quotes is NULL. A line end is ``\n`` or ``\r\n``.
An empty line is no row, unless there is only one column.

A block is read at once if it can be seen, by counting, that every row has as many fields as there
are columns. Otherwise it is taken apart row by row, and those that are not right are left out.

Law: the rows, and the malformed ones, do not depend on how a file is cut into blocks.
"""

from __future__ import annotations

import csv
import io
import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from tidemill.errors import RunError
from tidemill.runtime.reading.blocks import LONGEST, Block, blocks, chunks
from tidemill.runtime.reading.shaping import Broken, found_columns, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.shaping import Input, Refuse

__all__ = ["read_csv"]

_Array: TypeAlias = npt.NDArray[np.intp]

_MARK = b"\xef\xbb\xbf"
"""What some programs put in front of UTF-8."""

_LINE_END, _RETURN, _QUOTE, _COMMA = b'\n\r",'

_FIELD = rb'(?:"(?:[^"]++|"")*+"|[^",\n]*+)'
_ROW = re.compile(rb"%b(?:,%b)*+\r?\n" % (_FIELD, _FIELD))
_UNDECIDED = re.compile(rb'(?:%b,)*+(?:"(?:[^"]++|"")*+"?|[^",\n]*+)\r?\Z' % _FIELD)
"""What may become a row, if more follows."""
_QUOTED = re.compile(rb'"(?:[^"]++|"")*+"')


def read_csv(
    file: BinaryIO, schema: Schema, input_: Input, refuse: Refuse
) -> Iterator[pl.DataFrame]:
    """The rows of a file, piece by piece.

    Args:
        file: The file.
        schema: Its columns; others are left out.
        input_: What it is.
        refuse: What is done with malformed rows.

    Raises:
        RunError: It does not have the columns, or ``refuse`` raises it.
    """
    content = blocks(chunks(file), _end_of_rows)
    first = next(content, None)
    if first is None:
        return
    names, end = _header(first, input_)
    layout = _Layout(names, found_columns(names, schema, input_), schema)
    line = first.line + first.content.count(b"\n", 0, end)
    for block in chain([Block(first.content[end:], line)], content):
        if block.content:
            yield _read_block(block, layout, input_, refuse)


class _Layout(NamedTuple):
    """The columns of a file, those of them that are read, and what they are declared as."""

    names: list[str]
    chosen: list[str]
    schema: Schema


def _header(block: Block, input_: Input) -> tuple[list[str], int]:
    """The names of the columns, and where their line ends."""
    begin = len(_MARK) if block.content.startswith(_MARK) else 0
    found = _ROW.match(block.content, begin) if block.is_whole else None
    try:
        line = "" if found is None else found[0].decode().rstrip("\r\n")
        names = next(csv.reader([line]), [])
    except (UnicodeDecodeError, csv.Error):
        names = []
    if found is None or not names:
        raise RunError(
            f"{input_.where} does not begin with the names of its columns",
            hint="the first line of a CSV file has the names of the columns, separated by commas, "
            r"and ends with \n or \r\n",
        )
    return names, found.end()


def _read_block(block: Block, layout: _Layout, input_: Input, refuse: Refuse) -> pl.DataFrame:
    width = len(layout.names)
    frame = _read_at_once(block.content, width) if block.is_whole else None
    rows = None
    if frame is None:
        rows = _taken_apart(block, width)
        frame = _parsed(b"".join(rows.good), width)

    def written(numbers: list[int]) -> list[tuple[int | None, str]]:
        found = _taken_apart(block, width) if rows is None else rows
        return [(found.lines[n], _text(found.good[n])) for n in numbers]

    places = [layout.names.index(name) for name in layout.chosen]
    chosen = [frame.to_series(place) for place in places]
    broken = [] if rows is None else rows.broken
    return shaped(chosen, layout.schema, input_, refuse, written, broken=broken)


def _read_at_once(content: bytes, width: int) -> pl.DataFrame | None:
    """The fields of a block, if every row has as many as there are columns."""
    rows, commas = content.count(b"\n"), content.count(b",")
    if b'"' in content:
        if not _is_well_quoted(content, _positions(content)):
            return None
        inside = b"".join(content.split(b'"')[1::2])
        rows, commas = rows - inside.count(b"\n"), commas - inside.count(b",")
    if commas != rows * (width - 1):
        return None
    # Rows with too many fields are an error of the parser, so there are none with too few either.
    try:
        frame = _parsed(content, width)
    except pl.exceptions.PolarsError:
        return None
    return frame if frame.height == rows else None


def _parsed(content: bytes, width: int) -> pl.DataFrame:
    """The fields of rows as texts; the parser looks at the first bytes, so it gets a header."""
    header = ",".join(f"column_{number}" for number in range(width)).encode()
    return pl.read_csv(io.BytesIO(b"%b\n%b" % (header, content)), infer_schema=False)


class _Rows(NamedTuple):
    """The rows of a block: those that are right with their lines, and those that are not."""

    good: list[bytes]
    lines: list[int]
    broken: list[Broken]


def _taken_apart(block: Block, width: int) -> _Rows:
    """The rows of a block, one by one."""
    rows = _Rows([], [], [])
    if not block.is_whole:
        too_long = f"it is longer than {LONGEST >> 20} MB"
        rows.broken.append(Broken(block.line, too_long, _text(block.content)))
        return rows
    line = block.line
    for row, is_right in _rows(block.content):
        problem = _problem(row, width) if is_right else "its quotes do not match"
        if problem is not None:
            rows.broken.append(Broken(line, problem, _text(row)))
        elif width == 1 or row.strip(b"\r\n"):
            rows.good.append(row)
            rows.lines.append(line)
        line += row.count(b"\n")
    return rows


def _rows(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """The rows of a block, and whether their quotes are right; if not, it is a line."""
    begin = 0
    while begin < len(content):
        found = _ROW.match(content, begin)
        end = content.index(b"\n", begin) + 1 if found is None else found.end()
        yield content[begin:end], found is not None
        begin = end


def _problem(row: bytes, width: int) -> str | None:
    """What is wrong with a row whose quotes are right."""
    try:
        row.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    fields = _QUOTED.sub(b"", row).count(b",") + 1
    if fields == width or not row.strip(b"\r\n"):
        return None
    return f"it has {fields} field{'s' * (fields > 1)} instead of {width}"


def _end_of_rows(buffer: bytes) -> int:
    """Where the last row of a buffer ends; 0 if none does."""
    end = buffer.rfind(b"\n") + 1
    if not end or b'"' not in buffer:
        return end
    quotes = _positions(buffer)
    while (before := int(np.searchsorted(quotes, end))) % 2:
        end = buffer.rfind(b"\n", 0, int(quotes[before - 1])) + 1  # it was inside of quotes
    if _is_well_quoted(buffer[:end], quotes[:before]) and _opens_well(buffer, quotes[before:]):
        return end
    begin = 0
    while (found := _ROW.match(buffer, begin)) or not _UNDECIDED.match(buffer, begin):
        end = buffer.find(b"\n", begin) + 1 if found is None else found.end()
        if not end:
            break
        begin = end
    return begin


def _positions(content: bytes) -> _Array:
    return np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == _QUOTE)


def _is_well_quoted(content: bytes, quotes: _Array) -> bool:
    """Whether every quote opens a field, closes one, or is one of two inside of a field."""
    if len(quotes) % 2:
        return False
    if not len(quotes):
        return True
    bytes_ = np.frombuffer(content, dtype=np.uint8)
    opening, closing = quotes[0::2], quotes[1::2]
    before = bytes_[opening - 1]  # that of the first row is the last byte, a line end
    after = bytes_[closing + 1]
    ends = (after == _COMMA) | (after == _LINE_END) | (after == _QUOTE)
    returns = closing[after == _RETURN]
    return bool(
        np.all((before == _COMMA) | (before == _LINE_END) | (before == _QUOTE))
        and np.all(ends | (after == _RETURN))
        and np.all(bytes_[returns + 2] == _LINE_END)
    )


def _opens_well(buffer: bytes, quotes: _Array) -> bool:
    """Whether the first of some quotes, if there is one, is the begin of a field."""
    first = int(quotes[0]) if len(quotes) else 0
    return first == 0 or buffer[first - 1] in (_COMMA, _LINE_END)


def _text(row: bytes) -> str:
    return row.decode(errors="replace").rstrip("\r\n")
