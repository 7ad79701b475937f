"""The archives of the streams that are read here, and the replays of their rows.

Law: a row that a step has taken is in the archive of its stream when the step is done, and not
before. A step that is taken again after a kill replays the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tidemill.engine.engine import Flow
from tidemill.history.archive import Archive, Entry, MemoryStore, Reference, piece_of
from tidemill.history.replay import REPLAY_ROWS, Replay, advanced, begun, pieces, reached
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.archive_files import (
    ArchiveFiles,
    archive_place,
    forget_archives,
    piece_name,
)
from tidemill.runtime.damage import damaged
from tidemill.runtime.record import stream_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tidemill.catalog.entries import StreamEntry
    from tidemill.engine.ingest import Gate
    from tidemill.history.archive import Piece, Store
    from tidemill.runtime.local.intake import Taken

__all__ = ["Archives"]


class Archives:
    """The kept rows of all streams.

    Args:
        directory: Where their files are; ``None`` for memory.
        rows: About so many rows are replayed in a step.

    Attributes:
        by_stream: The archive of each stream that keeps its past.
        replays: The inputs that are being filled with kept rows.
    """

    def __init__(self, directory: Path | None = None, rows: int = REPLAY_ROWS) -> None:
        self.by_stream: dict[str, Archive] = {}
        self.replays: dict[str, Replay] = {}
        self._directory = directory
        self._rows = rows
        self._stores: dict[str, Store] = {}
        self._keeps: dict[str, StreamEntry] = {}

    def open(
        self, streams: Mapping[str, StreamEntry], gates: Mapping[str, Gate], done: int
    ) -> None:
        """Keep the past of these streams from now on, and of no others.

        Args:
            streams: The streams that are read.
            gates: How far each of them has come.
            done: The number of the next step.

        Raises:
            RunError: An archive is damaged.
        """
        kept = {name: stream for name, stream in streams.items() if stream.keep is not None}
        for name in self.by_stream.keys() - kept.keys():
            del self.by_stream[name], self._stores[name]
        for name in kept.keys() - self.by_stream.keys():
            self._open(kept[name], gates[name], done)
        self._keeps = kept
        if self._directory is not None:
            forget_archives(self._directory, kept)

    def _open(self, stream: StreamEntry, gate: Gate, done: int) -> None:
        store: Store = MemoryStore()
        if self._directory is not None:
            store = ArchiveFiles(archive_place(self._directory, stream.name), stream)
        newest = gate.newest
        since = max(Time(0 if newest is None else newest + 1), gate.watermark)
        try:
            archive = Archive(store, stream_digest(stream), done=done, since=since)
        except DamagedError as error:
            raise damaged(f'what stream "{stream.name}" has kept', error) from error
        self.by_stream[stream.name], self._stores[stream.name] = archive, store

    # Steps

    def take(self, step: int, taken: Iterable[Taken], gates: Mapping[str, Gate]) -> None:
        """Keep what a step has taken, and remove what is too old.

        Raises:
            OSError: It cannot be written.
        """
        found: defaultdict[str, list[Piece]] = defaultdict(list)
        for one in taken:
            name = piece_name(step, len(found[one.stream]))
            found[one.stream].append(self._kept(name, one))
        for stream, kept in found.items():
            entry = Entry(step, gates[stream].watermark, tuple(kept))
            self.by_stream[stream].add(entry)
        self._forget(gates)

    def _kept(self, name: str, one: Taken) -> Piece:
        keep, file = self._keeps[one.stream].keep, one.arrival.file
        if keep is not None and keep.by_reference and file is not None:
            reference = Reference(
                file.path,
                file.mark.size,
                file.mark.changed,
                file.first,
                one.arrival.first - file.first,
                one.arrival.rows.height,
                one.watermark,
                one.came,
            )
            return piece_of(file.path, one.batch, reference)
        self._stores[one.stream].put(name, one.batch)
        return piece_of(name, one.batch)

    def _forget(self, gates: Mapping[str, Gate]) -> None:
        for name, archive in self.by_stream.items():
            keep = self._keeps[name].keep
            assert keep is not None, "it keeps its past"
            needed = (r.next for r in self.replays.values() if r.stream == name)
            last = archive.entries[-1].batch + 1 if archive.entries else 0
            first = Time(keep.first(gates[name].watermark))
            archive.forget(first, batch=min(needed, default=last))

    # Replays

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

    def keep_only(self, inputs: Iterable[str]) -> None:
        """Forget the replays of inputs that are not there any more."""
        wanted = set(inputs)
        self.replays = {rows: one for rows, one in self.replays.items() if rows in wanted}

    def replayed(self, inputs: Mapping[str, str], streams: Mapping[str, Flow]) -> dict[str, Flow]:
        """What inputs of their own get in a step: what comes, and kept rows.

        Args:
            inputs: Their streams.
            streams: What comes on each stream.

        Raises:
            RunError: Kept rows cannot be read.
        """
        past = self._past()
        flows: dict[str, Flow] = {}
        for rows, stream in inputs.items():
            flow, replay = streams[stream], self.replays.get(rows)
            if replay is not None:
                archive, chosen = self.by_stream[stream], pieces(replay, self.by_stream, past)
                later = advanced(replay, self.by_stream, past)
                watermark = flow.watermark if later.is_over else Time(later.watermark)
                flow = Flow([*map(archive.get, chosen), *flow.batches], watermark)
            flows[rows] = flow
        return flows

    def advance(self) -> dict[str, Replay]:
        """The replays after the step that is being taken, without those that are over."""
        past = self._past()
        later = {rows: advanced(r, self.by_stream, past) for rows, r in self.replays.items()}
        return {rows: replay for rows, replay in later.items() if not replay.is_over}

    def _past(self) -> int:
        return reached(self.replays, self.by_stream, self._rows)
