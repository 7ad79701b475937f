"""NEXMark's queries as native Structured Streaming asks them, where it can.

Each means what Tidemill's query of the same name means:

- a row of a query without state is the same row;
- two rows that are both in windows ``[RANGE r]`` at some instant are less than ``r`` apart, so that
  a join of such windows is a join with a bound on the times, and gives the same pairs;
- ``[RANGE r SLIDE s]`` has the rows of Spark's windows of length ``r`` every ``s``, at the instants
  that ``harness/comparable.py`` says; there is a row for each window, once it is closed;
- so there is for each session, with what Tidemill says at its last instant. Spark cannot be asked
  what Tidemill says before: the count so far, at every instant. In both a row ten seconds after the
  last one goes on with the session; but Spark closes it when its watermark reaches that instant,
  and would differ if a batch ended there and the next one began with a row of the same instant.

What cannot be asked is in ``refused.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 — as everyone writes it

from benchmarks.harness.comparable import UNTIL
from tidemill.demo.events import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

__all__ = ["NATIVE", "Native", "Streams"]

Streams: TypeAlias = "Callable[[str], DataFrame]"
"""A stream, or the relation ``side``, by name; each time it is read anew."""


@dataclass(frozen=True, slots=True)
class Native:
    """A query for Spark alone.

    Attributes:
        ask: Makes it of its streams.
        slide: From one of its windows to the next, in microseconds.
        sessions: The column whose values have sessions of their own. If this and ``slide`` are
            ``None``, it has no windows, and gives a row whenever Tidemill does.
    """

    ask: Callable[[Streams], DataFrame]
    slide: int | None = None
    sessions: str | None = None


def _q0(streams: Streams) -> DataFrame:
    return streams("bid").select("auction", "bidder", "price", "date_time", "extra")


def _q1(streams: Streams) -> DataFrame:
    price = F.expr("0.908 * price").alias("price")
    return streams("bid").select("auction", "bidder", price, "date_time", "extra")


def _q2(streams: Streams) -> DataFrame:
    return streams("bid").where("auction % 123 = 0").select("auction", "price")


def _q3(streams: Streams) -> DataFrame:
    auction = _named("a", _timed(streams("auction")).where("category = 10"))
    person = _named("p", _timed(streams("person")).where("state IN ('OR', 'ID', 'CA')"))
    pairs = auction.join(person, F.expr(f"a_seller = p_id AND {_near('a', 'p')}"))
    return pairs.selectExpr("p_name AS name", "p_city AS city", "p_state AS state", "a_id AS id")


def _q5(streams: Streams) -> DataFrame:
    window = F.window("date_time", "10 seconds", "2 seconds")
    counts = _timed(streams("bid")).groupBy(window, "auction").agg(F.count("*").alias("num"))
    # The counts of a window come at once, and each has the window as its time.
    ranked = counts.groupBy("window").agg(
        F.max("num").alias("most"), F.collect_list(F.struct("auction", "num")).alias("all")
    )
    each = ranked.select("window", "most", F.explode("all").alias("one"))
    return each.where("one.num = most").select("one.auction", "one.num", _until())


def _q7(streams: Streams) -> DataFrame:
    window = F.window("date_time", "10 seconds").alias("window")
    highest = _timed(streams("bid")).groupBy(window).agg(F.max("price").alias("most"))
    # Rows have one time that watermarks are about: here the window. This makes the other a value.
    time = F.expr("date_time + interval 0 seconds").alias("date_time")
    bids = _timed(streams("bid")).select("auction", "bidder", "price", time, "extra", window)
    best = bids.join(
        highest.withColumnRenamed("window", "w"), F.expr("window = w AND price = most")
    )
    return best.select("auction", "bidder", "price", "date_time", "extra", _until())


def _q8(streams: Streams) -> DataFrame:
    window = F.window("date_time", "10 seconds").alias("window")
    people = _timed(streams("person")).groupBy(window, "id", "name").agg(F.lit(1).alias("one"))
    sellers = _timed(streams("auction")).groupBy(window.alias("w"), "seller").agg(F.lit(1))
    return people.join(sellers, F.expr("window = w AND id = seller")).select("id", "name", _until())


def _q11(streams: Streams) -> DataFrame:
    window = F.session_window("date_time", "10 seconds").alias("window")
    counts = _timed(streams("bid")).groupBy(window, "bidder").agg(F.count("*").alias("bids"))
    return counts.select("bidder", "bids", _until())


def _q13(streams: Streams) -> DataFrame:
    found = streams("bid").join(streams("side"), F.expr("auction % 10000 = key"))
    return found.select("auction", "bidder", "price", "date_time", "value")


def _q14(streams: Streams) -> DataFrame:
    hour = F.hour("date_time")
    time_of_day = (
        F.when((hour >= 8) & (hour <= 18), "day")  # noqa: PLR2004 — as the benchmark says
        .when((hour <= 6) | (hour >= 20), "night")  # noqa: PLR2004 — likewise
        .otherwise("other")
    )
    price = F.expr("0.908 * price")
    return (
        streams("bid")
        .where((price > 1_000_000) & (price < 50_000_000))  # noqa: PLR2004 — likewise
        .select(
            "auction",
            "bidder",
            price.alias("price"),
            time_of_day.alias("time_of_day"),
            "date_time",
            "extra",
            F.expr("length(extra) - length(replace(extra, 'c', ''))").alias("c_count"),
        )
    )


_ABOUT_AUCTIONS = (
    *("item_name", "description", "initial_bid", "reserve", "expires", "seller", "category"),
)


def _q20(streams: Streams) -> DataFrame:
    bid = _named("b", _timed(streams("bid")))
    auction = _named("a", _timed(streams("auction")).where("category = 10"))
    pairs = bid.join(auction, F.expr(f"b_auction = a_id AND {_near('a', 'b')}"))
    bids = ("auction", "bidder", "price", "channel", "url")
    return pairs.selectExpr(
        *(f"b_{name} AS {name}" for name in bids),
        *(f"a_{name} AS {name}" for name in _ABOUT_AUCTIONS),
        "b_date_time AS bid_time",
        "a_date_time AS auction_time",
        "b_extra AS bid_extra",
        "a_extra AS auction_extra",
    )


def _q21(streams: Streams) -> DataFrame:
    numbers = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    channel = F.lower("channel")
    in_url = F.regexp_extract("url", "(&|^)channel_id=([^&]*)", 2)
    known = F.create_map(*(F.lit(text) for pair in numbers.items() for text in pair))
    return (
        streams("bid")
        .where((in_url != "") | channel.isin(*numbers))
        .select(
            "auction",
            "bidder",
            "price",
            "channel",
            F.coalesce(known[channel], in_url).alias("channel_id"),
        )
    )


def _q22(streams: Streams) -> DataFrame:
    parts = (F.expr(f"split_part(url, '/', {part + 3})").alias(f"dir{part}") for part in (1, 2, 3))
    return streams("bid").select("auction", "bidder", "price", "channel", *parts)


def _q23(streams: Streams) -> DataFrame:
    bid, person, auction = (
        _named(name[0], _timed(streams(name))) for name in ("bid", "person", "auction")
    )
    pairs = bid.join(person, F.expr(f"p_id = b_bidder AND {_near('b', 'p')}"))
    # Likewise, but here it is the time of the bid.
    pairs = pairs.withColumn("p_date_time", F.expr("p_date_time + interval 0 seconds"))
    near = f"{_near('a', 'b')} AND {_near('a', 'p')}"
    both = pairs.join(auction, F.expr(f"a_seller = b_bidder AND {near}"))
    bids = ("bidder", "price", "channel", "url")
    people = ("name", "email_address", "credit_card", "city", "state")
    return both.selectExpr(
        *(f"b_{name} AS {name}" for name in bids),
        *(f"p_{name} AS {name}" for name in people),
        *(f"a_{name} AS {name}" for name in _ABOUT_AUCTIONS),
        "p_id AS person_id",
        "a_date_time AS auction_time",
        *(f"{name[0]}_extra AS {name}_extra" for name in ("bid", "person", "auction")),
    )


def _timed(stream: DataFrame) -> DataFrame:
    """A stream that is in order."""
    return stream.withWatermark("date_time", "0 seconds")


def _named(prefix: str, stream: DataFrame) -> DataFrame:
    """A stream with a prefix before its columns, which all streams have in common otherwise."""
    return stream.toDF(*(f"{prefix}_{name}" for name in stream.columns))


def _near(one: str, other: str) -> str:
    """Two rows are in windows of a minute at some instant."""
    here, there = f"{one}_date_time", f"{other}_date_time"
    minute = "interval 60 seconds"
    return f"{here} < {there} + {minute} AND {there} < {here} + {minute}"


def _until() -> Column:
    return F.col("window.end").alias(UNTIL)


NATIVE = {
    "q0": Native(_q0),
    "q1": Native(_q1),
    "q2": Native(_q2),
    "q3": Native(_q3),
    "q5": Native(_q5, 2 * SECOND),
    "q7": Native(_q7, 10 * SECOND),
    "q8": Native(_q8, 10 * SECOND),
    "q11": Native(_q11, sessions="bidder"),
    "q13": Native(_q13),
    "q14": Native(_q14),
    "q20": Native(_q20),
    "q21": Native(_q21),
    "q22": Native(_q22),
    "q23": Native(_q23),
}
"""The queries that Spark can be asked, by name."""
