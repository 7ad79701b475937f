"""Spark's log of the files it has read, kept short.

For each source of files, Spark writes down what it has read, a file for each batch, and every tenth
batch everything so far in one: with tens of thousands of files that alone takes longer than the
batch. Of sources whose files have numbers it never needs more than the last ones (see
``file_log.NUMBERED``), so what is older is taken out of the last such file, from which the next
one is made. This is done within a batch, while Spark waits for it; a log that does not look as
expected is left alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemill.runtime.durable import write_durably

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["shorten"]

_SHORT_LOG_BYTES = 64_000
"""A log with fewer bytes is short enough."""

_VERSION = "v1"
_FILES, _BATCHES = 200, 20
"""How many of the last files, and the files of how many of the last batches, stay."""


def shorten(directory: Path, sources: Iterable[str]) -> None:
    """Take old files out of the logs of some sources.

    Args:
        directory: Where Spark keeps the logs of all sources.
        sources: The names of those whose files have numbers.
    """
    for source in sources:
        found = (directory / source).glob("*.compact")
        logs = {int(path.stem): path for path in found if path.stem.isdecimal()}
        if logs and logs[max(logs)].stat().st_size > _SHORT_LOG_BYTES:
            _shorten(logs[max(logs)])


def _shorten(path: Path) -> None:
    version, *lines = path.read_text(encoding="utf-8").splitlines()
    if version != _VERSION:
        return
    try:
        entries = [(int(e["timestamp"]), int(e["batchId"])) for e in map(json.loads, lines)]
    except (ValueError, KeyError, TypeError):
        return  # Spark will say what is wrong when it reads it
    latest, last = (max(column) for column in zip(*entries, strict=True))
    kept = [
        line
        for line, (number, batch) in zip(lines, entries, strict=True)
        if number >= latest - _FILES or batch >= last - _BATCHES
    ]
    if 2 * len(kept) <= len(lines):
        # A sum of the old content, if there is one, is not that of the new one.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_durably(path, "\n".join([version, *kept]).encode())
