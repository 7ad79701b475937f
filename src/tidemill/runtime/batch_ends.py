"""The last batch that a pipeline on Spark has finished, read without Spark, while it goes on.

    {"end": 7, "watermarks": {…}, "latest": {…}, …}      a line of the batch log of a checkpoint

A line counts once it is whole. The log is replaced as a whole, or gets lines at its end, so that
what is read is what it was at some moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.runtime.damage import damaged, json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["BATCH_LOG", "BatchEnd", "last_end"]

BATCH_LOG = "batches.jsonl"
"""On Spark, what is known when a batch begins, and that it has ended."""


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The end of a batch.

    Attributes:
        done: The number of the next batch.
        watermarks: How far each stream had come.
        latest: The latest time that rows of each stream had had.
    """

    done: int = 0
    watermarks: Mapping[str, int] = field(default_factory=dict)
    latest: Mapping[str, int] = field(default_factory=dict)


def last_end(directory: Path) -> BatchEnd:
    """The end of the last batch of a checkpoint.

    Raises:
        RunError: The log is damaged.
    """
    path, found = directory / BATCH_LOG, BatchEnd()
    for line in json_lines(path) if path.exists() else ():
        match line:
            case {"end": int(batch), "watermarks": dict(marks), **rest}:
                latest = rest.get("latest", {})
                if not isinstance(latest, dict):
                    raise damaged(f'"{path}"', f"{latest} are no times")
                found = BatchEnd(batch + 1, marks, latest)
            case {"begin": int()}:
                pass
            case _:
                raise damaged(f'"{path}"', f"{line} is no line of it")
    return found
