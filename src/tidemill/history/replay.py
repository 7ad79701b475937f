"""Replay: the kept rows of streams, given once more to inputs of their own, in bounded steps.

An input that is filled gets the rows of batches before ``until`` from the archive, piece after
piece, and those of later ones as they come. Its time goes on as far as what is left allows; what
comes meanwhile waits in the operators. When the last batch has been given, its time is that of
the stream.

Law: the rows that an input has got when its replay is over, and from then on, are those that one
has got that has been there since ``first``, each once, and none was late for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.history.archive import Archive
    from tidemill.history.pieces import Entry, Piece
    from tidemill.model.time import Time

__all__ = ["Leg", "Replay", "advanced", "begun", "pieces", "reached", "rows_left"]


@dataclass(frozen=True, slots=True)
class Replay:
    """An input on its way through the past.

    Attributes:
        stream: Whose rows it gets.
        first: Rows from before are not for it.
        next: The batch that it gets next.
        until: The first batch that it gets as it comes.
        watermark: How far its time has come.
        at: How many pieces of the batch it has got.
    """

    stream: str
    first: int
    next: int
    until: int
    watermark: int = 0
    at: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has got everything."""
        return self.next >= self.until


class Leg(NamedTuple):
    """How far all replays go in a step.

    Attributes:
        batch: The batches before this one are given.
        at: Of this one, so many pieces are.
    """

    batch: int
    at: int = 0


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


def reached(replays: Mapping[str, Replay], archives: Mapping[str, Archive], most: int) -> Leg:
    """How far all of them go in a step, for about so many rows; a piece at least."""
    left: dict[tuple[int, int], int] = {}
    for replay in replays.values():
        for entry in _left(replay, archives):
            for at, piece in _wanted(entry, replay):
                left[entry.batch, at] = left.get((entry.batch, at), 0) + piece.rows
    total = 0
    for batch, at in sorted(left):
        total += left[batch, at]
        if total >= most:
            return Leg(batch, at + 1)
    return Leg(max((replay.until for replay in replays.values()), default=0))


def pieces(replay: Replay, archives: Mapping[str, Archive], leg: Leg) -> list[Piece]:
    """What a replay gives in a step that goes so far."""
    return [
        piece
        for entry in _left(replay, archives)
        for at, piece in _wanted(entry, replay)
        if (entry.batch, at) < leg
    ]


def advanced(replay: Replay, archives: Mapping[str, Archive], leg: Leg) -> Replay:
    """The replay after such a step."""
    watermark, following, at = replay.watermark, replay.until, 0
    for entry in _left(replay, archives):
        left = [piece for place, piece in _wanted(entry, replay) if (entry.batch, place) >= leg]
        if left:
            following = entry.batch
            at = max(leg.at if leg.batch == entry.batch else 0, _given(entry, replay))
            # What is left of the batch, and what comes after it, is not from before that.
            watermark = max(watermark, min(entry.watermark, *(piece.first for piece in left)))
            break
        watermark = max(watermark, entry.watermark)
    return replace(replay, next=following, at=at, watermark=watermark)


def rows_left(replay: Replay, archives: Mapping[str, Archive]) -> int:
    """About how many rows a replay is still to give; it may go on meanwhile."""
    left = _left(replay, archives)
    return sum(piece.rows for entry in left for _, piece in _wanted(entry, replay))


def _left(replay: Replay, archives: Mapping[str, Archive]) -> Iterator[Entry]:
    """The batches that it has not got, or not in full."""
    archive = archives.get(replay.stream)
    for entry in () if archive is None else tuple(archive.entries):
        if replay.next <= entry.batch < replay.until:
            yield entry


def _wanted(entry: Entry, replay: Replay) -> Iterator[tuple[int, Piece]]:
    """The pieces of a batch that it has not got and that are for it, with their places."""
    for at, piece in enumerate(entry.pieces):
        if at >= _given(entry, replay) and piece.last >= replay.first:
            yield at, piece


def _given(entry: Entry, replay: Replay) -> int:
    """How many pieces of a batch it has got."""
    return replay.at if entry.batch == replay.next else 0
