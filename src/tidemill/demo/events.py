"""NEXMark's events, each a function of its number and a seed.

Of 50 events one is a person who registers, three are auctions that open and 46 are bids. Event n
happens ``n / rate`` seconds after the beginning. Prices are spread evenly over orders of magnitude.
Chance has favourites, and they move on: three quarters of the auctions are opened by the first of
the last block of a hundred people, three quarters of the bids come from the second of them, and
half of the bids go to the first of the last block of a hundred auctions. All others are chosen from
the last 1000 people and the last 100 auctions, and from some of each that are still to come, ten in
the benchmark. An auction is open for as long as 100 others need to open, on average.

What is different from the generator of the benchmark:

- Random numbers are a function of the seed and of the number of the event, so the same events come
  out again, in pieces of any size.
- Time is in microseconds, not in milliseconds: up to a million events a second have times of their
  own.
- A bidder is the number of a person. The benchmark adds 1000 twice, so that its bidders are not.
- Descriptions, names of items and padding are taken from a few thousand texts.
- Closings are a stream of their own, as in the first version of the benchmark, since no window ends
  when a column says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

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

__all__ = ["AUCTIONS", "BLOCK", "EPOCH", "FIRST_ID", "LEAD", "SECOND", "Events"]

SECOND = 1_000_000
"""A second, in microseconds."""

EPOCH = 50
"""So many events follow each other in the same pattern: a person, three auctions, bids."""

AUCTIONS = 3
"""So many of them are auctions."""

BLOCK = 100
"""So many people, and auctions, have one favourite; so many auctions are open at a time."""

LEAD = 10
"""So many people, and auctions, that are still to come can be referred to in the benchmark."""

FIRST_ID = 1000
"""The number of the first person and of the first auction."""

_ACTIVE = 1000
_CATEGORIES = 5
_FIRST_CATEGORY = 10
_TEXTS = 4096
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Events:
    """Makes the events of given numbers.

    Attributes:
        seed: Which random numbers.
        rate: How many events there are in a second.
        begin: The time of event 0, in microseconds.
        lead: How many people, and auctions, that are still to come can be referred to; with 0,
            everything that is referred to has been there before.
        padded: Whether rows have a column of letters that brings them to the benchmark's size.
    """

    seed: int
    rate: int
    begin: int
    lead: int = LEAD
    padded: bool = True

    def times(self, numbers: pl.Series) -> pl.Series:
        """When the events happen, in microseconds."""
        return numbers * SECOND // self.rate + self.begin

    def longest_life(self) -> int:
        """For how long an auction is open at most, in microseconds."""
        return 2 * max(1, BLOCK * EPOCH * SECOND // (AUCTIONS * self.rate))

    def expiries(self, numbers: pl.Series) -> pl.Series:
        """When the auctions close, in microseconds."""
        return self.times(numbers) + 1 + self._below(self.longest_life(), numbers, "life")

    def delays(self, numbers: pl.Series, disorder: int, *, lane: str) -> pl.Series:
        """How much later than they happen the events arrive, in microseconds."""
        return self._below(disorder, numbers, lane) if disorder else numbers * 0

    def persons(self, numbers: pl.Series) -> pl.DataFrame:
        """The people who register."""
        first = picked(FIRST_NAMES, self._below(len(FIRST_NAMES), numbers, "first name"))
        last = picked(LAST_NAMES, self._below(len(LAST_NAMES), numbers, "last name"))
        user = words(self.chance, numbers, lane="user", most=7, blank="_")
        host = words(self.chance, numbers, lane="host", most=5, blank="_")
        texts = {
            "name": first + " " + last,
            "email_address": user + "@" + host + ".com",
            "credit_card": card_numbers(self.chance, numbers),
            "city": picked(CITIES, self._below(len(CITIES), numbers, "city")),
            "state": picked(STATES, self._below(len(STATES), numbers, "state")),
        }
        rows = pl.DataFrame(
            {
                "id": numbers // EPOCH + FIRST_ID,
                **texts,
                "date_time": _timestamps(self.times(numbers)),
            }
        )
        if not self.padded:
            return rows
        extra = self._padding(numbers, _NUMBER_BYTES, list(texts.values()), _PERSON_BYTES)
        return rows.with_columns(extra.alias("extra"))

    def auctions(self, numbers: pl.Series) -> pl.DataFrame:
        """The auctions that open."""
        item = _texts(self.seed, "item", 20).gather(self._below(_TEXTS, numbers, "item"))
        description = _texts(self.seed, "description", 100).gather(
            self._below(_TEXTS, numbers, "description")
        )
        opening = self._prices(numbers, "opening price")
        rows = pl.DataFrame(
            {
                "id": auction_numbers(numbers) + FIRST_ID,
                "item_name": item,
                "description": description,
                "initial_bid": opening,
                "reserve": opening + self._prices(numbers, "reserve"),
                "date_time": _timestamps(self.times(numbers)),
                "expires": _timestamps(self.expiries(numbers)),
                "seller": self._sellers(numbers),
                "category": self._below(_CATEGORIES, numbers, "category") + _FIRST_CATEGORY,
            }
        )
        if not self.padded:
            return rows
        extra = self._padding(numbers, 7 * _NUMBER_BYTES, [item, description], _AUCTION_BYTES)
        return rows.with_columns(extra.alias("extra"))

    def closings(self, numbers: pl.Series) -> pl.DataFrame:
        """The same auctions when they close."""
        return pl.DataFrame(
            {
                "id": auction_numbers(numbers) + FIRST_ID,
                "seller": self._sellers(numbers),
                "category": self._below(_CATEGORIES, numbers, "category") + _FIRST_CATEGORY,
                "opened": _timestamps(self.times(numbers)),
                "date_time": _timestamps(self.expiries(numbers)),
            }
        )

    def bids(self, numbers: pl.Series) -> pl.DataFrame:
        """The bids."""
        newest = numbers // EPOCH
        last = newest * AUCTIONS + (AUCTIONS - 1)
        # One number decides three things that have few outcomes each.
        chosen = self.chance.words(numbers, lane="bid")
        oldest = (last - BLOCK).clip(lower_bound=0)
        some_auction = oldest + self._below(last - oldest + 1 + self.lead, numbers, "auction")
        auction = _either(chosen % 2 == 0, last // BLOCK * BLOCK, some_auction)
        # The second of a block, so that the favourite bidder is not the favourite seller.
        second = newest // BLOCK * BLOCK + 1
        there = pl.select(pl.min_horizontal(second, newest + self.lead)).to_series()
        bidder = _either(chosen // 2 % 4 != 0, there, self._people(numbers, "bidder"))
        known = chosen // 8 % 2 == 0
        favourite = (chosen // 16 % FAVOURITES).cast(pl.Int64)
        other = self._below(len(CHANNELS) - FAVOURITES, numbers, "channel") + FAVOURITES
        channel = _either(known, favourite, other)
        rows = pl.DataFrame(
            {
                "auction": auction + FIRST_ID,
                "bidder": bidder + FIRST_ID,
                "price": self._prices(numbers, "price"),
                "channel": picked(CHANNELS, channel),
                "url": picked(URLS, channel),
                "date_time": _timestamps(self.times(numbers)),
            }
        )
        if not self.padded:
            return rows
        padding = (chosen // 256 % _TEXTS).cast(pl.Int64)
        extra = _paddings(self.seed, _BID_BYTES - 4 * _NUMBER_BYTES).gather(padding)
        return rows.with_columns(extra.alias("extra"))

    @property
    def chance(self) -> Chance:
        """Where random numbers come from."""
        return Chance(self.seed)

    def _below(self, limit: int | pl.Series, numbers: pl.Series, lane: str) -> pl.Series:
        return self.chance.below(limit, numbers, lane=lane)

    def _sellers(self, numbers: pl.Series) -> pl.Series:
        newest = numbers // EPOCH
        is_hot = self._below(4, numbers, "hot seller") != 0
        return _either(is_hot, newest // BLOCK * BLOCK, self._people(numbers, "seller")) + FIRST_ID

    def _people(self, numbers: pl.Series, lane: str) -> pl.Series:
        """One of the active people, or of those to come, counted from 0."""
        there = numbers // EPOCH + 1
        active = there.clip(upper_bound=_ACTIVE)
        return there - active + self._below(active + self.lead, numbers, lane)

    def _prices(self, numbers: pl.Series, lane: str) -> pl.Series:
        """Prices from a dollar to a million, in cents, each order of magnitude as often."""
        exponent = self.chance.fractions(numbers, lane=lane) * 6 + 2
        return (pl.Series([10.0]) ** exponent).round().cast(pl.Int64)

    def _padding(
        self, numbers: pl.Series, size: int, texts: list[pl.Series], wanted: int
    ) -> pl.Series:
        """Letters that bring a row to about the wanted number of bytes, a fifth more or less."""
        lengths = sum((text.str.len_bytes().cast(pl.Int64) for text in texts), start=numbers * 0)
        missing = (wanted - size - lengths).clip(lower_bound=0)
        spread = missing // 5
        length = missing - spread + self._below(2 * spread + 1, numbers, "padding length")
        start = self._below(_TEXTS, numbers, "padding")
        frame = pl.DataFrame({"text": _runs(self.seed).gather(start), "length": length})
        return frame.select(pl.col("text").str.head(pl.col("length"))).to_series()


def auction_numbers(numbers: pl.Series) -> pl.Series:
    """Which auctions the events are, counted from 0."""
    return numbers // EPOCH * AUCTIONS + numbers % EPOCH - 1


def _timestamps(times: pl.Series) -> pl.Series:
    return times.cast(pl.Datetime("us"))


def _either(condition: pl.Series, yes: pl.Series, no: pl.Series) -> pl.Series:
    return yes.zip_with(condition, no)


@cache
def _texts(seed: int, lane: str, most: int) -> pl.Series:
    """Texts to choose from, of three letters and more, with a blank now and then."""
    positions = pl.int_range(_TEXTS, dtype=pl.Int64, eager=True)
    return words(Chance(seed), positions, lane=f"{lane} text", most=most)


@cache
def _runs(seed: int) -> pl.Series:
    """Long runs of letters to choose from; each begins a little further on in the same text."""
    longest = 2 * _AUCTION_BYTES
    positions = pl.int_range(_TEXTS + longest, dtype=pl.Int64, eager=True)
    code = Chance(seed).below(26, positions, lane="letters")
    text = "".join(chr(ord("a") + letter) for letter in code)
    return pl.Series([text[start : start + longest] for start in range(_TEXTS)])


@cache
def _paddings(seed: int, wanted: int) -> pl.Series:
    """Runs of about the wanted length, a fifth more or less."""
    positions = pl.int_range(_TEXTS, dtype=pl.Int64, eager=True)
    spread = wanted // 5
    length = Chance(seed).below(2 * spread + 1, positions, lane="length") + wanted - spread
    frame = pl.DataFrame({"text": _runs(seed), "length": length})
    return frame.select(pl.col("text").str.head(pl.col("length"))).to_series()
