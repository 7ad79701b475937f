"""The reference queries of the latency question, each with the same for DuckDB.

A stream is numbered events, evenly spaced; key and value are functions of the number. Values are
multiples of a quarter, so that sums are exact. A join has two streams, which take turns. Answers
have the times of events where equal rows could follow each other, which results join into one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import duckdb
import polars as pl

__all__ = ["QUERIES", "SECOND", "Asked", "Evenly", "duckdb_answer", "rows_of"]

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A query.

    Attributes:
        name: What it is.
        keys: How many keys its events have.
        streams: What it reads.
        text: For Tidemill, given the seconds of its window.
        duckdb: For DuckDB, given the same: the final answer over all events.
        has_window: Whether it remembers anything.
    """

    name: str
    keys: int
    streams: tuple[str, ...]
    text: Callable[[int], str]
    duckdb: Callable[[int], str]
    has_window: bool = True


def _sums(window: int) -> str:
    return f"""
        WITH pane AS (SELECT key, "at" // {SECOND} AS p, SUM(value) AS v, COUNT(*) AS n
                      FROM a GROUP BY ALL),
             moved AS (SELECT key, p AS t, v, n FROM pane
                       UNION ALL SELECT key, p + {window}, -v, -n FROM pane),
             net AS (SELECT key, t, SUM(v) AS v, SUM(n)::BIGINT AS n FROM moved GROUP BY ALL),
             summed AS (SELECT key, t, SUM(v) OVER w AS v, SUM(n) OVER w AS n,
                               LEAD(t) OVER w AS next
                        FROM net WINDOW w AS (PARTITION BY key ORDER BY t)),
             whole AS (SELECT *, v IS DISTINCT FROM LAG(v) OVER w OR LAG(n) OVER w = 0 AS is_new
                       FROM summed WINDOW w AS (PARTITION BY key ORDER BY t)),
             piece AS (SELECT *, SUM(is_new::INTEGER) OVER (PARTITION BY key ORDER BY t) AS piece
                       FROM whole WHERE n > 0)
        SELECT key, v, (MIN(t) + 1) * {SECOND} - 1 AS "start",
               (MAX(next) + 1) * {SECOND} - 1 AS "end"
        FROM piece GROUP BY key, v, piece
        """


QUERIES = (
    Asked(
        "filter and map",
        10_000,
        ("a",),
        lambda _: "SELECT key, value * 2 AS v, at FROM a WHERE value > 50",
        lambda _: (
            """
            SELECT key, value * 2 AS v, "at", "at" AS "start", "at" + 1 AS "end"
            FROM a WHERE value > 50
            """
        ),
        has_window=False,
    ),
    Asked(
        "grouped SUM, SLIDE 1 s",
        10_000,
        ("a",),
        lambda window: (
            "SELECT key, SUM(value) AS v "
            f"FROM a [RANGE {window} SECONDS SLIDE 1 SECOND] GROUP BY key"
        ),
        _sums,
    ),
    Asked(
        "sliding equi-join",
        10_000_000,
        ("a", "b"),
        lambda window: (
            f"SELECT a.key AS key, a.at AS x, b.at AS y FROM a [RANGE {window} SECONDS] "
            f"JOIN b [RANGE {window} SECONDS] ON a.key = b.key"
        ),
        lambda window: (
            f"""
            SELECT a.key, a."at" AS x, b."at" AS y, greatest(a."at", b."at") AS "start",
                   least(a."at", b."at") + {window * SECOND} AS "end"
            FROM a JOIN b ON a.key = b.key AND abs(a."at" - b."at") < {window * SECOND}
            """
        ),
    ),
    Asked(
        "DISTINCT",
        100_000,
        ("a",),
        lambda window: f"SELECT DISTINCT key FROM a [RANGE {window} SECONDS]",
        lambda window: (
            f"""
            WITH known AS (SELECT key, "at", LAG("at", 1, "at") OVER w AS before
                           FROM a WINDOW w AS (PARTITION BY key ORDER BY "at")),
                 piece AS (SELECT *, SUM(("at" > before + {window * SECOND})::INTEGER)
                                     OVER (PARTITION BY key ORDER BY "at") AS piece FROM known)
            SELECT key, MIN("at") AS "start", MAX("at") + {window * SECOND} AS "end"
            FROM piece GROUP BY key, piece
            """
        ),
    ),
)


class Evenly(Sequence[float]):
    """When events arrive that are evenly spaced, in seconds.

    >>> list(Evenly(first=2, count=3, rate=2))
    [1.0, 1.5, 2.0]
    """

    def __init__(self, first: int, count: int, rate: float) -> None:
        self._first, self._count, self._rate = first, count, rate

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        numbers = range(self._first, self._first + self._count)
        if isinstance(index, slice):
            return [number / self._rate for number in numbers[index]]
        return numbers[index] / self._rate


def rows_of(
    asked: Asked, first: int, after: int, rate: float, seed: int
) -> dict[str, pl.DataFrame]:
    """The events from a number up to another, on the streams that they come on."""
    found = {}
    for place, name in enumerate(asked.streams):
        step = len(asked.streams)
        begin = first + (place - first) % step
        numbers = pl.int_range(begin, max(after, begin), step, eager=True)
        found[name] = pl.DataFrame(
            {
                "key": (numbers.hash(seed=seed) % asked.keys).cast(pl.Int64),
                "value": (numbers.hash(seed=seed + 1) % 400).cast(pl.Float64) / 4,
                "at": (numbers * (SECOND / rate)).cast(pl.Int64),
            }
        )
    return found


def duckdb_answer(asked: Asked, window: int, streams: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """The final answer of DuckDB."""
    connection = duckdb.connect()
    for name, frame in streams.items():
        connection.register(name, frame.to_arrow())
    found = pl.from_arrow(connection.sql(asked.duckdb(window)).to_arrow_table())
    assert isinstance(found, pl.DataFrame), "a table is a frame"
    return found
