"""Queries that look at one row at a time."""

from __future__ import annotations

from benchmarks.nexmark.question import Question

__all__ = ["ROWS"]

_DAYTIME = """CASE
    WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'day'
    WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'night'
    ELSE 'other' END"""

_CHANNEL_ID = "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"

_CHANNEL = f"""CASE lower(channel)
    WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE {_CHANNEL_ID} END"""

_HAS_CHANNEL = (
    f"({_CHANNEL_ID} <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu'))"
)

_PARTS = ", ".join(f"split_part(url, '/', {part + 3}) AS dir{part}" for part in (1, 2, 3))


def _of_bids(
    name: str, title: str, columns: str, where: str = "TRUE", remark: str = ""
) -> Question:
    """A query of bids whose text is the same for both."""
    return Question(
        name,
        title,
        f"SELECT {columns} FROM bid WHERE {where}",
        f"SELECT {columns} FROM bid WHERE {where} AND is_now(date_time)",
        stateless=True,
        remark=remark,
    )


ROWS = (
    _of_bids("q0", "all bids as they are", "auction, bidder, price, date_time, extra"),
    _of_bids(
        "q1",
        "prices in another currency",
        "auction, bidder, 0.908 * price AS price, date_time, extra",
    ),
    _of_bids("q2", "bids on some auctions", "auction, price", "auction % 123 = 0"),
    Question(
        "q10",
        "bids as files, by day and minute",
        missing="a sink that writes a directory for each value of some columns",
    ),
    Question(
        "q12",
        "bids of each bidder in ten seconds of the clock on the wall",
        missing="processing time: the answer is a function of the input alone",
    ),
    Question(
        "q13",
        "bids with a value that is looked up",
        """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side s ON b.auction % 10000 = s.key
""",
        """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side s ON b.auction % 10000 = s.key WHERE is_now(b.date_time)
""",
        stateless=True,
        remark="looks up in a relation that does not change, not in what it is when a row is read",
    ),
    _of_bids(
        "q14",
        "calculations, and how often a letter occurs",
        f"auction, bidder, 0.908 * price AS price, {_DAYTIME} AS time_of_day, date_time, extra,"
        " length(extra) - length(replace(extra, 'c', '')) AS c_count",
        "0.908 * price > 1000000 AND 0.908 * price < 50000000",
        "counts letters by an expression; the benchmark does so by a function in Java",
    ),
    _of_bids(
        "q21",
        "the number of a channel, from its name or from the address",
        f"auction, bidder, price, channel, {_CHANNEL} AS channel_id",
        _HAS_CHANNEL,
        "regexp_extract gives an empty text where the benchmark's gives NULL",
    ),
    _of_bids("q22", "parts of the address", f"auction, bidder, price, channel, {_PARTS}"),
)
