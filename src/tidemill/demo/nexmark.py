"""NEXMark: the streams of an auction site, in the order in which their rows arrive.

It is the only generator: the demonstration, the tests and the benchmarks have their settings. What
the events are is said in ``events.py``; here they get an order. An event arrives up to ``disorder``
microseconds after it has happened, by chance. So a row can follow one that is later, but never by
as much as ``disorder``: the promise of ``WITHIN``.

Which rows arrive in a stretch of time is computed from that stretch alone. The rows are therefore
the same however the work is cut, and files need no more memory than one of them.

>>> site = demo_site(100, seed=1)
>>> [(name, rows.height) for name, rows in site.streams().items()]
[('person', 2), ('auction', 6), ('bid', 92), ('closed', 1)]
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import polars as pl

from tidemill.demo.events import AUCTIONS, EPOCH, LEAD, SECOND, Events
from tidemill.model.time import from_datetime

__all__ = ["BEGIN", "RATE", "STREAMS", "Site", "demo_site"]

BEGIN = datetime(2015, 7, 15)  # noqa: DTZ001 — timestamps carry no zone
"""The time of event 0, as in the benchmark."""

RATE = 10_000
"""How many events there are in a second, as in the benchmark."""

STREAMS = ("person", "auction", "bid", "closed")

_CHUNK = 250_000
_DEMO_BEGIN = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — timestamps carry no zone
_DEMO_RATE = 100


@dataclass(frozen=True, slots=True)
class Site:
    """The auction site: so many events, and when they arrive.

    Attributes:
        events: How many people, auctions and bids together.
        seed: Which random numbers.
        rate: How many events there are in a second.
        disorder: By how much less than this rows may be out of order, in microseconds.
        begin: The time of event 0.
        lead: How many people, and auctions, that are still to come can be referred to.
        padded: Whether rows have a column of letters that brings them to the benchmark's size.
    """

    events: int
    seed: int
    rate: int = RATE
    disorder: int = 0
    begin: datetime = BEGIN
    lead: int = LEAD
    padded: bool = True

    def begins(self) -> int:
        """The time of the first event, in microseconds."""
        return from_datetime(self.begin)

    def ends(self) -> int:
        """The time of the last event, in microseconds."""
        return self.begins() + (self.events - 1) * SECOND // self.rate

    def cuts(self, pieces: int) -> list[tuple[int, int]]:
        """The time until everything has arrived, in stretches of the same length."""
        begin, end = self.begins(), self.ends() + self.disorder + 1
        bounds = [begin + (end - begin) * piece // pieces for piece in range(pieces + 1)]
        return list(pairwise(bounds))

    def streams(self, *, chunk: int = _CHUNK) -> dict[str, pl.DataFrame]:
        """All rows, stream by stream, each in the order of arrival.

        Args:
            chunk: How many events are made at a time; the rows are the same.
        """
        pieces = [self.arriving(*cut) for cut in self.cuts(max(1, -(-self.events // chunk)))]
        return {name: pl.concat([piece[name] for piece in pieces]) for name in STREAMS}

    def arriving(self, begin: int, end: int) -> dict[str, pl.DataFrame]:
        """The rows that arrive in a stretch of time, stream by stream."""
        maker = Events(self.seed, self.rate, self.begins(), self.lead, self.padded)
        numbers = self._happening(begin - self.disorder, end)
        times = maker.times(numbers)
        arrivals = times + maker.delays(numbers, self.disorder, lane="delay")
        numbers = _in_order(numbers, arrivals, times, begin, end)
        offset = numbers % EPOCH
        older = self._happening(begin - self.disorder - maker.longest_life() - 1, end)
        auctions = older.filter((older % EPOCH).is_between(1, AUCTIONS))
        times = maker.expiries(auctions)
        arrivals = times + maker.delays(auctions, self.disorder, lane="closing delay")
        is_over = times <= self.ends()
        closing = _in_order(
            auctions.filter(is_over), arrivals.filter(is_over), times.filter(is_over), begin, end
        )
        return {
            "person": maker.persons(numbers.filter(offset == 0)),
            "auction": maker.auctions(numbers.filter(offset.is_between(1, AUCTIONS))),
            "bid": maker.bids(numbers.filter(offset > AUCTIONS)),
            "closed": maker.closings(closing),
        }

    def _happening(self, begin: int, end: int) -> pl.Series:
        """The numbers of the events of a stretch of time, and perhaps of one before and behind."""
        first = max(0, (begin - self.begins()) * self.rate // SECOND)
        last = min(self.events, (end - self.begins()) * self.rate // SECOND + 1)
        return pl.int_range(first, max(first, last), dtype=pl.Int64, eager=True)


def _in_order(
    numbers: pl.Series, arrivals: pl.Series, times: pl.Series, begin: int, end: int
) -> pl.Series:
    """The numbers of what arrives in a stretch of time, in that order; at once, the older first."""
    frame = pl.DataFrame({"number": numbers, "arrival": arrivals, "time": times})
    inside = frame.filter(pl.col("arrival").is_between(begin, end, closed="left"))
    return inside.sort("arrival", "time", "number")["number"]


def demo_site(events: int, seed: int) -> Site:
    """The site of the demonstration: slow, in order, small rows, and no reference to what comes.

    Args:
        events: How many people, auctions and bids together; at least one.
        seed: Which random numbers.
    """
    return Site(events, seed, _DEMO_RATE, begin=_DEMO_BEGIN, lead=0, padded=False)
