"""Files as a sink: a directory with a directory for each batch, in which each task writes one file.

A batch that is delivered again replaces what was there, so that its rows are there exactly once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.runtime.answers import Answer
from tidemill.runtime.shapes import RESULTS, Delivered, Shape, new_rows
from tidemill.runtime.writing import write_csv, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["WRITERS", "FileSink"]

WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": partial(pl.DataFrame.write_parquet, compression="snappy"),
    "csv": write_csv,
    "json": write_json,
}


@dataclass(frozen=True, slots=True)
class FileSink:
    """A directory of files.

    Attributes:
        query: Whose answer it holds.
        kind: What kind of files.
        directory: Where they are.
        schema: The columns of the answer; each file has them, and those of time.
        shape: In which form.
    """

    query: str
    kind: str
    directory: str
    schema: Schema
    shape: Shape = RESULTS

    def prepare(self, *, anew: bool = True) -> None:
        """Make the directory; if it is to begin anew, remove what an earlier run left.

        Raises:
            RunError: Something else is there, or it cannot be made.
        """
        root = Path(self.directory)
        if root.is_file():
            raise RunError(
                f'"{root}", the sink of "{self.query}", is a file', hint="choose a directory"
            )
        if root.is_dir() and any(not p.name.startswith("batch=") for p in root.iterdir()):
            raise RunError(
                f'"{root}", the sink of "{self.query}", holds files of others',
                hint="choose an empty directory",
            )
        try:
            if anew and root.is_dir():
                shutil.rmtree(root)
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failure(error, "choose a directory that can be written to") from error

    def clear(self, batch: int) -> None:
        """Remove what was written for a batch, which is delivered again.

        Raises:
            RunError: It cannot be removed.
        """
        place = self._place(batch)
        try:
            if place.exists():
                shutil.rmtree(place)
        except OSError as error:
            raise self._failure(error, _MEND) from error

    def write(self, batch: int, part: int, batches: Iterable[Batch]) -> None:
        """Write what a task has of the answer of a batch.

        Raises:
            RunError: It cannot be written.
        """
        place = self._place(batch)
        name = f"part-{part:05d}.{self.kind}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            WRITERS[self.kind](new_rows(self.schema, batches, self.shape), place / f".{name}")
            (place / f".{name}").rename(place / name)
        except OSError as error:
            raise self._failure(error, _MEND) from error

    def answer(self) -> Answer:
        """What has been written so far.

        Raises:
            RunError: Files of this kind cannot be read back with their types, or hold upserts.
        """
        if self.shape.delivered is Delivered.UPSERTS:
            raise RunError(
                f'the answer of "{self.query}" goes as upserts to "{self.directory}"',
                hint="read them there, or write INTO parquet(…)",
            )
        if self.kind != "parquet":
            raise RunError(
                f'the answer of "{self.query}" goes to {self.kind} files in "{self.directory}"',
                hint="read them there, or write INTO parquet(…)",
            )
        answer = Answer(self.schema)
        files = sorted(Path(self.directory).glob("batch=*/part-*.parquet"))
        frames = (pl.read_parquet(file, hive_partitioning=False) for file in files)
        answer.read(frames, self.shape.form)
        return answer

    def _place(self, batch: int) -> Path:
        return Path(self.directory) / f"batch={batch:08d}"

    def _failure(self, error: OSError, hint: str) -> RunError:
        return RunError(f'the sink of "{self.query}" cannot be written: {error}', hint=hint)


_MEND = "make room or mend the directory; nothing is lost"
