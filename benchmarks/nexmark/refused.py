"""NEXMark's queries that native Structured Streaming cannot be asked, and why.

Each comes with the query that one would like to ask. Spark must refuse it, for that reason; if it
does not, the reason is out of date.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CANNOT", "Cannot"]


@dataclass(frozen=True, slots=True)
class Cannot:
    """A query that Spark refuses.

    Attributes:
        why: In a few words.
        says: A part of what Spark says then.
        text: What one would ask, in Spark's SQL.
    """

    why: str
    says: str
    text: str


_EVERY_BID = "the answer changes with every bid, append mode wants windows that close"
_NO_APPEND = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
_DISTINCT = "no distinct aggregates on streams"
_NO_DISTINCT = "Distinct aggregations are not supported"
_NO_WINDOW = "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING"
_OFFERS = (
    "auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"
)
_DAY = "date_format(date_time, 'yyyy-MM-dd')"

CANNOT = {
    "q4": Cannot(
        _EVERY_BID,
        _NO_APPEND,
        "SELECT category, AVG(final) FROM (SELECT a.id, a.category, MAX(b.price) AS final"
        f" FROM {_OFFERS} GROUP BY a.id, a.category) GROUP BY category",
    ),
    "q6": Cannot(
        "no windows of rows on streams",
        _NO_WINDOW,
        "SELECT seller, AVG(price) OVER (PARTITION BY seller ORDER BY c.date_time"
        " ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"
        " FROM closed c JOIN bid b ON c.id = b.auction AND b.date_time >= c.opened",
    ),
    "q9": Cannot(
        "no ranks on streams",
        _NO_WINDOW,
        "SELECT * FROM (SELECT a.id, b.price, b.bidder, row_number() OVER"
        f" (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS rank FROM {_OFFERS})"
        " WHERE rank = 1",
    ),
    "q15": Cannot(
        _DISTINCT,
        _NO_DISTINCT,
        "SELECT COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM bid"
        " GROUP BY window(date_time, '1 day')",
    ),
    "q16": Cannot(
        _DISTINCT,
        _NO_DISTINCT,
        "SELECT channel, COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM bid"
        " GROUP BY channel, window(date_time, '1 day')",
    ),
    "q17": Cannot(
        _EVERY_BID,
        _NO_APPEND,
        f"SELECT auction, {_DAY}, COUNT(*), MIN(price), MAX(price), AVG(price), SUM(price)"
        f" FROM bid GROUP BY auction, {_DAY}",
    ),
    "q18": Cannot(
        "no windows of rows on streams, and dropDuplicates keeps the first",
        _NO_WINDOW,
        "SELECT * FROM (SELECT *, row_number() OVER"
        " (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rank FROM bid) WHERE rank = 1",
    ),
}
"""What Spark refuses, by name."""
