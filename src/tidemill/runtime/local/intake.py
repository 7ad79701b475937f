"""The intake: what comes on the streams, in steps, and how far their time has come.

A step takes what can be read now, from where time has come least far, until there are rows enough
to be worth it. While a session runs on, time passes without rows, too: a stream without a time of
its own has come as far as the clock, and one that may be idle does not hold others back once it has
been silent for long enough.

What a step takes depends on what is there, and on the clock. Both are noted, so that the step can
be taken again as it was.

Laws:
- Whatever is read later from a stream starts at or after the watermark that was told.
- A step that is taken again, from where it was taken and with what was noted, takes the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.engine import Flow
from tidemill.engine.ingest import MALFORMED
from tidemill.errors import RunError
from tidemill.model.batch import START
from tidemill.model.time import Time
from tidemill.runtime.local.silence import reached_by_idle
from tidemill.runtime.measuring.sample import WORTH_IT, Sampler
from tidemill.runtime.reading.parquet_groups import UNREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tidemill.engine.ingest import Gate
    from tidemill.model.batch import Batch
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.measuring.sample import Sample

__all__ = ["Intake", "Noted", "Silent", "Taken"]

_STEP_ROWS, _STEP_BYTES = 100_000, 64 << 20
"""How many rows are worth a step, and how many bytes: many small files are taken together."""


@dataclass(slots=True)
class _Load:
    """How much a step has taken: so many rows, of so many bytes."""

    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Noted:
    """What a step depends on besides what has been read before.

    Attributes:
        reads: From which stream it was read, time after time.
        ticks: What the clock said.
    """

    reads: list[str] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Silent:
    """When something came on a stream, as it is kept.

    Attributes:
        seen: When something came last, or when it was opened.
        batch: The batch that has come last; -1 if there was none.
        came: When that was.
        is_open: Whether the batch is not over.
    """

    seen: int = 0
    batch: int = -1
    came: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that were taken, of a stream that keeps its past.

    Attributes:
        stream: The stream.
        batch: The rows, as elements.
        arrival: How they came, with those that were refused.
        watermark: Rows from before were late.
        came: When they came.
        is_plain: Whether no row of the stream was left out so far when it was read.
    """

    stream: str
    batch: Batch
    arrival: Arrival
    watermark: Time
    came: Time
    is_plain: bool = False


@dataclass(slots=True)
class Intake:
    """The streams that are read.

    Attributes:
        clock: What time it is, in microseconds since 1970.
        gates: The progress of each stream.
        now: The time of what came last; each time is later than those before.
        seen: When something last came on each stream, or when it was opened.
        noted: What the step depends on that is being taken, or was taken last.
        again: What it depended on when it was taken before; ``None`` if it was not.
        kept: What the step has taken of streams that keep their past.
        needed: The columns that are needed of each stream of which not all are.
    """

    clock: Callable[[], int]
    gates: dict[str, Gate] = field(default_factory=dict)
    now: Time = field(default=Time(0))
    seen: dict[str, Time] = field(default_factory=dict)
    noted: Noted = field(default_factory=Noted)
    again: Noted | None = None
    kept: list[Taken] = field(default_factory=list)
    needed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _samplers: dict[str, Sampler] = field(default_factory=dict)
    _came: dict[str, tuple[int, Time]] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)

    def open(self, gate: Gate, now: int = 0) -> None:
        """Take in a stream from now on, which is silent until something comes."""
        self.gates[gate.stream.name] = gate
        self._samplers[gate.stream.name] = Sampler(gate.stream.schema.names)
        self.seen[gate.stream.name] = Time(now)

    def close(self, stream: str) -> Gate:
        """The gate of a stream that is not read any more."""
        self._open.discard(stream)
        self._came.pop(stream, None)
        del self._samplers[stream]
        del self.seen[stream]
        return self.gates.pop(stream)

    def take(self, readers: dict[str, Iterator[Arrival]], *, ends: bool) -> dict[str, Flow]:
        """What is read next; readers that have nothing more leave.

        It is read where time has come least far, so that no stream runs ahead of those it may be
        joined with, until there are rows enough to be worth a step.

        Args:
            readers: What can be read of each stream.
            ends: Whether a stream ends where its reader does.

        Raises:
            RunError: A source cannot be read; what was read before it has been given.
        """
        found: dict[str, list[Batch]] = {name: [] for name in self.gates}
        self.noted, self.kept = Noted(), []
        load = _Load()
        for name in self._turns(readers, load):
            try:
                arrival = self._next(name, readers, ends=ends)
            except RunError as error:
                if not load.rows:
                    raise
                readers[name] = _failing(error)  # what was read before is not lost
                break
            if arrival is not None:
                found[name].append(self._taken(name, arrival))
                load.rows += arrival.rows.height
                load.bytes += int(arrival.rows.estimated_size())
        return {
            name: Flow([pl.concat(batches)] if batches else [], self.gates[name].watermark)
            for name, batches in found.items()
        }

    def _turns(self, readers: Mapping[str, Iterator[Arrival]], load: _Load) -> Iterator[str]:
        """The streams to read from, one after another; as it was, if the step is taken again."""
        if self.again is not None:
            yield from (name for name in self.again.reads if name in readers)
            return
        while readers and load.rows < _STEP_ROWS and load.bytes < _STEP_BYTES:
            yield min(readers, key=lambda stream: self.gates[stream].watermark)

    def _next(
        self, name: str, readers: dict[str, Iterator[Arrival]], *, ends: bool
    ) -> Arrival | None:
        """What a stream gives next; ``None`` if that is nothing, and its reader leaves."""
        arrival = next(readers[name], None)
        self.noted.reads.append(name)
        if arrival is None:
            del readers[name]
            if ends:
                self.gates[name].finish()
        return arrival

    def _taken(self, name: str, arrival: Arrival) -> Batch:
        """The elements of some rows that have come."""
        gate, came = self.gates[name], self._time_of(name, arrival.batch)
        watermark = gate.watermark
        batch = gate.take_piece(self._narrow(name, arrival.rows), came, arrival.first)
        self._samplers[name].take(arrival.rows, arrival.first, batch[START], gate.newest or 0)
        if gate.stream.keep is not None and batch.height:
            is_plain = MALFORMED not in gate.refused.counts
            self.kept.append(Taken(name, batch, arrival, watermark, came, is_plain))
        self._open.add(name)
        if arrival.is_last:
            gate.end_batch()
            self._open.discard(name)
        return batch

    def _narrow(self, stream: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the columns that are needed; some files, or pieces of them, have more.

        Those that only stand for others end where rows come in, like these.
        """
        needed = self.needed.get(stream)
        if needed is None:
            return rows.drop(UNREAD) if UNREAD in rows.columns else rows
        return rows.select(n for n in rows.columns if n in needed)

    def samples(self, enough: int = WORTH_IT) -> dict[str, Sample]:
        """What has come since this was asked last, by stream.

        Args:
            enough: Rows of samples are looked at where there are so many.
        """
        return {name: sampler.drain(enough) for name, sampler in self._samplers.items()}

    def pass_time(self, groups: Iterable[frozenset[str]]) -> None:
        """Let time pass on all streams, whether something has come or not.

        Args:
            groups: The streams that are read together.
        """
        self.now = self._tick()
        for name, gate in self.gates.items():
            if gate.stream.time_column is None and name not in self._open:
                # What comes later has a later time than now.
                gate.watermark = max(gate.watermark, Time(self.now + 1))
        for name, mark in self._reached(groups, self.now).items():
            self.gates[name].watermark = max(self.gates[name].watermark, mark)

    def holds_back(self, groups: Iterable[frozenset[str]]) -> bool:
        """Whether a stream holds others back that may be idle by now."""
        now = Time(self.clock())
        reached = self._reached(groups, now) if now > self.now else {}
        return any(mark > self.gates[name].watermark for name, mark in reached.items())

    @property
    def follows_the_clock(self) -> bool:
        """Whether there is a stream without a time of its own."""
        return any(gate.stream.time_column is None for gate in self.gates.values())

    def _reached(self, groups: Iterable[frozenset[str]], now: Time) -> dict[str, Time]:
        idle = {
            name
            for name, gate in self.gates.items()
            if gate.stream.idle_after is not None
            and name not in self._open
            and now - self.seen[name] >= gate.stream.idle_after
        }
        marks = {name: gate.watermark for name, gate in self.gates.items()}
        return reached_by_idle(marks, groups, idle)

    def _time_of(self, stream: str, batch: int) -> Time:
        """When a batch of a stream has come; no two batches have come at the same time."""
        known, time = self._came.get(stream, (-1, Time(0)))
        if known != batch:
            self.now = time = self._tick()
            self._came[stream] = batch, time
        self.seen[stream] = self.now
        return time

    def _tick(self) -> Time:
        """What time it is, later than before; as it was, if the step is taken again."""
        number = len(self.noted.ticks)
        was = [] if self.again is None else self.again.ticks[number : number + 1]
        now = was[0] if was else self.clock()
        self.noted.ticks.append(now)
        return Time(max(self.now + 1, now))

    def silent(self, stream: str) -> Silent:
        """When something came on a stream."""
        batch, time = self._came.get(stream, (-1, Time(0)))
        return Silent(self.seen[stream], batch, time, stream in self._open)

    def go_on(self, stream: str, silent: Silent) -> None:
        """Go on with a stream on which something has come before."""
        self.seen[stream] = Time(silent.seen)
        if silent.batch >= 0:
            self._came[stream] = silent.batch, Time(silent.came)
        if silent.is_open:
            self._open.add(stream)


def _failing(error: RunError) -> Iterator[Arrival]:
    """A reader that fails when it is asked."""
    yield from ()
    raise error
