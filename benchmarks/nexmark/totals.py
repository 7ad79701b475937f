"""Queries that aggregate, or keep some rows of each group."""

from __future__ import annotations

from benchmarks.nexmark.question import Question

__all__ = ["TOTALS"]

_DAY = "strftime(date_time, '%Y-%m-%d')"

_RANKS = {
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}


def _counts(what: str, name: str) -> str:
    """A count of all rows, and one for each rank of prices."""
    ranked = (
        f"COUNT({what}) FILTER (WHERE {condition}) AS {rank}_{name}"
        for rank, condition in _RANKS.items()
    )
    return ", ".join([f"COUNT({what}) AS total_{name}", *ranked])


_ALL_COUNTS = ", ".join(
    [
        _counts("*", "bids"),
        _counts("DISTINCT bidder", "bidders"),
        _counts("DISTINCT auction", "auctions"),
    ]
)


def _by_day(name: str, title: str, keys: str, totals: str) -> Question:
    """Totals of each day."""
    columns = f"{keys}{_DAY} AS day, {totals}"
    return Question(
        name,
        title,
        f"SELECT {columns} FROM bid [RANGE 1 DAY] GROUP BY {keys}{_DAY}",
        f"SELECT {columns} FROM bid WHERE in_range(date_time, 86400) GROUP BY {keys}{_DAY}",
        remark="a window of a day: today's totals are those of the benchmark, yesterday's shrink",
    )


_BEST_OFFERS = """
SELECT a.id, a.category, MAX(b.price) AS final FROM auction{0} a JOIN bid{0} b
  ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires {1}
GROUP BY a.id, a.category
"""

_HOT = """
WITH counts AS (SELECT auction, COUNT(*) AS num FROM bid {0} GROUP BY auction)
SELECT auction, num FROM counts WHERE num = (SELECT MAX(num) FROM counts)
"""

_ALL_OF_BID = "auction, bidder, price, channel, url, date_time, extra"

TOTALS = (
    Question(
        "q4",
        "the mean of the highest offers in each category",
        "SELECT category, AVG(final) AS mean FROM ("
        f"{_BEST_OFFERS.format(' [RANGE 1 MINUTE]', '')}) q GROUP BY category",
        "SELECT category, AVG(final) AS mean FROM ("
        + _BEST_OFFERS.format("", "WHERE in_range(a.date_time, 60) AND in_range(b.date_time, 60)")
        + ") q GROUP BY category",
        remark="both sides have a window of a minute instead of none",
    ),
    Question(
        "q5",
        "the auctions with the most bids in ten seconds, every two seconds",
        _HOT.format("[RANGE 10 SECONDS SLIDE 2 SECONDS]"),
        _HOT.format("WHERE in_slide(date_time, 10, 2)"),
    ),
    Question(
        "q6",
        "the mean price of the last ten sales of each seller",
        """
SELECT seller, AVG(price) AS mean FROM (
  SELECT c.seller, c.id, MAX(b.price) AS price FROM closed c JOIN bid [RANGE 1 MINUTE] b
    ON c.id = b.auction AND b.date_time >= c.opened
  GROUP BY c.seller, c.id) [PARTITION BY seller ROWS 10] s
GROUP BY seller
""",
        """
WITH sale AS (
  SELECT c.seller, c.id, c.date_time, MAX(b.price) AS price FROM closed c JOIN bid b
    ON c.id = b.auction AND b.date_time BETWEEN c.opened AND c.date_time
      AND b.date_time > c.date_time - INTERVAL 1 MINUTE
  WHERE is_past(c.date_time) GROUP BY ALL),
last_ten AS (
  SELECT * FROM sale
  QUALIFY row_number() OVER (PARTITION BY seller ORDER BY date_time DESC, id DESC) <= 10)
SELECT seller, AVG(price) AS mean FROM last_ten GROUP BY seller
""",
        remark="a sale is known when the auction closes, from a stream of closings",
    ),
    Question(
        "q7",
        "the highest bid of every ten seconds",
        """
SELECT auction, bidder, price, date_time, extra FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS]
WHERE price = (SELECT MAX(price) FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS])
""",
        """
WITH b AS (SELECT * FROM bid WHERE in_slide(date_time, 10, 10))
SELECT auction, bidder, price, date_time, extra FROM b WHERE price = (SELECT MAX(price) FROM b)
""",
        remark="a bid at the very end of ten seconds belongs to the next ones only",
    ),
    Question(
        "q11",
        "bids of each bidder without a pause of more than ten seconds",
        "SELECT bidder, COUNT(*) AS bids FROM bid [PARTITION BY bidder SESSION 10 SECONDS]"
        " GROUP BY bidder",
        """
WITH paused AS (
  SELECT bidder, date_time, date_time - lag(date_time) OVER earlier > INTERVAL 10 SECOND AS is_first
  FROM bid WHERE is_past(date_time) WINDOW earlier AS (PARTITION BY bidder ORDER BY date_time)),
numbered AS (
  SELECT bidder, date_time, COUNT(*) FILTER (WHERE is_first)
    OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM paused)
SELECT bidder, COUNT(*) AS bids FROM numbered GROUP BY bidder, session
HAVING in_range(MAX(date_time), 10)
""",
        remark="the count is there from the first bid on, not only when the session is over",
    ),
    _by_day("q15", "bids, bidders and auctions of a day, by price", "", _ALL_COUNTS),
    _by_day(
        "q16",
        "the same for each channel",
        "channel, ",
        f"MAX(strftime(date_time, '%H:%M')) AS minute, {_ALL_COUNTS}",
    ),
    _by_day(
        "q17",
        "bids and prices of each auction and day",
        "auction, ",
        f"{_counts('*', 'bids')}, MIN(price) AS min_price, MAX(price) AS max_price,"
        " AVG(price) AS avg_price, SUM(price) AS sum_price",
    ),
    Question(
        "q18",
        "the last bid of each bidder on each auction",
        f"SELECT {_ALL_OF_BID} FROM bid [PARTITION BY bidder, auction ROWS 1]",
        f"""
SELECT {_ALL_OF_BID} FROM bid WHERE is_past(date_time)
QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1
""",
        remark="remembers a row for each pair for ever, as the benchmark does",
    ),
    Question(
        "q19",
        "the ten highest bids of each auction",
        missing="top-n: by a self-join only, whose cost is the square of the bids on an auction",
    ),
)
