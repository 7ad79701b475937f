"""The archives of the streams that are read here, and the replays of their rows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.engine import Flow
from tidemill.history.pieces import Entry, Reference, joined, pieces_of, referred
from tidemill.history.replay import advanced, pieces
from tidemill.model.time import Time
from tidemill.runtime.archive_files import ArchiveFiles, piece_name
from tidemill.runtime.archives import KeptStreams

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.engine.ingest import Gate
    from tidemill.history.pieces import Piece
    from tidemill.model.batch import Batch
    from tidemill.runtime.local.intake import Taken

__all__ = ["Archives", "come_on"]


class Archives(KeptStreams):
    """The kept rows of all streams, in this process."""

    def take(self, step: int, taken: Iterable[Taken], gates: Mapping[str, Gate]) -> None:
        """Keep what a step has taken, and remove what is too old.

        Raises:
            OSError: It cannot be written.
        """
        found: defaultdict[str, list[Piece]] = defaultdict(list)
        waiting: defaultdict[str, list[Batch]] = defaultdict(list)
        for one in taken:
            referred_ = self._referred(one)
            if referred_ is None:
                waiting[one.stream].append(one.batch)
            else:
                found[one.stream] += referred_
        for stream, batches in waiting.items():
            rows, name = pl.concat(batches), piece_name(step)
            self._stores[stream].put(name, rows)
            found[stream] += pieces_of(name, rows)
        marks = {name: gate.watermark for name, gate in gates.items()}
        entries = {s: Entry(step, marks[s], tuple(kept)) for s, kept in found.items()}
        self.add(entries, marks)

    def _referred(self, one: Taken) -> list[Piece] | None:
        """Rows as those of a file of the source, or of a copy of it; ``None`` if they are not."""
        keep, file, store = self._keeps[one.stream].keep, one.arrival.file, self._stores[one.stream]
        if keep is None or file is None:
            return None
        copy = None
        if not keep.by_reference:
            copy = store.copy(file) if isinstance(store, ArchiveFiles) else None
            if copy is None:
                return None
        reference = Reference(
            file.path if copy is None else "",
            file.mark.size,
            file.mark.changed,
            file.first,
            one.arrival.first - file.first,
            one.arrival.rows.height,
            one.watermark,
            one.came,
            is_plain=one.is_plain,
        )
        return referred(one.batch, reference, copy or "")

    def replayed(self, inputs: Mapping[str, str], streams: Mapping[str, Flow]) -> dict[str, Flow]:
        """What inputs of their own get in a step: what comes, and kept rows.

        Args:
            inputs: Their streams.
            streams: What comes on each stream.

        Raises:
            RunError: Kept rows cannot be read.
        """
        leg = self.leg()
        flows: dict[str, Flow] = {}
        for rows, stream in inputs.items():
            flow, replay = streams[stream], self.replays.get(rows)
            if replay is not None:
                archive, chosen = self.by_stream[stream], pieces(replay, self.by_stream, leg)
                later = advanced(replay, self.by_stream, leg)
                watermark = flow.watermark if later.is_over else Time(later.watermark)
                flow = Flow([*map(archive.get, joined(chosen)), *flow.batches], watermark)
            flows[rows] = flow
        return flows


def come_on(gates: Mapping[str, Gate]) -> dict[str, Time]:
    """The first instant of which nothing has come on each stream."""
    newest = {name: gate.newest for name, gate in gates.items()}
    after = {name: Time(0 if time is None else time + 1) for name, time in newest.items()}
    return {name: max(after[name], gate.watermark) for name, gate in gates.items()}
