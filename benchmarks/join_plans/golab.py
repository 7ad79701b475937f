"""Golab's four ways to join windows on one common value, and what each of them compares (J1 to J5).

Row by row, in plain Python: what is counted is what the algorithms would do, and not how long this
program takes. A step of probing scans a window, or the part of it that a value is hashed to, once
for each combination that was found before. Streams come as the thesis generates them: one row at
each instant, of a stream that is drawn by the rates, with a value from 1 to v of the stream.

    eager, eager    a row is joined when it comes; what is over is removed first
    eager, lazy     the same, but what is over is removed every Δ, and passed over until then
    lazy            what has come is joined every Δ, rows of one value together; results that are
                    over before are missing (NO RESTORE)
    lazy, restore   the same, but they are there
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Streams", "Technique", "Work", "joined"]


class Technique(Enum):
    """When is joined, and when is removed."""

    EAGER = "eager, eager"
    LAZY_EXPIRATION = "eager, lazy"
    LAZY = "lazy"
    RESTORE = "lazy, restore"


@dataclass(frozen=True, slots=True)
class Streams:
    """What comes.

    Attributes:
        rates: Of each stream, in rows for an instant; they are taken as shares.
        windows: How long a row of each counts.
        values: How many values each has.
        rows: How many rows come in all.
        seed: Which random numbers.
        lag: So much later the second stream has the values of the first; they are drawn alone if
            it is none.
    """

    rates: tuple[float, ...]
    windows: tuple[int, ...]
    values: tuple[int, ...]
    rows: int
    seed: int = 1
    lag: int | None = None

    def arrivals(self) -> list[tuple[int, int, int]]:
        """Stream, time and value of each row."""
        chance = Random(self.seed)  # noqa: S311 — not for secrets
        numbers = range(len(self.rates))
        if self.lag is not None:
            first = [(0, time, time) for time in range(0, self.rows, 2)]
            later = [(1, time + self.lag, time) for _, time, _ in first]
            return sorted(first + later, key=lambda row: row[1])
        found = []
        for time in range(self.rows):
            stream = chance.choices(numbers, self.rates)[0]
            found.append((stream, time, chance.randint(1, self.values[stream])))
        return found


@dataclass(slots=True)
class Work:
    """What was done.

    Attributes:
        compared: How many values were compared.
        times: How many times were compared.
        touched: How many parts of windows were looked at for what is over.
        stored: How many rows were put in and removed.
        results: How many results there are.
    """

    compared: int = 0
    times: int = 0
    touched: int = 0
    stored: int = 0
    results: int = 0

    @property
    def cost(self) -> int:
        """All of it, a comparison as much as a row that is stored or a part that is touched."""
        return self.compared + self.times + self.touched + self.stored


@dataclass(slots=True)
class _Window:
    """The rows of a window by their values, and how many are hashed where."""

    length: int
    buckets: int
    rows: defaultdict[int, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    order: deque[tuple[int, int]] = field(default_factory=deque)
    hashed: Counter[int] = field(default_factory=Counter)

    def insert(self, time: int, value: int) -> None:
        self.rows[value].append(time)
        self.order.append((time, value))
        self.hashed[value % self.buckets] += 1

    def remove(self, until: int) -> int:
        """Remove what ends up to a time; how many rows that is."""
        count = 0
        while self.order and self.order[0][0] + self.length <= until:
            _, value = self.order.popleft()
            self.rows[value].popleft()
            self.hashed[value % self.buckets] -= 1
            count += 1
        return count

    def scanned(self, value: int) -> int:
        """How many rows are compared with a value."""
        return self.hashed[value % self.buckets]

    def alive(self, value: int, time: int) -> int:
        """How many rows of a value end after a time."""
        return sum(start + self.length > time for start in self.rows[value])


def joined(
    streams: Streams,
    order: Sequence[int],
    technique: Technique,
    *,
    every: int = 0,
    buckets: int = 1,
) -> Work:
    """What a way of joining does.

    Args:
        streams: What comes.
        order: The global order: each stream probes the others in it.
        technique: When is joined.
        every: Δ: how often is removed, or joined and removed.
        buckets: Into how many parts values are hashed; with one, the window is scanned.
    """
    windows = [_Window(length, buckets) for length in streams.windows]
    work, next_time = Work(), every
    waiting: list[list[tuple[int, int]]] = [[] for _ in windows]
    is_lazy = technique in (Technique.LAZY, Technique.RESTORE)
    for stream, time, value in streams.arrivals():
        while every and time >= next_time:
            if is_lazy:
                _evaluate(windows, waiting, order, work, next_time, technique)
                _remove(windows, work, next_time + (every if technique is Technique.LAZY else 0))
            else:
                _remove(windows, work, next_time)
            next_time += every
        if is_lazy and every:
            waiting[stream].append((time, value))
            continue
        if not every:
            _remove(windows, work, time)
        _store(windows[stream], work, time, value)
        _probe(windows, [other for other in order if other != stream], work, (time, value, every))
    if is_lazy and every:
        _evaluate(windows, waiting, order, work, next_time, technique)
    return work


def _store(window: _Window, work: Work, time: int, value: int) -> None:
    window.insert(time, value)
    work.stored += 1


def _remove(windows: Sequence[_Window], work: Work, until: int) -> None:
    for window in windows:
        work.touched += window.buckets
        work.stored += window.remove(until)


def _probe(
    windows: Sequence[_Window], others: Sequence[int], work: Work, row: tuple[int, int, int]
) -> None:
    """Join a row with the windows of the others, one after the other."""
    time, value, every = row
    found = 1
    for other in others:
        window = windows[other]
        work.compared += found * window.scanned(value)
        if every:  # something may be there that is over
            work.times += found * len(window.rows[value])
        found *= window.alive(value, time)
    work.results += found


def _evaluate(  # noqa: PLR0913, PLR0917 — what an evaluation needs
    windows: Sequence[_Window],
    waiting: list[list[tuple[int, int]]],
    order: Sequence[int],
    work: Work,
    now: int,
    technique: Technique,
) -> None:
    """Join what has come, stream by stream, the rows of a value together."""
    for stream, rows in enumerate(waiting):
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for time, value in rows:
            if technique is Technique.RESTORE or time + windows[stream].length > now:
                _store(windows[stream], work, time, value)
                groups[value].append(time)
        rows.clear()
        others = [other for other in order if other != stream]
        for value, times in groups.items():
            found = _scan(windows, others, work, value, min(times), technique)
            if technique is Technique.LAZY:
                work.results += found * len(times)
                continue
            work.times += found * len(times)
            rows_of = ((stream, time) for time in times)
            work.results += sum(_restored(windows, one, others, value) for one in rows_of)


def _scan(  # noqa: PLR0913, PLR0917 — what a scan needs
    windows: Sequence[_Window],
    others: Sequence[int],
    work: Work,
    value: int,
    least: int,
    technique: Technique,
) -> int:
    """Scan the windows of the others for rows of one value; how many combinations there are."""
    found = 1
    for other in others:
        window = windows[other]
        work.compared += found * window.scanned(value)
        if technique is Technique.RESTORE:
            work.times += found * len(window.rows[value])
            found *= window.alive(value, least)
        else:
            found *= len(window.rows[value])
    return found


def _restored(
    windows: Sequence[_Window], row: tuple[int, int], others: list[int], value: int
) -> int:
    """How many results a row has with rows of the others: all of them count at one instant.

    They do if they count when the last of them comes. So for each row that may be the last one, its
    partners are counted, and the row itself must count by then.
    """
    stream, time = row
    found = _partners(windows, others, value, time)
    for last in others:
        rest = [other for other in others if other != last]
        for start in windows[last].rows[value]:
            if time < start < time + windows[stream].length:
                found += _partners(windows, rest, value, start)
    return found


def _partners(windows: Sequence[_Window], others: Sequence[int], value: int, at: int) -> int:
    """How many combinations of rows of the others came before a time and count at it."""
    found = 1
    for other in others:
        length = windows[other].length
        found *= sum(start < at < start + length for start in windows[other].rows[value])
    return found
