"""NEXMark's streams as frames or as files, in the order in which their rows arrive.

    python benchmarks/nexmark/generator.py [events]

prints how many of them a core makes in a second of its work. What the events are is said in
``events.py``; here they get an order. An event arrives up to ``disorder`` microseconds after it has
happened, by chance. So a row can follow one that is later, but never by as much as ``disorder``:
the promise of ``WITHIN``.

Which rows arrive in a stretch of time is computed from that stretch alone. The rows are therefore
the same however the work is cut, and files need no more memory than one of them.
"""

# ruff: noqa: T201 — a benchmark prints

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

if __package__ in (None, ""):  # run as a program
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parents[2]))

import polars as pl

from benchmarks.nexmark.events import AUCTIONS, EPOCH, SECOND, Events
from tidemill.model.time import from_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BEGIN",
    "SIDE_ROWS",
    "STREAMS",
    "Site",
    "around_midnight",
    "generate",
    "side_input",
    "write",
]

BEGIN = datetime(2015, 7, 15)  # noqa: DTZ001 — timestamps carry no zone
"""The time of event 0, as in the benchmark."""

RATE = 10_000
"""How many events there are in a second, as in the benchmark."""

STREAMS = ("person", "auction", "bid", "closed")

SIDE_ROWS = 10_000
"""So many rows has the relation that query 13 looks up."""

_CHUNK = 250_000


@dataclass(frozen=True, slots=True)
class Site:
    """The auction site: so many events, and when they arrive.

    Attributes:
        events: How many people, auctions and bids together.
        seed: Which random numbers.
        rate: How many events there are in a second.
        disorder: By how much less than this rows may be out of order, in microseconds.
        begin: The time of event 0.
    """

    events: int
    seed: int
    rate: int = RATE
    disorder: int = 0
    begin: datetime = BEGIN

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

    def arriving(self, begin: int, end: int) -> dict[str, pl.DataFrame]:
        """The rows that arrive in a stretch of time, stream by stream."""
        maker = Events(self.seed, self.rate, self.begins())
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


def around_midnight(events: int, seed: int, *, rate: int, disorder: int = 0) -> Site:
    """A site on which the day changes half-way."""
    midnight = BEGIN + timedelta(days=1)
    return Site(events, seed, rate, disorder, midnight - timedelta(seconds=events // 2 // rate))


def generate(  # noqa: PLR0913 — every setting has a name and a default
    events: int,
    seed: int,
    *,
    rate: int = RATE,
    disorder: int = 0,
    begin: datetime = BEGIN,
    chunk: int = _CHUNK,
) -> dict[str, pl.DataFrame]:
    """The first events, stream by stream, each in the order of arrival.

    Args:
        events: How many of persons, auctions and bids together; at least one.
        seed: Which random numbers.
        rate: How many events there are in a second.
        disorder: By how much less than this rows may be out of order, in microseconds.
        begin: The time of event 0.
        chunk: How many events are made at a time; the rows are the same.
    """
    site = Site(events, seed, rate, disorder, begin)
    pieces = [site.arriving(*cut) for cut in site.cuts(max(1, -(-events // chunk)))]
    return {name: pl.concat([piece[name] for piece in pieces]) for name in STREAMS}


def write(directory: Path, site: Site, *, files: int) -> None:
    """Write the streams, each as so many Parquet files, and the relation of query 13.

    A file has what arrives in a stretch of time. All streams are cut at the same times, so that
    engines that read one file of each in a batch see the same batches.
    """
    for name in (*STREAMS, "side"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    side_input().write_parquet(directory / "side" / "0000.parquet")
    for number, (cut, rows) in enumerate(_pieces(site, files)):
        for name in STREAMS:
            path = directory / name / f"{number:04d}.parquet"
            rows[name].write_parquet(path)
            # Some engines read files in the order in which they came.
            os.utime(path, (cut[1] // SECOND + number, cut[1] // SECOND + number))


def _pieces(site: Site, files: int) -> Iterator[tuple[tuple[int, int], dict[str, pl.DataFrame]]]:
    for cut in site.cuts(files):
        yield cut, site.arriving(*cut)


def side_input() -> pl.DataFrame:
    """A relation of keys and values."""
    keys = pl.int_range(SIDE_ROWS, dtype=pl.Int64, eager=True)
    return pl.DataFrame({"key": keys, "value": "value " + keys.cast(pl.String)})


def main() -> None:
    """Print the speed."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    for disorder in (0, SECOND):
        began = process_time()
        streams = generate(events, seed=1, disorder=disorder)
        time = process_time() - began
        rows = ", ".join(f"{streams[name].height:,} {name}" for name in STREAMS)
        size = sum(frame.estimated_size("mb") for frame in streams.values())
        print(
            f"{events:,} events out of order by {disorder / SECOND:g} s: {time:.2f} s, "
            f"{events / time / 1e6:.2f} M events/s on one core; {rows}; {size:.0f} MB"
        )


if __name__ == "__main__":
    main()
