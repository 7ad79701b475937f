"""Replay: the kept rows of streams, given once more to inputs of their own, in bounded steps.

An input that is filled gets the rows of batches before ``until`` from the archive, batch after
batch, and those of later ones as they come. Its time goes on as it did then; what comes meanwhile
waits in the operators. When the last batch has been given, its time is that of the stream.

Law: the rows that an input has got when its replay is over, and from then on, are those that one
has got that has been there since ``first``, each once, and none was late for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.history.archive import Archive, Entry, Piece
    from tidemill.model.time import Time

__all__ = ["REPLAY_ROWS", "Replay", "advanced", "begun", "pieces", "reached", "rows_left"]

REPLAY_ROWS = 100_000
"""About so many rows are replayed in a step at most, so that what comes does not wait for them."""


@dataclass(frozen=True, slots=True)
class Replay:
    """An input on its way through the past.

    Attributes:
        stream: Whose rows it gets.
        first: Rows from before are not for it.
        next: The batch that it gets next.
        until: The first batch that it gets as it comes.
        watermark: How far its time has come.
    """

    stream: str
    first: int
    next: int
    until: int
    watermark: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has got everything."""
        return self.next >= self.until


def begun(stream: str, first: Time, archive: Archive | None, until: int) -> Replay:
    """A replay that begins with the first batch that has a row from an instant on.

    Args:
        stream: Whose rows are replayed.
        first: The instant.
        archive: The rows; ``None`` if the stream keeps none.
        until: The first batch that comes.
    """
    found = () if archive is None else archive.entries
    needed = (entry.batch for entry in found if entry.last >= first and entry.batch < until)
    return Replay(stream, first, min(needed, default=until), until)


def reached(replays: Mapping[str, Replay], archives: Mapping[str, Archive], most: int) -> int:
    """The batch up to which all of them go on in a step, for about so many rows."""
    rows: dict[int, int] = {}
    for replay in replays.values():
        for entry in _left(replay, archives, replay.until):
            rows[entry.batch] = rows.get(entry.batch, 0) + sum(
                p.rows for p in _wanted(entry, replay)
            )
    total = 0
    for batch in sorted(rows):
        total += rows[batch]
        if total >= most:
            return batch + 1
    return max((replay.until for replay in replays.values()), default=0)


def pieces(replay: Replay, archives: Mapping[str, Archive], past: int) -> list[Piece]:
    """What a replay gives in a step that goes up to a batch."""
    return [p for entry in _left(replay, archives, past) for p in _wanted(entry, replay)]


def advanced(replay: Replay, archives: Mapping[str, Archive], past: int) -> Replay:
    """The replay after such a step."""
    marks = (entry.watermark for entry in _left(replay, archives, past))
    watermark = max(replay.watermark, *marks, 0)
    return replace(replay, next=max(replay.next, min(past, replay.until)), watermark=watermark)


def rows_left(replay: Replay, archives: Mapping[str, Archive]) -> int:
    """About how many rows a replay is still to give; it may go on meanwhile."""
    archive = archives.get(replay.stream)
    entries = () if archive is None else tuple(archive.entries)
    left = (e for e in entries if replay.next <= e.batch < replay.until)
    return sum(piece.rows for entry in left for piece in _wanted(entry, replay))


def _left(replay: Replay, archives: Mapping[str, Archive], past: int) -> Iterator[Entry]:
    """The batches that it has not got, up to one."""
    archive = archives.get(replay.stream)
    for entry in () if archive is None else archive.entries:
        if replay.next <= entry.batch < min(past, replay.until):
            yield entry


def _wanted(entry: Entry, replay: Replay) -> list[Piece]:
    return [piece for piece in entry.pieces if piece.last >= replay.first]
