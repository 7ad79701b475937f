"""The meter: rates, from how far a job had come a moment ago."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.model.time import END_OF_TIME

if TYPE_CHECKING:
    from tidemill.runtime.progress import Progress

__all__ = ["Meter", "Reading", "averaged", "lags"]

_SPAN = 5.0
"""Rates are means over so many seconds: batches come in strokes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a job has come, how long it took, and how fast it is.

    Attributes:
        progress: How far it has come.
        seconds: How long it has been running.
        stream_rates: How many rows come in on each stream in a second.
        query_rates: How many rows each query gives in a second.
        most_state: How many rows, and bytes, were remembered when it was most.
    """

    progress: Progress
    seconds: float
    stream_rates: dict[str, float]
    query_rates: dict[str, float]
    most_state: tuple[int, int]


class Meter:
    """Remembers the last seconds, and how much state there was at most."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, dict[str, int], dict[str, int]]] = deque()
        self._most = (0, 0)

    def read(self, progress: Progress, seconds: float) -> Reading:
        """The rates now.

        Args:
            progress: How far the job has come.
            seconds: How long it has been running; it never goes back.
        """
        streams = {stream.name: stream.rows for stream in progress.streams}
        queries = {query.name: query.rows for query in progress.queries}
        self._past.append((seconds, streams, queries))
        while len(self._past) > 2 and self._past[1][0] <= seconds - _SPAN:  # noqa: PLR2004 — a pair
            self._past.popleft()
        then, before_in, before_out = self._past[0]
        span = seconds - then
        rows, bytes_ = self._most
        self._most = max(rows, progress.state_rows), max(bytes_, progress.state_bytes)
        return Reading(
            progress,
            seconds,
            _rates(streams, before_in, span),
            _rates(queries, before_out, span),
            self._most,
        )


def _rates(now: dict[str, int], before: dict[str, int], span: float) -> dict[str, float]:
    if span <= 0:
        return dict.fromkeys(now, 0.0)
    # A job that begins again, or whose queries change, counts from 0.
    return {name: max(0, rows - before.get(name, 0)) / span for name, rows in now.items()}


def averaged(reading: Reading) -> Reading:
    """The same, with the rates of the whole time instead of those of the last moment."""
    streams = {stream.name: stream.rows for stream in reading.progress.streams}
    queries = {query.name: query.rows for query in reading.progress.queries}
    seconds = reading.seconds
    return replace(
        reading,
        stream_rates=_rates(streams, {}, seconds),
        query_rates=_rates(queries, {}, seconds),
    )


def lags(progress: Progress) -> dict[str, int | None]:
    """How far each stream lies behind the one that has come furthest, in microseconds.

    A stream that has ended, or not begun, holds no other back.
    """
    open_at = {
        stream.name: stream.watermark
        for stream in progress.streams
        if stream.watermark is not None and stream.watermark != END_OF_TIME
    }
    first = max(open_at.values(), default=0)
    return {
        stream.name: first - open_at[stream.name] if stream.name in open_at else None
        for stream in progress.streams
    }
