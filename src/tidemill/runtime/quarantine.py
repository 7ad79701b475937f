"""The quarantine: rows that were refused, and how many, in files of the checkpoint.

    quarantine/<stream>/000000000007.parquet   the rows of batch 7 that are kept, with the reason
    quarantine/<stream>/counts.json            how many there were up to which batch, by reason

A batch that is delivered again replaces its file and is counted once: the rows are written before
the counts, and the counts name the last batch that is in them. The files of a stream are bounded:
the oldest are removed when they exceed a limit, and it is counted how many rows went with them.

Law: after any number of crashes and deliveries, the counts are those of the batches delivered, and
the rows those of the latest of them.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.runtime.durable import make_directory, write_durably
from tidemill.runtime.paths import word_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["LIMIT_BYTES", "Quarantine"]

LIMIT_BYTES = 256 << 20
"""How many bytes the files of a stream may take."""

_LEAST_BYTES = 64 << 10
"""What a file counts for at least, so that there are never too many of them."""


@dataclass(slots=True)
class _Counted:
    """What has been refused of a stream.

    Attributes:
        batch: The last batch that is counted.
        refused: How many rows were refused, by reason.
        removed: How many rows that were kept have been removed to make room.
    """

    batch: int = -1
    refused: dict[str, int] = field(default_factory=dict)
    removed: int = 0


class Quarantine:
    """The refused rows of all streams of a checkpoint.

    Args:
        directory: Where the files are.
        limit: How many bytes the files of a stream may take.
    """

    def __init__(self, directory: Path, *, limit: int = LIMIT_BYTES) -> None:
        self._directory = directory
        self._limit = limit
        self._counted: dict[str, _Counted] = {}

    def take(
        self,
        stream: str,
        batch: int,
        counts: Mapping[str, int],
        frames: Iterable[pl.DataFrame] = (),
    ) -> None:
        """Keep what a batch has refused, if it has not been kept already.

        Args:
            stream: The stream.
            batch: The number of the batch; batches come in order.
            counts: How many rows were refused, by reason.
            frames: The rows that are kept.

        Raises:
            RunError: They cannot be written.
        """
        known = self._of(stream)
        rows = [frame for frame in frames if frame.height]
        if batch <= known.batch or not (rows or any(counts.values())):
            return
        place = self._place(stream)
        try:
            make_directory(place)
            if rows:
                content = io.BytesIO()
                pl.concat(rows, how="diagonal").write_parquet(content)
                write_durably(place / f"{batch:012d}.parquet", content.getvalue())
            for reason, count in counts.items():
                known.refused[reason] = known.refused.get(reason, 0) + count
            known.batch = batch
            known.removed += self._make_room(place)
            content_of_counts = {
                "batch": batch,
                "refused": known.refused,
                "removed": known.removed,
            }
            write_durably(place / "counts.json", json.dumps(content_of_counts).encode())
        except OSError as error:
            self._counted.pop(stream, None)  # what is there is read again
            raise RunError(
                f'rows of "{stream}" that were refused cannot be kept: {error}',
                hint="make room in the checkpoint; the batch is delivered again",
            ) from error

    def counts(self, stream: str) -> dict[str, int]:
        """How many rows of a stream were refused, by reason."""
        return dict(self._of(stream).refused)

    def removed(self, stream: str) -> int:
        """How many rows that were kept have been removed to make room."""
        return self._of(stream).removed

    def rows(self, stream: str) -> list[pl.DataFrame]:
        """The rows of a stream that are kept, those of the earliest batch first.

        Raises:
            RunError: A file cannot be read.
        """
        last = self._of(stream).batch
        files = [path for path in self._files(self._place(stream)) if int(path.stem) <= last]
        try:
            return [pl.read_parquet(io.BytesIO(path.read_bytes())) for path in files]
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f'the quarantine of "{stream}" is damaged: {error}',
                hint="remove the file; the rows in it are lost",
            ) from error

    def _of(self, stream: str) -> _Counted:
        if stream not in self._counted:
            self._counted[stream] = self._read(stream)
        return self._counted[stream]

    def _read(self, stream: str) -> _Counted:
        path = self._place(stream) / "counts.json"
        if not path.exists():
            return _Counted()
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            found = None
        match found:
            case {"batch": int(batch), "refused": dict(refused), "removed": int(removed)}:
                return _Counted(batch, refused, removed)
            case _:
                raise RunError(
                    f'the counts of refused rows of "{stream}" in "{path}" are damaged',
                    hint="remove the file; counting begins again, and the rows stay",
                )

    def _make_room(self, place: Path) -> int:
        """Remove the oldest files until the others fit; how many rows went with them."""
        size = removed = 0
        files = self._files(place)
        for path in reversed(files):
            size += max(path.stat().st_size, _LEAST_BYTES)
            if size > self._limit and path != files[-1]:
                removed += pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
                path.unlink()
        return removed

    def _place(self, stream: str) -> Path:
        return self._directory / word_of(stream)

    def _files(self, place: Path) -> list[Path]:
        return sorted(place.glob("*.parquet")) if place.is_dir() else []
