"""Which columns of a Parquet file need not be read, although the stream declares them.

A column that no query reads may still matter, since a value that it must not have makes its row
malformed: rows that follow would have other ids, and be counted otherwise. So a column is left out
only if what the file says of itself proves that each of its values is one of the declared type:

    type            numbers and BOOLEAN: the declared type holds all values of the file's type
    least, greatest dates and times: the statistics of each row group are in the calendar
    NULL            declared NOT NULL: the file says that there are none

A text is any bytes whatever a file says. So texts are read and looked at, and not made into a
column: that takes a fraction of the time. All other columns are read like those that are needed.

Law: a file gives the same rows, with the same malformed ones, whatever columns are needed of it.

Damage in a column that is left out is not found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.model.types import Kind

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pyarrow import parquet

    from tidemill.model.schema import Field, Schema
    from tidemill.model.types import DataType

__all__ = ["DAY", "UNITS", "Chosen", "choose", "is_in_calendar", "places_of"]

DAY = 86_400_000_000
_FIRST, _PAST = -719_162 * DAY, 2_932_897 * DAY
"""The years 1 to 9999 in microseconds from 1970."""

_SMALLER_INTEGERS = {
    Kind.INTEGER: (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()),
    Kind.BIGINT: (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32()),
    ),
}
_DOUBLES = (pa.float32(), pa.float64(), *_SMALLER_INTEGERS[Kind.BIGINT])

UNITS = {pa.date32(): DAY, pa.timestamp("ms"): 1_000, pa.timestamp("us"): 1}
"""How many microseconds a count is."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is done with the columns of a file.

    Attributes:
        read: The declared columns that are read, in their order.
        texts: The names in the file of those that are looked at only.
    """

    read: tuple[Field, ...]
    texts: tuple[str, ...]


def choose(
    content: parquet.ParquetFile, schema: Schema, names: list[str], needed: Container[str]
) -> Chosen:
    """What is to be done with the columns of a file.

    Args:
        content: The file.
        schema: What was declared.
        names: What the columns of the schema are called in the file.
        needed: The columns that are needed.
    """
    file = _File(content)
    read: list[Field] = []
    texts: list[str] = []
    for field, name in zip(schema, names, strict=True):
        if field.name in needed:
            read.append(field)
            continue
        is_full = not field.nullable and file.may_be_null(name)
        if is_full or not _holds(field.type, file, name):
            if not is_full and _is_text(field.type, file.type_of(name)):
                texts.append(name)
            else:
                read.append(field)
    return Chosen(tuple(read), tuple(texts))


def places_of(content: parquet.ParquetFile) -> dict[str, int]:
    """Which column of a file stands where, of those that have no parts."""
    schema = content.schema
    paths = [schema.column(place).path for place in range(len(schema))]
    times = Counter(paths)  # a part of a column may be called like another column
    return {path: place for place, path in enumerate(paths) if times[path] == 1}


def is_in_calendar(microseconds: int) -> bool:
    """Whether a time from 1970 on, or before, is in the years 1 to 9999."""
    return _FIRST <= microseconds < _PAST


class _File:
    """What a file says of its columns.

    Args:
        content: The file.
    """

    def __init__(self, content: parquet.ParquetFile) -> None:
        self._content = content
        self._types = content.schema_arrow

    def type_of(self, name: str) -> pa.DataType:
        """The type of a column."""
        return self._types.field(name).type

    def may_be_null(self, name: str) -> bool:
        """Whether some value may be NULL."""
        place = self._places.get(name)
        if place is None:
            return True
        if self._content.schema.column(place).max_definition_level == 0:
            return False
        return not all(
            one is not None and one.has_null_count and one.null_count == 0
            for one in self._statistics(place)
        )

    def range_of(self, name: str) -> Iterable[int] | None:
        """The least and the greatest values, if they are known to be so; they are counts."""
        place = self._places.get(name)
        if place is None:
            return None
        found: list[int] = []
        for number, one in enumerate(self._statistics(place)):
            if one is None:
                return None
            if one.has_min_max:
                found += (one.min_raw, one.max_raw)
            elif not one.has_null_count or one.null_count != self._rows_of(number):
                return None
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        """Which column stands where, of those that have no parts."""
        return places_of(self._content)

    def _statistics(self, place: int) -> Iterator[parquet.Statistics | None]:
        for number in range(self._content.num_row_groups):
            yield self._content.metadata.row_group(number).column(place).statistics

    def _rows_of(self, group: int) -> int:
        return int(self._content.metadata.row_group(group).num_rows)


def _holds(type_: DataType, file: _File, name: str) -> bool:
    """Whether a declared type holds every value of a column."""
    found = file.type_of(name)
    if pa.types.is_null(found):
        return True
    match type_.kind:
        case Kind.BOOLEAN:
            return bool(pa.types.is_boolean(found))
        case Kind.INTEGER | Kind.BIGINT:
            return found in _SMALLER_INTEGERS[type_.kind]
        case Kind.DOUBLE:
            return found in _DOUBLES
        case Kind.DECIMAL:
            return bool(found == pa.decimal128(type_.precision, type_.scale))
        case Kind.DATE:
            return bool(pa.types.is_date32(found)) and _is_in_calendar(file, name)
        case Kind.TIMESTAMP:
            return found in UNITS and _is_in_calendar(file, name)
        case _:
            return False


def _is_in_calendar(file: _File, name: str) -> bool:
    counts, unit = file.range_of(name), UNITS[file.type_of(name)]
    return counts is not None and all(is_in_calendar(count * unit) for count in counts)


def _is_text(type_: DataType, found: pa.DataType) -> bool:
    is_text = pa.types.is_string(found) or pa.types.is_large_string(found)
    return type_.kind is Kind.VARCHAR and bool(is_text)
