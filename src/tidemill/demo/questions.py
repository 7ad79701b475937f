"""The questions of the demonstration, each as a continuous query and as SQL about one instant.

The SQL is what DuckDB is asked about the tables of all events: ``$at`` is the instant, and
``$step`` the last instant at which a window that slides by ten seconds has moved, both in
microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUESTIONS", "VIEWS", "Question", "script"]

VIEWS = """\
-- What an auction sold for: the highest bid up to the instant at which it closed.
CREATE STREAM sale AS
  SELECT c.seller, c.id, MAX(b.price) AS price
  FROM closed c JOIN bid [RANGE 1 MINUTE] b ON c.id = b.auction
  GROUP BY c.seller, c.id;
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A continuous query.

    Attributes:
        name: What it is called.
        says: What it asks, in a sentence.
        query: The query.
        at_an_instant: The same question about one instant, as SQL about tables.
    """

    name: str
    says: str
    query: str
    at_an_instant: str


QUESTIONS = (
    Question(
        "high_bids",
        "A filter: bids of half a million dollars and more.",
        "SELECT auction, bidder, price FROM bid WHERE price >= 50000000",
        """
SELECT auction, bidder, price FROM bid WHERE price >= 50000000 AND epoch_us(date_time) = $at
""",
    ),
    Question(
        "hot_items",
        "A sliding window: the auctions with the most bids in the last minute, every ten seconds.",
        """
WITH counts AS (
  SELECT auction, COUNT(*) AS bids FROM bid [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY auction)
SELECT auction, bids FROM counts WHERE bids = (SELECT MAX(bids) FROM counts)
""",
        """
WITH counts AS (
  SELECT auction, COUNT(*) AS bids FROM bid
  WHERE epoch_us(date_time) > $step - 60000000 AND epoch_us(date_time) <= $step
  GROUP BY auction)
SELECT auction, bids FROM counts WHERE bids = (SELECT MAX(bids) FROM counts)
""",
    ),
    Question(
        "seller_average",
        "A window of each group: the mean price of each seller's last ten sales.",
        """
SELECT seller, AVG(price) AS mean_price, COUNT(*) AS sales
FROM sale [PARTITION BY seller ROWS 10] GROUP BY seller
""",
        """
WITH sale AS (
  SELECT c.seller, c.id, c.date_time, MAX(b.price) AS price
  FROM closed c JOIN bid b ON c.id = b.auction AND b.date_time <= c.date_time
    AND b.date_time > c.date_time - INTERVAL 1 MINUTE
  WHERE epoch_us(c.date_time) <= $at GROUP BY ALL),
last_ten AS (
  SELECT * FROM sale
  QUALIFY row_number() OVER (PARTITION BY seller ORDER BY date_time DESC, id DESC) <= 10)
SELECT seller, AVG(price) AS mean_price, COUNT(*) AS sales FROM last_ten GROUP BY seller
""",
    ),
    Question(
        "new_sellers",
        "A join of two windows: people who came in the last 30 seconds, and what they offer.",
        """
SELECT p.id, p.name, p.city, a.id AS auction, a.category
FROM person [RANGE 30 SECONDS] p JOIN auction [RANGE 30 SECONDS] a ON p.id = a.seller
""",
        """
SELECT p.id, p.name, p.city, a.id AS auction, a.category
FROM person p JOIN auction a ON p.id = a.seller
WHERE epoch_us(p.date_time) > $at - 30000000 AND epoch_us(p.date_time) <= $at
  AND epoch_us(a.date_time) > $at - 30000000 AND epoch_us(a.date_time) <= $at
""",
    ),
    Question(
        "bidders",
        "A distinct count: how many people bid in the last minute, and how often.",
        """
SELECT COUNT(DISTINCT bidder) AS bidders, COUNT(*) AS bids
FROM bid [RANGE 1 MINUTE SLIDE 10 SECONDS]
""",
        """
SELECT COUNT(DISTINCT bidder) AS bidders, COUNT(*) AS bids FROM bid
WHERE epoch_us(date_time) > $step - 60000000 AND epoch_us(date_time) <= $step
HAVING COUNT(*) > 0
""",
    ),
)


def script() -> str:
    """The statements of the demonstration, without the declarations of the streams."""
    queries = [
        f"-- {question.says}\nCREATE QUERY {question.name} AS\n{question.query.strip()};\n"
        for question in QUESTIONS
    ]
    return "\n".join([VIEWS, *queries])
