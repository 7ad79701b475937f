"""Ownership: the file in a sink's directory that says whose answer it holds.

A directory belongs to one query of one pipeline, from the epoch in which the query began. A
pipeline that finds another owner, or files without one, leaves the directory alone. The name of the
file begins with an underscore, so that readers of a directory leave it out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tidemill.runtime.durable import write_durably

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OWNER_FILE", "UNFINISHED_OWNER_FILE", "Owner", "read_owner", "write_owner"]

OWNER_FILE = "_tidemill.json"
UNFINISHED_OWNER_FILE = f".{OWNER_FILE}.part"
"""What a crash may leave while the file is written for the first time."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose answer a directory holds.

    Attributes:
        pipeline: The identity of a checkpoint, or of a run without one.
        query: The name of the query, in lower case.
        epoch: When the query began: one that is dropped and created again is another.
        checkpoint: Where the checkpoint is, for people to read.
    """

    pipeline: str
    query: str
    epoch: int = 0
    checkpoint: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        where = "a run without a checkpoint" if self.checkpoint is None else f'"{self.checkpoint}"'
        return f'query "{self.query}" of {where}'


def read_owner(directory: Path) -> Owner | None:
    """The owner of a directory; ``None`` if it has none.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not one of ours.
    """
    try:
        content = (directory / OWNER_FILE).read_bytes()
    except FileNotFoundError:
        return None
    match json.loads(content):
        case {
            "format": 1,
            "pipeline": str(pipeline),
            "query": str(query),
            "epoch": int(epoch),
            "checkpoint": str() | None as checkpoint,
        }:
            return Owner(pipeline, query, epoch, checkpoint)
        case _:
            raise ValueError(f"{OWNER_FILE} does not name a pipeline and a query")


def write_owner(directory: Path, owner: Owner, *, durably: bool = True) -> None:
    """Write down the owner of a directory.

    Args:
        directory: The directory.
        owner: Its owner.
        durably: Whether it must be there after a loss of power.

    Raises:
        OSError: The file cannot be written.
    """
    content = json.dumps({"format": _FORMAT, **asdict(owner)}, indent=2) + "\n"
    if durably:
        write_durably(directory / OWNER_FILE, content.encode())
    else:
        (directory / OWNER_FILE).write_text(content, encoding="utf-8")
