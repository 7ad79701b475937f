"""NEXMark: the events of an auction site, a function of their numbers and a seed.

Of 50 events one is a person who registers, three are auctions that open and 46 are bids. Event n
comes ``n / rate`` seconds after the beginning. Prices are spread evenly over orders of magnitude.
Chance has favourites: three quarters of the auctions are opened by one seller in a hundred people,
half of the bids go to one auction in a hundred, and three quarters come from one bidder in a
hundred. An auction closes after it has been open for as long as 100 others need to open, on
average; what has closed by the time of the last event is a stream of its own.

It differs from the benchmark in four points. People and auctions that are referred to exist: the
benchmark also refers to some that come a little later, and adds 1000 to bidders twice. Random
numbers are a function of the seed. Rows are not padded with text that no query reads. The closings
are given, as in the first version of the benchmark, since no window ends when a column says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from tidemill.demo.chance import Chance
from tidemill.demo.texts import (
    CHANNELS,
    CITIES,
    FAVOURITES,
    FIRST_NAMES,
    LAST_NAMES,
    STATES,
    URLS,
    card_numbers,
    picked,
    words,
)

__all__ = ["BEGIN", "EPOCH", "FIRST_ID", "Events", "generate"]

BEGIN = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — timestamps carry no zone
"""The time of event 0."""

EPOCH = 50
"""So many events follow each other in the same pattern: a person, three auctions, bids."""

FIRST_ID = 1000
"""The number of the first person and of the first auction."""

_AUCTIONS = 3
_BLOCK = 100
_ACTIVE_PEOPLE = 1000
_CATEGORIES = 5
_FIRST_CATEGORY = 10


@dataclass(frozen=True, slots=True)
class Events:
    """What happened, stream by stream, each in the order of time.

    Attributes:
        person: People who register.
        auction: Auctions that open.
        bid: Bids.
        closed: Auctions that close.
        last: The time of the last event.
    """

    person: pl.DataFrame
    auction: pl.DataFrame
    bid: pl.DataFrame
    closed: pl.DataFrame
    last: datetime

    def streams(self) -> dict[str, pl.DataFrame]:
        """The streams by name."""
        return {
            "person": self.person,
            "auction": self.auction,
            "bid": self.bid,
            "closed": self.closed,
        }


def generate(count: int, *, seed: int, rate: int = 100) -> Events:
    """The first events.

    >>> events = generate(100, seed=1)
    >>> events.person.height, events.auction.height, events.bid.height
    (2, 6, 92)

    Args:
        count: How many of persons, auctions and bids together; at least one.
        seed: Which random numbers.
        rate: How many events there are in a second.
    """
    maker = _Maker(Chance(seed), rate)
    numbers = pl.int_range(count, dtype=pl.Int64, eager=True)
    offset = numbers % EPOCH
    auction = maker.auctions(numbers.filter(offset.is_between(1, _AUCTIONS)))
    last = BEGIN + timedelta(milliseconds=(count - 1) * 1000 // rate)
    return Events(
        maker.persons(numbers.filter(offset == 0)),
        auction,
        maker.bids(numbers.filter(offset > _AUCTIONS)),
        _closed(auction, last),
        last,
    )


def _closed(auction: pl.DataFrame, last: datetime) -> pl.DataFrame:
    """The auctions that have closed, in the order in which they did."""
    return (
        auction.filter(pl.col("expires") <= pl.lit(last))
        .select("id", "seller", "category", date_time="expires")
        .sort("date_time", "id")
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes events of the given numbers."""

    chance: Chance
    rate: int

    def persons(self, numbers: pl.Series) -> pl.DataFrame:
        first = picked(FIRST_NAMES, self._below(len(FIRST_NAMES), numbers, "first name"))
        last = picked(LAST_NAMES, self._below(len(LAST_NAMES), numbers, "last name"))
        user = words(self.chance, numbers, lane="user", most=7, blank="_")
        host = words(self.chance, numbers, lane="host", most=5, blank="_")
        return pl.DataFrame(
            {
                "id": numbers // EPOCH + FIRST_ID,
                "name": first + " " + last,
                "email_address": user + "@" + host + ".com",
                "credit_card": card_numbers(self.chance, numbers),
                "city": picked(CITIES, self._below(len(CITIES), numbers, "city")),
                "state": picked(STATES, self._below(len(STATES), numbers, "state")),
                "date_time": self.times(numbers),
            }
        )

    def auctions(self, numbers: pl.Series) -> pl.DataFrame:
        newest = numbers // EPOCH
        is_hot = self._below(4, numbers, "hot seller") < 3  # noqa: PLR2004 — three in four
        seller = self._one_of_the_last(_ACTIVE_PEOPLE, newest, numbers, "seller")
        opening = self._prices(numbers, "opening price")
        time = self.times(numbers)
        # As long as a hundred auctions need to open, in milliseconds; twice that at most.
        horizon = max(1, _BLOCK * EPOCH * 1000 // (_AUCTIONS * self.rate))
        life = self._below(2 * horizon, numbers, "life") + 1
        return pl.DataFrame(
            {
                "id": _auction_number(numbers) + FIRST_ID,
                "item_name": words(self.chance, numbers, lane="item", most=20),
                "description": words(self.chance, numbers, lane="description", most=100),
                "initial_bid": opening,
                "reserve": opening + self._prices(numbers, "reserve"),
                "date_time": time,
                "expires": time + (life * 1000).cast(pl.Duration("us")),
                "seller": _either(is_hot, newest // _BLOCK * _BLOCK, seller) + FIRST_ID,
                "category": self._below(_CATEGORIES, numbers, "category") + _FIRST_CATEGORY,
            }
        )

    def bids(self, numbers: pl.Series) -> pl.DataFrame:
        newest = numbers // EPOCH
        auction = (newest + 1) * _AUCTIONS - 1
        hot_auction = self._below(2, numbers, "hot auction") == 0
        any_auction = self._one_of_the_last(_BLOCK, auction, numbers, "auction")
        hot_bidder = self._below(4, numbers, "hot bidder") < 3  # noqa: PLR2004 — three in four
        any_bidder = self._one_of_the_last(_ACTIVE_PEOPLE, newest, numbers, "bidder")
        # The second of a block, so that the hot bidder is not the hot seller.
        second = newest // _BLOCK * _BLOCK + (newest % _BLOCK > 0).cast(pl.Int64)
        known = self._below(2, numbers, "known channel") == 0
        favourite = self._below(FAVOURITES, numbers, "favourite")
        other = self._below(len(CHANNELS) - FAVOURITES, numbers, "channel") + FAVOURITES
        channel = _either(known, favourite, other)
        return pl.DataFrame(
            {
                "auction": _either(hot_auction, auction // _BLOCK * _BLOCK, any_auction) + FIRST_ID,
                "bidder": _either(hot_bidder, second, any_bidder) + FIRST_ID,
                "price": self._prices(numbers, "price"),
                "channel": picked(CHANNELS, channel),
                "url": picked(URLS, channel),
                "date_time": self.times(numbers),
            }
        )

    def times(self, numbers: pl.Series) -> pl.Series:
        """When the events happen, in whole milliseconds."""
        passed = numbers * 1000 // self.rate * 1000
        return (passed.cast(pl.Duration("us")) + BEGIN).alias("date_time")

    def _below(self, limit: int | pl.Series, numbers: pl.Series, lane: str) -> pl.Series:
        return self.chance.below(limit, numbers, lane=lane)

    def _one_of_the_last(
        self, most: int, newest: pl.Series, numbers: pl.Series, lane: str
    ) -> pl.Series:
        """One of the last people, or auctions, up to the newest."""
        there = (newest + 1).clip(upper_bound=most)
        return newest - self._below(there, numbers, lane)

    def _prices(self, numbers: pl.Series, lane: str) -> pl.Series:
        """Prices from a dollar to a million, in cents, each order of magnitude as often."""
        exponent = self.chance.fractions(numbers, lane=lane) * 6 + 2
        return (pl.Series([10.0]) ** exponent).round().cast(pl.Int64)


def _auction_number(numbers: pl.Series) -> pl.Series:
    return numbers // EPOCH * _AUCTIONS + numbers % EPOCH - 1


def _either(condition: pl.Series, yes: pl.Series, no: pl.Series) -> pl.Series:
    return yes.zip_with(condition, no)
