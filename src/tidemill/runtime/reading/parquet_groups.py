"""Row groups of a Parquet file that need not be read: no row of them is wanted, as the file says.

What a group says of a column bounds its values; it need not be exact:

    least, greatest  no value is outside; texts may be cut. NaN is never counted in
    NULL             how many there are; if that is missing, there may be some

What is missing or cannot be understood bounds nothing. The types of a file for which there are
bounds are those whose values are the declared ones as they are: signed integers, floats, dates,
times without a zone, texts, decimals of the declared type.

Of a group that is not read there are its rows all the same, each with values that no row of it is
wanted with. They are counted, timed and refused like all others, and end at the first filter.

Law: no row of a group that is left out is wanted, and none of those that stand for them is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from tidemill.algebra.expr import used_columns
from tidemill.algebra.values import EXACT, order_key
from tidemill.model.types import Kind
from tidemill.physical.ranges import Range, parts_of
from tidemill.runtime.reading.parquet_columns import DAY, UNITS, is_in_calendar, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyarrow import parquet

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Field, Schema
    from tidemill.model.types import DataType, Value
    from tidemill.physical.ranges import Parts

__all__ = ["UNREAD", "Raw", "Run", "Wanted", "runs_of"]

UNREAD: Final = "@unread"
"""The column that says which rows only stand for others that were not read."""

_WORTH_IT = 1 << 12
"""Groups of fewer rows are read: to leave them out saves nothing."""

_AT_ONCE = 1 << 6
"""To look at so many conditions takes less time than to read a group that is worth it."""

_MOST = 1 << 10
"""If more conditions are given, all rows are read: to look at them would take too long."""

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())
_TEXTS = (pa.string(), pa.large_string())
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 — times of the language have no zone


@dataclass(frozen=True)
class Wanted:
    """Which rows are wanted.

    Attributes:
        conditions: What rows that are wanted meet; each is a conjunction, one of which is true.
        timed: The columns that are needed of all rows, wanted or not.
    """

    conditions: frozenset[tuple[Expr, ...]]
    timed: frozenset[str]

    @cached_property
    def parts(self) -> tuple[Parts, ...]:
        """The conditions as they are looked at."""
        return tuple(map(parts_of, self.conditions))


@dataclass(frozen=True, slots=True)
class Run:
    """Row groups that follow one another and are read together, or one that is not read.

    Attributes:
        groups: Their numbers.
        rows: How many rows they have.
        instead: If it is not read, a value for each column with which no row is wanted.
    """

    groups: tuple[int, ...]
    rows: int
    instead: Mapping[str, Value] | None = None


def runs_of(
    content: parquet.ParquetFile, schema: Schema, names: Sequence[str], wanted: Wanted
) -> list[Run]:
    """The groups of a file as runs; none if all are read.

    Args:
        content: The file.
        schema: What was declared.
        names: What the columns of the schema are called in the file.
        wanted: Which rows are wanted.
    """
    if len(wanted.conditions) > _MOST:
        return []
    groups = _Groups(content, schema, names, wanted)
    runs: list[Run] = []
    for number in range(content.num_row_groups):
        run = groups.run(number)
        if runs and run.instead is None and runs[-1].instead is None:
            last = runs.pop()
            run = Run(last.groups + run.groups, last.rows + run.rows)
        runs.append(run)
    return runs if any(run.instead is not None for run in runs) else []


class _Groups:
    """The groups of a file, and what they say of the columns that conditions compare.

    Args:
        content: The file.
        schema: What was declared.
        names: What the columns of the schema are called in the file.
        wanted: Which rows are wanted.
    """

    def __init__(
        self, content: parquet.ParquetFile, schema: Schema, names: Sequence[str], wanted: Wanted
    ) -> None:
        self._content = content
        self._schema = schema
        self._parts = wanted.parts
        conditions = [one for some in wanted.conditions for one in some]
        compared = frozenset(name for one in conditions for name in used_columns(one))
        places, types = places_of(content), content.schema_arrow
        self._readers: list[tuple[Field, int, _Bound]] = []
        for field, name in zip(schema, names, strict=True):
            if field.name in compared and name in places:
                bound = _bound_of(field.type, types.field(name).type)
                if bound is not None:
                    self._readers.append((field, places[name], bound))

    def run(self, number: int) -> Run:
        """A group as a run of its own."""
        rows = self._content.metadata.row_group(number).num_rows
        if not self._readers or rows < _WORTH_IT * max(1, len(self._parts) // _AT_ONCE):
            return Run((number,), rows)
        ranges = {
            field.name: self._range(number, rows, place, bound)
            for field, place, bound in self._readers
        }
        if any(some.can_hold(ranges) for some in self._parts):
            return Run((number,), rows)
        instead = {
            field.name: _inside(ranges[field.name], field.type) if field.name in ranges else None
            for field in self._schema
        }
        return Run((number,), rows, instead)

    def _range(self, number: int, rows: int, place: int, bound: _Bound) -> Range:
        """What a group says of a column."""
        is_full = self._content.schema.column(place).max_definition_level == 0
        found = self._content.metadata.row_group(number).column(place).statistics
        nulls = None
        if is_full:
            nulls = 0
        elif found is not None and found.has_null_count:
            nulls = found.null_count
        least, greatest = _bounds(found, bound)
        return Range(
            least,
            greatest,
            may_be_value=nulls is None or nulls < rows,
            may_be_nan=bound is _float and (nulls is None or nulls < rows),
            may_be_null=nulls is None or nulls > 0,
        )


Raw: TypeAlias = int | float | bytes
"""A bound as a file has it."""

_Bound: TypeAlias = "Callable[[Raw], Value]"
"""The value that a file has for a bound; ``None`` if it is not understood."""


def _bounds(said: parquet.Statistics | None, bound: _Bound) -> tuple[Value, Value]:
    """The least and the greatest value that are said of a column, as far as they are known."""
    if said is None or not said.has_min_max:
        return None, None
    least, greatest = bound(said.min_raw), bound(said.max_raw)
    if least is not None and greatest is not None and order_key(least) > order_key(greatest):
        return None, None  # it is wrong
    return least, greatest


def _bound_of(declared: DataType, found: pa.DataType) -> _Bound | None:
    """How bounds of a column are understood; ``None`` if they are not.

    Args:
        declared: The type of the column.
        found: Its type in the file.
    """
    match declared.kind:
        case Kind.INTEGER | Kind.BIGINT if found in _SIGNED:
            return _integer
        case Kind.DOUBLE if found in _FLOATS:
            return _float
        case Kind.VARCHAR if found in _TEXTS:
            return _text
        case Kind.DATE if pa.types.is_date32(found):
            return _date
        case Kind.TIMESTAMP if found in UNITS and not pa.types.is_date32(found):
            return partial(_time, UNITS[found])
        case Kind.DECIMAL if found == pa.decimal128(declared.precision, declared.scale):
            return partial(_decimal, declared.scale)
        case _:
            return None


def _integer(raw: Raw) -> Value:
    return int(raw)


def _float(raw: Raw) -> Value:
    return None if math.isnan(float(raw)) else float(raw)


def _text(raw: Raw) -> Value:
    assert isinstance(raw, bytes), "texts are bytes"
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None  # it may have been cut in a character


def _decimal(scale: int, raw: Raw) -> Value:
    count = int.from_bytes(raw, signed=True) if isinstance(raw, bytes) else int(raw)
    return EXACT.scaleb(Decimal(count), -scale)


def _date(raw: Raw) -> Value:
    days = int(raw)
    return _EPOCH.date() + timedelta(days) if is_in_calendar(days * DAY) else None


def _time(unit: int, raw: Raw) -> Value:
    time = unit * int(raw)
    return _EPOCH + timedelta(microseconds=time) if is_in_calendar(time) else None


def _inside(range_: Range, type_: DataType) -> Value:
    """A value that a column may have."""
    if not range_.may_be_value:
        return None
    for known in (range_.least, range_.greatest):
        if known is not None:
            return known
    # Nothing was compared with it: it was only asked whether it is NULL.
    return _SOME[type_.kind]


_SOME: Final[Mapping[Kind, Value]] = {
    Kind.INTEGER: 0,
    Kind.BIGINT: 0,
    Kind.DOUBLE: 0.0,
    Kind.DECIMAL: Decimal(0),
    Kind.VARCHAR: "",
    Kind.DATE: _EPOCH.date(),
    Kind.TIMESTAMP: _EPOCH,
}
