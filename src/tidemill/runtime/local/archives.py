"""The archives of the streams that are read here, and the replays of their rows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tidemill.engine.engine import Flow
from tidemill.history.archive import Entry, Reference, piece_of
from tidemill.history.replay import advanced, pieces
from tidemill.model.time import Time
from tidemill.runtime.archive_files import piece_name
from tidemill.runtime.archives import KeptStreams

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.engine.ingest import Gate
    from tidemill.history.archive import Piece
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
        for one in taken:
            name = piece_name(step, len(found[one.stream]))
            found[one.stream].append(self._kept(name, one))
        marks = {name: gate.watermark for name, gate in gates.items()}
        entries = {s: Entry(step, marks[s], tuple(kept)) for s, kept in found.items()}
        self.add(entries, marks)

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

    def replayed(self, inputs: Mapping[str, str], streams: Mapping[str, Flow]) -> dict[str, Flow]:
        """What inputs of their own get in a step: what comes, and kept rows.

        Args:
            inputs: Their streams.
            streams: What comes on each stream.

        Raises:
            RunError: Kept rows cannot be read.
        """
        past = self.past()
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


def come_on(gates: Mapping[str, Gate]) -> dict[str, Time]:
    """The first instant of which nothing has come on each stream."""
    newest = {name: gate.newest for name, gate in gates.items()}
    after = {name: Time(0 if time is None else time + 1) for name, time in newest.items()}
    return {name: max(after[name], gate.watermark) for name, gate in gates.items()}
