"""Parquet files as they come: columns of several types, NULLs, texts that are none, row groups."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DECLARED", "NAMES", "Written", "usual_type", "written_files"]

DECLARED: Final = {
    "at": "BIGINT",
    "k": "BIGINT NOT NULL",
    "price": "DOUBLE",
    "name": "VARCHAR",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "small": "INTEGER",
    "exact": "DECIMAL(6, 2)",
    "flag": "BOOLEAN",
    "word": "VARCHAR NOT NULL",
}
NAMES: Final = tuple(DECLARED)

_SOME = 8
_FEW = st.integers(0, 3)
_FAR = 4_000_000
"""A day after the year 9999."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file, and how it is written.

    Attributes:
        table: What is in it.
        group: How many rows there are in a group.
        statistics: Whether groups have statistics.
        keeps_schema: Whether the types of Arrow are in it.
    """

    table: pa.Table
    group: int
    statistics: bool
    keeps_schema: bool

    def write(self, path: Path) -> None:
        """Write it."""
        parquet.write_table(
            self.table,
            path,
            row_group_size=self.group,
            write_statistics=self.statistics,
            store_schema=self.keeps_schema,
        )


_TEXTS = st.sampled_from(["a", "b", "\u00e9"])
_BYTES = st.sampled_from([b"a", b"\xff"])
_DAYS = st.sampled_from([0, 1, 20_000])
_TYPES: Final[dict[str, list[tuple[pa.DataType, st.SearchStrategy[Any]]]]] = {
    "at": [(pa.int64(), st.integers(-1, 12)), (pa.int32(), st.integers(0, 12))],
    "k": [
        (pa.int64(), _FEW),
        (pa.uint8(), _FEW),
        (pa.uint64(), st.sampled_from([1, 2**64 - 1])),
        (pa.float64(), st.sampled_from([1.0, 1.5])),
        (pa.string(), st.sampled_from(["1", "x"])),
    ],
    "price": [
        (pa.float64(), st.sampled_from([1.0, 5.5])),
        (pa.float32(), st.sampled_from([1.0, 5.5])),
        (pa.int64(), _FEW),
        (pa.bool_(), st.booleans()),
    ],
    "name": [
        (pa.string(), _TEXTS),
        (pa.large_string(), _TEXTS),
        (pa.dictionary(pa.int32(), pa.string()), _TEXTS),
        (pa.binary(), _BYTES),
    ],
    "day": [
        (pa.date32(), _DAYS),
        (pa.date32(), st.sampled_from([0, _FAR])),
        (pa.timestamp("us"), _DAYS.map(lambda day: day * 43_200_000_000)),
    ],
    "moment": [
        (pa.timestamp("us"), _DAYS),
        (pa.timestamp("us"), st.sampled_from([0, _FAR * 86_400_000_000])),
        (pa.timestamp("ms"), st.sampled_from([0, _FAR * 86_400_000])),
        (pa.timestamp("ns"), st.sampled_from([0, 1_000, 1])),
        (pa.timestamp("us", "UTC"), _DAYS),
        (pa.date32(), st.sampled_from([0, _FAR])),
    ],
    "small": [
        (pa.int32(), _FEW),
        (pa.int16(), _FEW),
        (pa.int64(), st.sampled_from([1, 2**40])),
        (pa.uint32(), st.sampled_from([1, 2**32 - 1])),
    ],
    "exact": [
        (pa.decimal128(6, 2), st.sampled_from([Decimal("1.25"), Decimal("-3.00")])),
        (pa.decimal128(8, 3), st.sampled_from([Decimal("1.250"), Decimal("1.255")])),
        (pa.decimal128(6, 1), st.just(Decimal("99999.5"))),
        (pa.int64(), _FEW),
    ],
    "flag": [(pa.bool_(), st.booleans())],
    "word": [(pa.string(), _TEXTS), (pa.large_string(), _TEXTS)],
}
"""The types that a column has in files, the usual one first."""


def usual_type(name: str) -> pa.DataType:
    """The type that a column has most often in files."""
    return _TYPES[name][0][0]


@st.composite
def _columns(draw: st.DrawFn, name: str, rows: int, *, is_usual: bool) -> pa.Array:
    """A column of a file."""
    kind, values = _TYPES[name][0] if is_usual else draw(st.sampled_from(_TYPES[name]))
    if not is_usual and name in ("name", "word") and draw(st.integers(0, 1)) == 0:
        texts = draw(st.lists(st.sampled_from([b"a", b"\xff\xfe"]), min_size=rows, max_size=rows))
        return pa.array(texts, pa.binary()).cast(pa.string(), safe=False)  # not all is UTF-8
    if not is_usual and draw(st.integers(0, 4)) == 0:
        return pa.nulls(rows)
    is_full = draw(st.integers(0, 7)) > 0 if "NOT NULL" in DECLARED[name] else draw(st.booleans())
    cells = values if is_full else st.none() | values
    return pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)), kind)


@st.composite
def written_files(draw: st.DrawFn, most: int = _SOME, names: tuple[str, ...] = NAMES) -> Written:
    """A file with some of the declared columns, and others, in some order."""
    rows = draw(st.integers(0, most))
    odd = draw(st.sets(st.sampled_from(names), max_size=2))
    found = {name: draw(_columns(name, rows, is_usual=name not in odd)) for name in names}
    if draw(st.booleans()):
        found["price.there"] = pa.array([0] * rows, pa.int64())
    if draw(st.booleans()):
        found["nested"] = pa.array([{"k": None, "at": [1]}] * rows, _NESTED)
    order = draw(st.sampled_from([1, -1]))
    table = pa.table({name: found[name] for name in list(found)[::order]})
    return Written(table, draw(st.integers(1, 5)), draw(st.booleans()), draw(st.booleans()))


_NESTED = pa.struct({"k": pa.int64(), "at": pa.list_(pa.int64())})
