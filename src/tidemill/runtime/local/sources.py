"""Sources of the local runtime: files of a directory, and frames in memory.

A source delivers batches of rows with the columns and types of its stream.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, closest, suggestion
from tidemill.runtime.files import READERS, read_file, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Schema

__all__ = ["read_source"]

_FILE_ARGUMENTS = ("path", "files_per_batch")


def read_source(
    name: str, source: ConnectorCall, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """The rows of a stream or relation, batch by batch.

    Args:
        name: The stream or relation.
        source: Where its rows are.
        schema: Its columns.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: The source cannot be read, or does not have these columns.
    """
    kind = source.name.text.lower()
    arguments = _arguments(name, source)
    if kind == "memory":
        yield _memory(name, str(arguments["name"]), schema, memory)
        return
    if kind not in READERS:
        raise RunError(
            f'the local engine cannot read "{source.name.text}", the source of "{name}"',
            hint=closest(kind, [*READERS, "memory"])
            or f"it reads {', '.join([*READERS, 'memory'])}",
        )
    files = _files(name, str(arguments["path"]), kind)
    size = int(arguments["files_per_batch"])
    for first in range(0, len(files), size):
        frames = [read_file(path, kind, schema) for path in files[first : first + size]]
        yield pl.concat(frames)


def _arguments(name: str, source: ConnectorCall) -> dict[str, str | int | float | bool]:
    """What the source is told, by name; the first thing may stand without its name."""
    kind = source.name.text
    first, known = ("name", ("name",)) if kind.lower() == "memory" else ("path", _FILE_ARGUMENTS)
    given: dict[str, str | int | float | bool] = {"files_per_batch": 1, **dict(source.named)}
    if len(source.positional) > 1:
        raise RunError(f'the source of "{name}" takes one {first}', hint=f"write {kind}('…')")
    if source.positional:
        given[first] = source.positional[0]
    unknown = [key for key, _ in source.named if key not in known]
    if unknown:
        raise RunError(
            f'the source of "{name}" takes no argument "{unknown[0]}"',
            hint=suggestion(unknown[0], known, what="arguments"),
        )
    if first not in given:
        raise RunError(f'the source of "{name}" needs a {first}', hint=f"write {kind}('…')")
    if not isinstance(given["files_per_batch"], int) or given["files_per_batch"] < 1:
        raise RunError(f'files_per_batch of "{name}" must be a positive number', hint="write 1")
    return given


def _memory(
    name: str, key: str, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    if key not in memory:
        raise RunError(
            f'there is no frame "{key}" in memory for "{name}"',
            hint=closest(key, memory) or f"give one with session.put({key!r}, frame)",
        )
    return shaped(memory[key], schema, f'frame "{key}"')


def _files(name: str, path: str, kind: str) -> list[Path]:
    root = Path(path)
    if root.is_file():
        return [root]
    pattern = root.parent.glob(root.name) if any(c in path for c in "*?[") else root.glob("*")
    found = sorted(p for p in pattern if p.is_file() and not p.name.startswith(("_", ".")))
    if not found:
        raise RunError(
            f'there is nothing to read for "{name}" at "{path}"',
            hint=f"give a {kind} file, a directory of them, or a pattern such as data/*.{kind}",
        )
    return found
