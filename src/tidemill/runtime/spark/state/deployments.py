"""Deployments: what has run, and what runs, in files of the checkpoint by version.

The driver tells each batch which version it is computed with; a worker that does not have it reads
it here. So a change takes effect at the next batch, without starting Spark's query again. A batch
that has been delivered, and that Spark computes again after a kill, is computed with the version it
had: that file stays as long as it may be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.durable import make_directory, write_durably
from tidemill.runtime.spark.worker.deployment import Deployment, digest, read_deployment

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["Deployments"]

_OPEN: dict[tuple[str, str], Deployment] = {}
"""What this process has read, by place and version: to read a plan takes longer than to run an
almost empty batch of it."""

_MOST_OPEN = 2


@dataclass(frozen=True, slots=True)
class Deployments:
    """The deployments of a checkpoint.

    Attributes:
        place: Where they are.
        relations: Where the rows of relations are.
        kept: Where streams keep their past.
        relay: Where partitions find what is replayed to them.
    """

    place: str
    relations: str
    kept: str = ""
    relay: str = ""

    def keep(self, deployment: Deployment) -> None:
        """Write a deployment, for the workers and for a later start.

        Raises:
            OSError: It cannot be written.
        """
        path = self._path(deployment.version)
        if not path.is_file():
            make_directory(path.parent)
            write_durably(path, deployment.text.encode())

    def open(self, version: str) -> Deployment:
        """The deployment of a version.

        Raises:
            RunError: It is not there, or is damaged.
        """
        known = self.place, version
        if known not in _OPEN:
            while len(_OPEN) >= _MOST_OPEN:  # a worker may live longer than many plans
                del _OPEN[next(iter(_OPEN))]
            _OPEN[known] = self._read(version)
        return _OPEN[known]

    def forget(self, needed: Container[str]) -> None:
        """Remove those that no batch is computed with any more."""
        for path in Path(self.place).glob("*.json"):
            if path.stem not in needed:
                path.unlink()

    def _read(self, version: str) -> Deployment:
        path = self._path(version)
        try:
            content, relations = path.read_bytes(), Path(self.relations)
            _require(digest(content) == version)
            return read_deployment(content.decode(), lambda file: (relations / file).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(
                f'"{path}" in the checkpoint, which says what runs, cannot be read: {error}',
                hint="bring the file back, or choose a new checkpoint",
            ) from error

    def _path(self, version: str) -> Path:
        return Path(self.place) / f"{version}.json"


def _require(is_whole: bool) -> None:  # noqa: FBT001 — what is required
    if not is_whole:
        raise ValueError("it is not what was written")
