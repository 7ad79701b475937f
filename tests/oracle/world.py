"""The streams, relations, views and functions that generated and literal queries are about.

Values are few, so that rows meet, and so are instants, so that elements tie. DOUBLEs and DECIMALs
are multiples of a quarter: their sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from oracle.contents import Element, Inputs, Row, Value

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

__all__ = ["DEFINITIONS", "LAST", "SOURCES", "Source", "inputs"]

DEFINITIONS = """
CREATE STREAM a (
    at BIGINT, k BIGINT, i INTEGER, x DOUBLE, s VARCHAR, f BOOLEAN, m DECIMAL(9,2), d DATE,
    z TIMESTAMP
) SOURCE csv(path => 'a') ORDERED BY at;
CREATE STREAM b (
    at BIGINT, k BIGINT NOT NULL, i INTEGER NOT NULL, s VARCHAR NOT NULL, x DOUBLE, m DECIMAL(9,2)
) SOURCE csv(path => 'b') ORDERED BY at;
CREATE STREAM c (at BIGINT, k INTEGER, y DOUBLE, s VARCHAR, f BOOLEAN NOT NULL, d DATE, z TIMESTAMP)
  SOURCE csv(path => 'c') ORDERED BY at;
CREATE RELATION r (k BIGINT, s VARCHAR, m DECIMAL(9,2), f BOOLEAN) SOURCE csv(path => 'r');
CREATE RELATION p (k BIGINT, x DOUBLE, since BIGINT, until BIGINT)
  SOURCE csv(path => 'p') VALID FROM since TO until;
CREATE STREAM v AS SELECT k, i, x, s FROM a WHERE x > 0 OR k IS NULL;
CREATE STREAM w AS SELECT k, COUNT(*) AS i, SUM(m) AS m, MAX(x) AS x FROM b [RANGE 3] GROUP BY k;
CREATE FUNCTION twice(n BIGINT) AS n * 2 + 1;
CREATE FUNCTION tagged(t VARCHAR, q DOUBLE) AS CASE WHEN q > 0 THEN t || '+' ELSE t END;
"""

LAST = 8
"""The last instant with elements."""

_VALUES: dict[str, tuple[Value, ...]] = {
    "BIGINT": (1, 0, None, 2, 1),
    "INTEGER": (1, 0, None, 3, -2),
    "DOUBLE": (1.0, 0.0, None, -1.5, 0.25, 2.5),
    "VARCHAR": ("a", "", None, "ab", "B", "a%", "b_a", "1", " é"),
    "BOOLEAN": (True, False, None),
    "DECIMAL": tuple(
        None if text is None else Decimal(text) for text in ("0.50", "0.00", None, "-1.25", "2.00")
    ),
    "DATE": (date(2020, 2, 28), date(2020, 2, 29), None, date(2019, 12, 30), date(2021, 1, 3)),
    "TIMESTAMP": (
        datetime(2020, 2, 29, 12, 30, 15, 250_000),  # noqa: DTZ001 — without a zone, as TIMESTAMP
        None,
        datetime(2020, 1, 5, 23, 59, 59, 999_999),  # noqa: DTZ001
        datetime(2021, 1, 3),  # noqa: DTZ001
    ),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A stream, relation or view: the types of its columns, and which of them are NOT NULL."""

    name: str
    columns: dict[str, str]
    required: frozenset[str] = frozenset()
    windows: bool = True


_A = {
    "at": "BIGINT",
    "k": "BIGINT",
    "i": "INTEGER",
    "x": "DOUBLE",
    "s": "VARCHAR",
    "f": "BOOLEAN",
    "m": "DECIMAL",
    "d": "DATE",
    "z": "TIMESTAMP",
}
SOURCES = {
    source.name: source
    for source in (
        Source("a", _A),
        Source("b", {n: _A[n] for n in ("at", "k", "i", "s", "x", "m")}, frozenset("kis")),
        Source(
            "c",
            {"at": "BIGINT", "k": "INTEGER", "y": "DOUBLE", **{n: _A[n] for n in "sfdz"}},
            frozenset("f"),
        ),
        Source("r", {n: _A[n] for n in "ksmf"}, windows=False),
        Source(
            "p",
            {"k": "BIGINT", "x": "DOUBLE", "since": "BIGINT", "until": "BIGINT"},
            windows=False,
        ),
        Source("v", {n: _A[n] for n in "kixs"}),
        Source("w", {"k": "BIGINT", "i": "BIGINT", "m": "DECIMAL", "x": "DOUBLE"}),
    )
}


def _pool(source: Source, seed: int) -> list[Row]:
    """A few of all possible rows; one draw a row is much faster than one a value."""
    random = Random(seed)  # noqa: S311 — the same rows every time
    columns = [
        [v for v in _VALUES[type_] if v is not None or name not in source.required]
        for name, type_ in source.columns.items()
        if name != "at"
    ]
    simplest = tuple(values[0] for values in columns)
    return [simplest, *(tuple(random.choice(values) for values in columns) for _ in range(23))]


def _moments(name: str, seed: int) -> list[tuple[int, Row]]:
    return list(product(range(LAST + 1), _pool(SOURCES[name], seed)))


def _periods() -> list[Row]:
    keys: tuple[Value, ...] = (1, 0, None, 2)
    periods: tuple[tuple[Value, Value], ...] = (
        *((0, 3), (2, 5), (4, None), (None, 6)),
        *((3, 9), (None, None), (7, 8)),
    )
    return [(k, x, *period) for k, x, period in product(keys, (1.0, None, 2.5), periods)]


_STREAMS = {
    name: st.lists(st.sampled_from(_moments(name, seed)), min_size=3, max_size=size)
    for name, seed, size in (("a", 1, 8), ("b", 2, 7), ("c", 3, 6))
}
_RELATIONS = {
    "r": st.lists(st.sampled_from(_pool(SOURCES["r"], 4)), min_size=1, max_size=5),
    "p": st.lists(st.sampled_from(_periods()), min_size=1, max_size=4),
}


_EMPTY = st.sampled_from((*[""] * 10, *_STREAMS, *_RELATIONS))


@st.composite
def inputs(draw: DrawFn) -> Inputs:
    """Contents for everything: duplicates, ties, NULLs, and nothing at all in one of them."""
    empty = draw(_EMPTY)
    streams = {
        name: [Element(time, number, (time, *row)) for number, (time, row) in enumerate(draw(rows))]
        for name, rows in _STREAMS.items()
        if name != empty
    }
    relations = {name: draw(rows) for name, rows in _RELATIONS.items() if name != empty}
    return Inputs(streams, relations)
