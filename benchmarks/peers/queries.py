"""The four queries: what Tidemill is asked, and what DuckDB makes of their definition.

All read streams of key, value and at. A window of a minute that slides by a second is the rows of
``[until - 60 s, until)`` for every whole second ``until``; windows without rows give nothing, and
those at both ends that are filled in part are windows too. The outputs, as bags of rows:

    filter     key, v, at      rows with a value above 50, and twice that value
    sum        key, v, until   the sum of the values of a key in a window
    join       key, x, y       the values of pairs with one key that are less than a minute apart
    distinct   key, until      the keys that are in a window, each once
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["QUERIES", "Query"]

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Query:
    """A query in two languages.

    Attributes:
        title: What it does.
        streams: The names of the streams it reads.
        columns: The names of the columns of its output.
        tidemill: For Tidemill.
        duckdb: For DuckDB, over views of the whole streams, times as microseconds; a definition
            rather than a quick way.
        expand: Makes of Tidemill's results what the others give.
    """

    title: str
    streams: tuple[str, ...]
    columns: tuple[str, ...]
    tidemill: str
    duckdb: str
    expand: Callable[[pl.DataFrame], pl.DataFrame]


def windows(results: pl.DataFrame) -> pl.DataFrame:
    """One row for each window that ends while a row holds.

    A row holds from a microsecond before the end of the first window that it is the answer of.

    >>> second = 1_000_000
    >>> row = pl.DataFrame({"key": [7], "start": [3 * second - 1], "end": [5 * second - 1]})
    >>> (windows(row)["until"] // second).to_list()
    [3, 4]
    """
    first, after = (pl.col("start") + SECOND) // SECOND, pl.col("end") // SECOND + 1
    spread = results.with_columns(pl.int_ranges(first, after).alias("until"))
    spread = spread.drop("start", "end").explode("until").drop_nulls("until")
    return spread.with_columns(pl.col("until") * SECOND)


SPREAD = """
    (SELECT key, value, unnest(range("at" // 1000000 + 1, "at" // 1000000 + 61)) * 1000000 AS until
     FROM s)
"""  # each row once for each window it is in

QUERIES = {
    "filter": Query(
        "filter and map",
        ("s",),
        ("key", "v", "at"),
        "SELECT key, value * 2 AS v, at FROM s WHERE value > 50",
        'SELECT key, value * 2 AS v, "at" FROM s WHERE value > 50',
        lambda results: results.select("key", "v", pl.col("at").dt.epoch("us")),
    ),
    "sum": Query(
        "grouped SUM, RANGE 60 s SLIDE 1 s",
        ("s",),
        ("key", "v", "until"),
        "SELECT key, SUM(value) AS v FROM s [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY key",
        f"SELECT key, SUM(value) AS v, until FROM {SPREAD} GROUP BY key, until",
        windows,
    ),
    "join": Query(
        "pairs with one key less than 60 s apart",
        ("a", "b"),
        ("key", "x", "y"),
        "SELECT a.key AS key, a.value AS x, b.value AS y "
        "FROM a [RANGE 60 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.key = b.key",
        """SELECT a.key, a.value AS x, b.value AS y FROM a JOIN b
           ON a.key = b.key AND abs(a."at" - b."at") < 60000000""",
        lambda results: results.select("key", "x", "y"),
    ),
    "distinct": Query(
        "DISTINCT keys, RANGE 60 s SLIDE 1 s",
        ("s",),
        ("key", "until"),
        "SELECT DISTINCT key FROM s [RANGE 60 SECONDS SLIDE 1 SECOND]",
        f"SELECT DISTINCT key, until FROM {SPREAD}",
        windows,
    ),
}
