"""Queries that join.

In the benchmark most of these remember both sides for ever. Here each side has a window of a
minute. That is longer than any auction is open at 100 events a second and more, so bids meet the
auction they are for, as long as they come within a minute of its opening.
"""

from __future__ import annotations

from benchmarks.nexmark.question import Question

__all__ = ["JOINS"]

_MINUTE = "both sides have a window of a minute instead of none"

_SELLERS = """
SELECT p.name, p.city, p.state, a.id FROM auction{0} a JOIN person{0} p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
"""

_NEW_USERS = "SELECT DISTINCT p.id, p.name FROM person{0} p JOIN auction{0} a ON p.id = a.seller"

_BID_AND_AUCTION = """
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_time,
  b.extra AS bid_extra, a.item_name, a.description, a.initial_bid, a.reserve,
  a.date_time AS auction_time, a.expires, a.seller, a.category, a.extra AS auction_extra
FROM bid{0} b JOIN auction{0} a ON b.auction = a.id
WHERE a.category = 10
"""

_THREE = """
SELECT b.bidder, b.price, b.channel, b.url, b.extra AS bid_extra, p.id AS person_id, p.name,
  p.email_address, p.credit_card, p.city, p.state, p.extra AS person_extra, a.item_name,
  a.description, a.initial_bid, a.reserve, a.date_time AS auction_time, a.expires, a.seller,
  a.category, a.extra AS auction_extra
FROM bid{0} b JOIN person{0} p ON p.id = b.bidder JOIN auction{0} a ON a.seller = b.bidder
"""

_WHOLE = "a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.seller, a.category"

JOINS = (
    Question(
        "q3",
        "who sells things of a category in some states",
        _SELLERS.format(" [RANGE 1 MINUTE]"),
        f"{_SELLERS.format('')} AND in_range(a.date_time, 60) AND in_range(p.date_time, 60)",
        remark=_MINUTE,
    ),
    Question(
        "q8",
        "people who came and opened an auction in the same ten seconds",
        _NEW_USERS.format(" [RANGE 10 SECONDS SLIDE 10 SECONDS]"),
        f"{_NEW_USERS.format('')}"
        " WHERE in_slide(p.date_time, 10, 10) AND in_slide(a.date_time, 10, 10)",
        remark="the start of the window is that of the row's validity, not a column",
    ),
    Question(
        "q9",
        "the winning bid of each auction",
        f"""
WITH offer AS (
  SELECT {_WHOLE}, b.bidder, b.price, b.date_time AS bid_time
  FROM auction [RANGE 1 MINUTE] a JOIN bid [RANGE 1 MINUTE] b
    ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires),
highest AS (
  SELECT o.* FROM offer o JOIN (SELECT id, MAX(price) AS top FROM offer GROUP BY id) m
    ON o.id = m.id AND o.price = m.top)
SELECT h.* FROM highest h JOIN (SELECT id, MIN(bid_time) AS first FROM highest GROUP BY id) f
  ON h.id = f.id AND h.bid_time = f.first
""",
        f"""
SELECT {_WHOLE}, b.bidder, b.price, b.date_time AS bid_time FROM auction a JOIN bid b
  ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
WHERE in_range(a.date_time, 60) AND in_range(b.date_time, 60)
QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) = 1
""",
        remark=f"{_MINUTE}; the first of the highest is found by two aggregates, for want of top-n",
    ),
    Question(
        "q20",
        "bids with all about their auction, in a category",
        _BID_AND_AUCTION.format(" [RANGE 1 MINUTE]"),
        f"{_BID_AND_AUCTION.format('')}"
        " AND in_range(a.date_time, 60) AND in_range(b.date_time, 60)",
        remark=_MINUTE,
    ),
    Question(
        "q23",
        "bids of people who sell, with all about the people and what they sell",
        _THREE.format(" [RANGE 1 MINUTE]"),
        f"{_THREE.format('')} WHERE in_range(a.date_time, 60) AND in_range(b.date_time, 60)"
        " AND in_range(p.date_time, 60)",
        remark="all three have a window of a minute instead of none; bidders are people here",
    ),
)
