"""The archives of the streams that a pipeline reads, and the replays of their rows, in any engine.

Law: a row that a batch has taken is in the archive of its stream when the batch is done, and not
before. A batch that is taken again after a kill replays the same rows.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from tidemill.algebra.reach import since_of
from tidemill.history.archive import Archive
from tidemill.history.pace import Pace
from tidemill.history.replay import Replay, advanced, begun, pieces, reached, rows_left
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.plan import Input, walk_physical
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.archive_files import (
    ArchiveFiles,
    MemoryArchive,
    archive_place,
    forget_archives,
)
from tidemill.runtime.damage import damaged
from tidemill.runtime.record import stream_digest

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import StreamEntry
    from tidemill.history.archive import Store
    from tidemill.history.pieces import Entry
    from tidemill.history.replay import Leg
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["KeptStreams", "replayed_inputs"]


class KeptStreams:
    """The kept rows of all streams.

    Args:
        directory: Where their files are; ``None`` for memory.
        pace: How many rows are replayed in a step.

    Attributes:
        by_stream: The archive of each stream that keeps its past.
        replays: The inputs that are being filled with kept rows.
    """

    def __init__(self, directory: Path | None = None, pace: Pace | None = None) -> None:
        self.by_stream: dict[str, Archive] = {}
        self.replays: dict[str, Replay] = {}
        self._directory = directory
        self._pace = Pace() if pace is None else pace
        self._leg: Leg | None = None
        self._began = monotonic()
        self._stores: dict[str, Store] = {}
        self._keeps: dict[str, StreamEntry] = {}
        self._reached: dict[str, int] = {}  # how far streams had come after the step before

    @property
    def since(self) -> dict[str, Time]:
        """From which instant on all rows of each stream are kept."""
        return {name: archive.since for name, archive in self.by_stream.items()}

    def open(self, streams: Mapping[str, StreamEntry], come: Mapping[str, Time], done: int) -> None:
        """Keep the past of these streams from now on, and of no others.

        Args:
            streams: The streams that are read.
            come: The first instant of which nothing has come, of each of them.
            done: The number of the next step.

        Raises:
            RunError: An archive is damaged.
        """
        kept = {name: stream for name, stream in streams.items() if stream.keep is not None}
        for name in self.by_stream.keys() - kept.keys():
            del self.by_stream[name], self._stores[name]
        for name in kept.keys() - self.by_stream.keys():
            self._open(kept[name], come.get(name, Time(0)), done)
        self._keeps = kept
        if self._directory is not None:
            forget_archives(self._directory, kept)

    def _open(self, stream: StreamEntry, since: Time, done: int) -> None:
        store: Store = MemoryArchive(stream)
        if self._directory is not None:
            store = ArchiveFiles(archive_place(self._directory, stream.name), stream)
        try:
            archive = Archive(store, stream_digest(stream), done=done, since=since)
        except DamagedError as error:
            raise damaged(f'what stream "{stream.name}" has kept', error) from error
        self.by_stream[stream.name], self._stores[stream.name] = archive, store

    def add(self, entries: Mapping[str, Entry], watermarks: Mapping[str, int]) -> None:
        """Keep what a step has taken, and remove what is too old.

        The step is not done yet, and may be taken again. So what goes, or is put together, is of
        steps before it, and as old as they say; what the replays of the step need stays.

        Args:
            entries: What came on each stream.
            watermarks: How far each stream has come.

        Raises:
            OSError: It cannot be written.
        """
        for name, archive in self.by_stream.items():
            keep = self._keeps[name].keep
            assert keep is not None, "it keeps its past"
            needed = [r.next for r in self.replays.values() if r.stream == name]
            last = archive.entries[-1].batch + 1 if archive.entries else 0
            first = Time(keep.first(self._reached.get(name, 0)))
            archive.forget(first, batch=min(needed, default=last))
            if not needed:
                archive.merge(first)
        for stream, entry in entries.items():
            self.by_stream[stream].add(entry)
        self._reached = dict(watermarks)
        self._learn()

    # Replays

    def start_step(self, leg: Leg | None = None) -> None:
        """A step begins.

        Args:
            leg: How far replays went when it was taken before, if it is taken again.
        """
        self._leg, self._began = leg, monotonic()

    def _learn(self) -> None:
        """What the step that is done says of how long replays take."""
        leg = self.leg()
        rows = sum(
            piece.rows
            for replay in self.replays.values()
            for piece in pieces(replay, self.by_stream, leg)
        )
        self._pace.done(monotonic() - self._began, rows)
        self._leg = None

    def fill(self, inputs: Mapping[str, tuple[str, Time]], until: int) -> None:
        """Fill inputs with kept rows.

        Args:
            inputs: The inputs, with their streams, and from which instant on.
            until: The number of the next step.
        """
        for rows, (stream, first) in inputs.items():
            replay = begun(stream, first, self.by_stream.get(stream), until)
            if not replay.is_over:
                self.replays[rows] = replay

    def keep_only(self, inputs: Container[str]) -> None:
        """Forget the replays of inputs that are not there any more."""
        self.replays = {rows: one for rows, one in self.replays.items() if rows in inputs}

    def rows_left(self, plans: Mapping[str, PhysicalPlan]) -> dict[str, int]:
        """About how many kept rows are still to be replayed to queries, of those with any."""
        replays, archives = dict(self.replays), dict(self.by_stream)
        found: dict[str, int] = {}
        for query, plan in plans.items() if replays else ():
            mine = {part.rows for part in walk_physical([plan]) if isinstance(part, Input)}
            for rows in mine & replays.keys():
                found[query] = found.get(query, 0) + rows_left(replays[rows], archives)
        return found

    def leg(self) -> Leg:
        """How far all replays go in the step that is being taken."""
        if self._leg is None:
            self._leg = reached(self.replays, self.by_stream, self._pace.rows)
        return self._leg

    def advance(self) -> dict[str, Replay]:
        """The replays after the step that is being taken, without those that are over."""
        leg = self.leg()
        later = {rows: advanced(r, self.by_stream, leg) for rows, r in self.replays.items()}
        return {rows: replay for rows, replay in later.items() if not replay.is_over}


def replayed_inputs(
    plans: Iterable[tuple[Plan, PhysicalPlan]], streams: Container[str]
) -> dict[str, tuple[str, Time]]:
    """The inputs that are filled with kept rows: the stream, and from which instant on.

    Args:
        plans: What queries mean, and how they are computed.
        streams: The streams that are read.
    """
    found: dict[str, tuple[str, Time]] = {}
    for plan, physical in plans:
        firsts = since_of(plan)
        for part in walk_physical([physical]):
            if isinstance(part, Input) and part.epoch and part.name in streams:
                _, least = found.get(part.rows, (part.name, END_OF_TIME))
                found[part.rows] = part.name, min(least, firsts[part.name])
    return found
