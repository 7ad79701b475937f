"""Files as a sink: a directory with a directory for each batch, in which each task writes one file.

A batch that is delivered again replaces what was there, so that its rows are there exactly once.
A task flushes its file before it gets its name. When all tasks of a batch have written, ``settle``
flushes the names: only then may the batch be taken for done, or a loss of power could lose its
rows. Links are never followed when a batch is removed.

A directory has an owner (``ownership.py``). A query that begins takes one that is empty or not
there, or empties one that a sink wrote if its statement says ``replace => true``. Nothing else is
ever removed but an unfinished batch, and that only where the owner is this query.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.lang.words import quote_name
from tidemill.runtime.answers import Answer
from tidemill.runtime.durable import make_directory, sync_directory, sync_file, sync_files
from tidemill.runtime.ownership import (
    OWNER_FILE,
    UNFINISHED_OWNER_FILE,
    Owner,
    read_owner,
    write_owner,
)
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
        replaces: Whether a query that begins empties a directory that another one wrote.
        owner: The query that the directory belongs to; known when the pipeline is.
        at_end: Whether the names of files are flushed when the run is over, and not batch by batch:
            a run that cannot be taken up again is done as a whole, or not at all.
    """

    query: str
    kind: str
    directory: str
    schema: Schema
    shape: Shape = RESULTS
    replaces: bool = False
    owner: Owner | None = None
    at_end: bool = False

    def owned_by(self, pipeline: str, epoch: int = 0, checkpoint: str | None = None) -> FileSink:
        """The sink in a pipeline, of a query that began in an epoch."""
        return replace(self, owner=Owner(pipeline, self.query.lower(), epoch, checkpoint))

    def check_new(self) -> None:
        """See whether a query that begins can take the directory; nothing is changed.

        Raises:
            RunError: It belongs to another query, holds files of others, or cannot be written.
        """
        root = Path(self.directory)
        if root.is_file():
            raise RunError(
                f'"{root}", the sink of "{self.query}", is a file', hint="choose a directory"
            )
        try:
            names = _names(root)
            _require_writable(root)
        except OSError as error:
            raise self._failure(error, "choose a directory that can be written to") from error
        owner = self.found_owner()
        is_own = owner is not None and owner.pipeline == self._owner.pipeline
        if not names or (is_own and names == {OWNER_FILE}):
            return  # in the second case this pipeline was killed before it had written anything
        others = sorted(name for name in names if not _is_ours(root / name))
        if others or owner is None:
            some = others[0] if others else min(names)
            raise RunError(
                f'"{root}", the sink of "{self.query}", holds files of others, such as "{some}"',
                hint="choose an empty directory, or remove the files yourself",
            )
        if not self.replaces:
            whose = f"an earlier {owner}" if is_own else str(owner)
            raise RunError(
                f'"{root}", the sink of "{self.query}", holds the answer of {whose}',
                hint="choose another directory, remove this one, or write replace => true behind"
                " the path to empty it",
            )

    def claim(self) -> None:
        """Take the directory for a query that begins; empty it, if the statement says so.

        Raises:
            RunError: It belongs to another query, holds files of others, or cannot be written.
        """
        self.check_new()
        root = Path(self.directory)
        try:
            make_directory(root)
            # The old owner stays until all is removed, so that a crash leaves nothing nameless.
            for name in _names(root) - {OWNER_FILE} if self.replaces else ():
                if _is_ours(root / name):
                    shutil.rmtree(root / name)
            if not self.at_end:
                sync_directory(root)
            write_owner(root, self._owner, durably=not self.at_end)
        except OSError as error:
            raise self._failure(error, "choose a directory that can be written to") from error

    def require_owned(self) -> None:
        """See whether the directory is there and belongs to this query; nothing is changed.

        Raises:
            RunError: It is gone, or has lost or changed its owner.
        """
        root = Path(self.directory)
        owner = self.found_owner()
        if owner == self._owner:
            return
        again = f"write DROP QUERY {quote_name(self.query)} and create it again"
        if not root.is_dir():
            raise RunError(
                f'"{root}", the sink of "{self.query}", is gone',
                hint=f"bring it back as it was, or {again}",
            )
        if owner is None:
            raise RunError(
                f'"{root}", the sink of "{self.query}", has lost its file "{OWNER_FILE}", which'
                " says whose it is",
                hint=f"bring it back as it was, or {again}",
            )
        raise RunError(
            f'"{root}", the sink of "{self.query}", now holds the answer of {owner}',
            hint=f"bring back what was there, or {again} with another directory",
        )

    def clear(self, batch: int) -> None:
        """Remove what an unfinished attempt wrote for a batch, which is delivered again.

        Raises:
            RunError: It cannot be removed, or the directory is not that of this query.
        """
        place = self._place(batch)
        if not os.path.lexists(place):
            return
        self.require_owned()
        try:
            shutil.rmtree(place)  # which refuses a link, and follows none
        except OSError as error:
            raise self._failure(error, _WAY_ON) from error

    def write(self, batch: int, part: int, batches: Iterable[Batch]) -> None:
        """Write what a task has of the answer of a batch.

        Raises:
            RunError: It cannot be written, or the directory is gone.
        """
        place = self._place(batch)
        name = f"part-{part:05d}.{self.kind}"
        try:
            place.mkdir(exist_ok=True)  # a directory that has vanished is not made again
            unfinished = place / f".{name}"
            WRITERS[self.kind](new_rows(self.schema, batches, self.shape), unfinished)
            sync_file(unfinished)
            unfinished.rename(place / name)
        except FileNotFoundError as error:
            self.require_owned()
            raise self._failure(error, _WAY_ON) from error
        except OSError as error:
            raise self._failure(error, _WAY_ON) from error

    def settle(self, batch: int) -> None:
        """Keep the files of a batch that all tasks have written: from now on it may be done.

        Raises:
            RunError: They cannot be kept, or the directory is not that of this query any more.
        """
        self.require_owned()
        place = self._place(batch)
        try:
            if place.exists() and not self.at_end:
                sync_directory(place)
                sync_directory(place.parent)
        except OSError as error:
            raise self._failure(error, _WAY_ON) from error

    def flush(self) -> None:
        """Keep the names of all files of a run that is over; their content has been kept.

        Raises:
            RunError: They cannot be kept, or the directory is not that of this query any more.
        """
        self.require_owned()
        root = Path(self.directory)
        try:
            sync_files([*root.glob("batch=*"), root / OWNER_FILE, root])
        except OSError as error:
            raise self._failure(error, _WAY_ON) from error

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
        frames = (pl.read_parquet(file, glob=False, hive_partitioning=False) for file in files)
        answer.read(frames, self.shape.form)
        return answer

    @property
    def _owner(self) -> Owner:
        assert self.owner is not None, "a sink that is used belongs to a pipeline"
        return self.owner

    def found_owner(self) -> Owner | None:
        """The owner that the directory has now; ``None`` if it has none.

        Raises:
            RunError: It cannot be read.
        """
        try:
            return read_owner(Path(self.directory))
        except (OSError, ValueError) as error:
            raise RunError(
                f'whose directory "{self.directory}", the sink of "{self.query}", is cannot be'
                f" read: {error}",
                hint="bring back its file as it was, or choose another directory",
            ) from error

    def _place(self, batch: int) -> Path:
        return Path(self.directory) / f"batch={batch:08d}"

    def _failure(self, error: OSError, hint: str) -> RunError:
        return RunError(f'the sink of "{self.query}" cannot be written: {error}', hint=hint)


_WAY_ON = "make room or fix the directory; nothing is lost"


def _names(root: Path) -> set[str]:
    """What is in a directory, which may not be there."""
    try:
        return {path.name for path in root.iterdir()} - {UNFINISHED_OWNER_FILE}
    except FileNotFoundError:
        return set()


def _require_writable(root: Path) -> None:
    """Refuse a directory that could not be made or written to."""
    found = next(path for path in (root, *root.parents) if path.exists())
    if not found.is_dir():
        raise NotADirectoryError(f'"{found}" is not a directory')
    if not os.access(found, os.W_OK | os.X_OK):
        raise PermissionError(f'"{found}" cannot be written to')


def _is_ours(path: Path) -> bool:
    """Whether something in a directory is what sinks write there, and nothing else is in it."""
    if path.name == OWNER_FILE:
        return path.is_file() and not path.is_symlink()
    if not re.fullmatch(r"batch=\d{8,}", path.name) or path.is_symlink() or not path.is_dir():
        return False
    with os.scandir(path) as entries:
        return all(
            entry.is_file(follow_symlinks=False) and entry.name.startswith(("part-", ".part-"))
            for entry in entries
        )
