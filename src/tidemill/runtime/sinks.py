"""Sinks: where the answers of queries go, besides memory.

A file sink is a directory with a directory for each batch, in which each task writes one file. A
batch that is delivered again replaces what was there, so that its rows are there exactly once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, closest
from tidemill.model.batch import END, START, interval_columns
from tidemill.runtime.answers import Answer, time_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tidemill.catalog.entries import QueryEntry
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["WRITERS", "FileSink", "file_sinks"]

WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "json": pl.DataFrame.write_ndjson,
}


@dataclass(frozen=True, slots=True)
class FileSink:
    """A directory of files.

    Attributes:
        query: Whose answer it holds.
        kind: What kind of files.
        directory: Where they are.
        schema: The columns of the answer; each file has them, and those of time.
    """

    query: str
    kind: str
    directory: str
    schema: Schema

    def prepare(self, *, anew: bool = True) -> None:
        """Make the directory; if it is to begin anew, remove what an earlier run left.

        Raises:
            RunError: Something else is there.
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
            if anew:
                shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f'the sink of "{self.query}" cannot be written: {error}',
                hint="choose a directory that can be written to",
            ) from error

    def clear(self, batch: int) -> None:
        """Remove what was written for a batch, which is delivered again."""
        shutil.rmtree(self._place(batch), ignore_errors=True)

    def write(self, batch: int, part: int, batches: Iterable[Batch]) -> None:
        """Write what a task has of the answer of a batch.

        Raises:
            RunError: It cannot be written.
        """
        whole = pl.concat([batch.select(interval_columns(self.schema)) for batch in batches])
        start, end = time_names(self.schema, "start", "end")
        rows = whole.rename({START: start, END: end}).sort(start)
        place = self._place(batch)
        name = f"part-{part:05d}.{self.kind}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            WRITERS[self.kind](rows, place / f".{name}")
            (place / f".{name}").rename(place / name)
        except OSError as error:
            raise RunError(
                f'the sink of "{self.query}" cannot be written: {error}',
                hint="make room or mend the directory; nothing is lost",
            ) from error

    def answer(self) -> Answer:
        """What has been written so far.

        Raises:
            RunError: Files of this kind cannot be read back with their types.
        """
        if self.kind != "parquet":
            raise RunError(
                f'the answer of "{self.query}" goes to {self.kind} files in "{self.directory}"',
                hint="read them there, or write INTO parquet(…)",
            )
        answer = Answer(self.schema)
        files = sorted(Path(self.directory).glob("batch=*/part-*.parquet"))
        answer.read(pl.read_parquet(file, hive_partitioning=False) for file in files)
        return answer

    def _place(self, batch: int) -> Path:
        return Path(self.directory) / f"batch={batch:08d}"


def file_sinks(queries: Iterable[QueryEntry], *, others: Collection[str]) -> dict[str, FileSink]:
    """The file sinks of the queries that have one, by name.

    Args:
        queries: The queries.
        others: The kinds of sinks, besides ``memory``, that somebody else writes.

    Raises:
        RunError: There is no such sink, or it does not say where, or two write to one place.
    """
    sinks: dict[str, FileSink] = {}
    written: dict[str, str] = {}
    for query in queries:
        kind = "memory" if query.sink is None else query.sink.name.text.lower()
        if query.sink is None or kind == "memory" or kind in others:
            continue
        if kind not in WRITERS:
            known = [*WRITERS, "memory", *others]
            raise RunError(
                f'there is no sink "{query.sink.name.text}", to which "{query.name}" is to write',
                hint=closest(kind, known) or f"there are {', '.join(known)}",
            )
        sink = _file_sink(query.name, query.sink, query.plan.schema)
        place = str(Path(sink.directory).resolve())
        if place in written:
            raise RunError(
                f'queries "{written[place]}" and "{query.name}" write to the same place',
                hint="give each its own path",
            )
        written[place] = query.name
        sinks[query.name] = sink
    return sinks


def _file_sink(query: str, sink: ConnectorCall, schema: Schema) -> FileSink:
    """The file sink that a statement names.

    Raises:
        RunError: It does not say where to write to, or says too much.
    """
    kind = sink.name.text.lower()
    path = sink.positional[0] if sink.positional else dict(sink.named).get("path")
    if not isinstance(path, str):
        raise RunError(f'the sink of "{query}" needs a path', hint=f"write {kind}(path => 'out')")
    if len(sink.positional) > 1 or any(name != "path" for name, _ in sink.named):
        raise RunError(
            f'the sink of "{query}" takes only a path', hint=f"write {kind}(path => 'out')"
        )
    return FileSink(query, kind, path, schema)
