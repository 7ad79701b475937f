"""Sinks of the local runtime: directories of Parquet files, or memory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tidemill.errors import RunError, closest
from tidemill.runtime.answers import Answer

if TYPE_CHECKING:
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Sink", "open_sink"]


class Sink(Protocol):
    """Where new elements of an answer go."""

    def write(self, step: int, batches: list[Batch]) -> None:
        """Write the elements of a step."""
        ...


@dataclass(frozen=True, slots=True)
class _Parquet:
    """One file for each step that gave something, with the columns ``results`` has."""

    directory: Path
    schema: Schema

    def write(self, step: int, batches: list[Batch]) -> None:
        answer = Answer(self.schema)
        answer.add(batches)
        answer.results().write_parquet(self.directory / f"batch={step:08d}.parquet")


@dataclass(frozen=True, slots=True)
class _Memory:
    """The answer is kept in memory anyway."""

    def write(self, step: int, batches: list[Batch]) -> None:
        """Nothing more to do."""


def open_sink(query: str, sink: ConnectorCall, schema: Schema) -> Sink:
    """The sink of a query; what an earlier run left in it is removed.

    Raises:
        RunError: There is no such sink, or it has no place to write to.
    """
    kind = sink.name.text.lower()
    if kind == "memory":
        return _Memory()
    if kind != "parquet":
        raise RunError(
            f'the local engine cannot write "{sink.name.text}", the sink of "{query}"',
            hint=closest(kind, ["parquet", "memory"])
            or "it writes parquet(path => '…') and memory()",
        )
    path = sink.positional[0] if sink.positional else dict(sink.named).get("path")
    if not isinstance(path, str):
        raise RunError(f'the sink of "{query}" needs a path', hint="write parquet(path => 'out')")
    unknown = [name for name, _ in sink.named if name != "path"]
    if unknown or len(sink.positional) > 1:
        raise RunError(
            f'the sink of "{query}" takes only a path', hint="write parquet(path => 'out')"
        )
    directory = Path(path)
    if directory.is_file():
        raise RunError(f'"{path}", the sink of "{query}", is a file', hint="choose a directory")
    if directory.is_dir() and any(not p.name.startswith("batch=") for p in directory.iterdir()):
        raise RunError(
            f'"{path}", the sink of "{query}", holds files of others',
            hint="choose an empty directory",
        )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return _Parquet(directory, schema)
