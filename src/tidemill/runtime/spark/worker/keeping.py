"""Keeping: a task writes what it has taken of a stream that keeps its past.

The files are named by batch and task, so a task that runs again replaces what it wrote. Nobody
looks at them before the driver has put them into the list of the archive, when the batch is done.

Law: the pieces that a task tells of hold the rows that it has taken, each once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.ingest import MALFORMED
from tidemill.history.pieces import Reference, pieces_of, read_piece, referred
from tidemill.runtime.archive_files import ArchiveFiles, archive_place, piece_name
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.entries import StreamEntry
    from tidemill.engine.ingest import Refused
    from tidemill.history.pieces import Piece
    from tidemill.model.batch import Batch
    from tidemill.runtime.settling import FileRows

__all__ = ["KEPT", "PieceWriter", "kept_pieces"]

KEPT = "kept"
"""The report on rows that were kept, with the stream."""

_FILE_ROWS = 250_000
"""About so many rows are written to a file."""

_TASK_PARTS = 10_000
"""More files than a task writes."""


@dataclass(slots=True)
class PieceWriter:
    """Writes what a task takes of a stream.

    Attributes:
        place: Where the archives of all streams are.
        stream: The stream.
        batch: The number of the batch.
        task: That of the task in it.
        watermark: Rows from before were late.
        now: When the rows come.
        refused: What the task has not taken so far.
        pieces: What was written so far.
    """

    place: str
    stream: StreamEntry
    batch: int
    task: int
    watermark: int
    now: int
    refused: Refused
    pieces: list[Piece] = field(default_factory=list)
    _waiting: list[Batch] = field(default_factory=list)
    _rows: int = 0

    def take(self, elements: Batch, first: int, delivered: int, file: FileRows | None) -> None:
        """Keep some rows that came together.

        Args:
            elements: Those that were taken, with their ids.
            first: The id of the first row that was delivered.
            delivered: How many rows were.
            file: The file that they stand in, if it can be read here.

        Raises:
            OSError: They cannot be written.
        """
        if elements.is_empty():
            return
        keep = self.stream.keep
        if keep is not None and file is not None:
            copy = "" if keep.by_reference else self._files().copy(file)
            if copy is not None:
                self._refer(elements, first, delivered, file, copy)
                return
        self._waiting.append(elements)
        self._rows += elements.height
        if self._rows >= _FILE_ROWS:
            self._flush()

    def _files(self) -> ArchiveFiles:
        return ArchiveFiles(archive_place(Path(self.place), self.stream.name), self.stream)

    def _refer(
        self, elements: Batch, first: int, delivered: int, file: FileRows, copy: str
    ) -> None:
        mark, skip = file.mark, first - file.first
        place = Reference(
            "" if copy else file.path,
            mark.size,
            mark.changed,
            file.first,
            skip,
            delivered,
            self.watermark,
            self.now,
            is_plain=MALFORMED not in self.refused.counts,
        )
        self.pieces += referred(elements, place, copy)

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pl.concat(self._waiting)
        name = piece_name(self.batch, self.task * _TASK_PARTS + len(self.pieces))
        self._files().put(name, rows)
        self.pieces += pieces_of(name, rows)
        self._waiting.clear()
        self._rows = 0

    def report(self, pid: int) -> Message:
        """What was written, for the driver; nothing more is.

        Raises:
            OSError: It cannot be written.
        """
        self._flush()
        told = [asdict(piece) for piece in self.pieces]
        return Message.of_facts(pid, Kind.REPORT, f"{KEPT} {self.stream.name}", {"pieces": told})


def kept_pieces(messages: Iterable[Message]) -> dict[str, list[Piece]]:
    """What tasks have kept of each stream in a batch; the same in whatever order they tell."""
    found: dict[str, list[Piece]] = {}
    for message in messages:
        kind, _, stream = message.channel.partition(" ")
        if message.kind is Kind.REPORT and kind == KEPT:
            told = message.facts()["pieces"]
            assert isinstance(told, list), "a task tells what it has kept"
            found.setdefault(stream, []).extend(read_piece(one) for one in told)  # type: ignore[arg-type]
    return {name: sorted(pieces, key=_place) for name, pieces in found.items() if pieces}


def _place(piece: Piece) -> tuple[str, int]:
    return piece.name, piece.skip if piece.reference is None else piece.reference.skip
