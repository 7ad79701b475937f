"""Replaying: tasks read kept rows, and do with them what is done where rows come in.

A job of its own does it before the batch is computed, for all partitions; what they get waits for
them in files, named by batch, partition and share, so a batch that is computed again replaces them.

    replay/<batch>/<partition>-<share>.arrow    messages to a partition of the first stage

Law: the shares of a batch together give each row that is replayed in it once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.history.pieces import joined
from tidemill.model.batch import ID
from tidemill.runtime.archive_files import ArchiveFiles, archive_place
from tidemill.runtime.durable import make_directory
from tidemill.runtime.spark.worker.intake import deal, spread
from tidemill.runtime.spark.worker.wire import (
    Kind,
    Message,
    figures_of,
    from_arrow,
    to_arrow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from tidemill.history.pieces import Piece
    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.wire import Facts

__all__ = ["REPLAYED", "Relay", "Share"]

REPLAYED = "replayed"
"""The report on rows that were replayed to an input."""

_LATE = 20_000
"""The number of the first file of answers that a share writes; tasks have smaller ones."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one task replays.

    Attributes:
        batch: The number of the batch.
        number: That of the share.
        pieces: What is read for each input.
    """

    batch: int
    number: int
    pieces: Mapping[str, tuple[Piece, ...]]

    def messages(self, deployment: Deployment, kept: str) -> Iterator[Message]:
        """What partitions get of it.

        Args:
            deployment: What runs where.
            kept: Where the archives of all streams are.

        Raises:
            RunError: Kept rows cannot be read.
        """
        pids = deployment.pids
        home = pids[self.number % len(pids)]
        made = self._made(deployment, kept, home)
        return deployment.sink_writer.let_out(made, self.batch, _LATE + self.number)

    def _made(self, deployment: Deployment, kept: str, home: int) -> Iterator[Message]:
        for rows, pieces in self.pieces.items():
            stream = deployment.streams[deployment.replayed[rows]]
            files = ArchiveFiles(archive_place(Path(kept), stream.name), stream)
            yield from _taken_in(deployment, rows, map(files.get, joined(pieces)), home)


def _taken_in(
    deployment: Deployment,
    rows: str,
    batches: Iterable[pl.DataFrame],
    home: int,
) -> Iterator[Message]:
    entrance, count = deployment.entrance(rows), 0
    for batch in batches:
        count += batch.height
        given = batch if deployment.graph.needs_ids else batch.drop(ID)
        for channel, out in entrance.step(given):
            for pid, part in spread(channel, out, deployment.pids, home):
                yield from deal(deployment, channel, part, pid)
    facts: Facts = {"rows": count, "operators": figures_of(entrance.drain())}
    yield Message.of_facts(home, Kind.REPORT, f"{REPLAYED} {rows}", facts)


@dataclass(frozen=True, slots=True)
class Relay:
    """The files in which partitions find what is replayed to them.

    Attributes:
        place: Where they are.
    """

    place: str

    def begin(self, batch: int) -> None:
        """Forget the files of all batches; the shares of this one are written next."""
        shutil.rmtree(self.place, ignore_errors=True)
        make_directory(self._of(batch))

    def put(self, batch: int, share: int, messages: Iterable[Message]) -> int:
        """Write what partitions get of a share; how many messages that is.

        Raises:
            OSError: It cannot be written.
        """
        by_pid: dict[int, list[Message]] = {}
        for message in messages:
            by_pid.setdefault(message.pid, []).append(message)
        for pid, some in by_pid.items():
            path = self._of(batch) / f"{pid}-{share}.arrow"
            unfinished = path.with_suffix(".unfinished")
            table = to_arrow(some)
            with (
                pa.OSFile(str(unfinished), "wb") as file,
                pa.ipc.new_file(file, table.schema) as out,
            ):
                out.write_batch(table)
            unfinished.rename(path)
        return sum(len(some) for some in by_pid.values())

    def get(self, batch: int, pid: int) -> list[Message]:
        """What a partition gets in a batch."""
        found: list[Message] = []
        for path in sorted(self._of(batch).glob(f"{pid}-*.arrow")):
            with pa.memory_map(str(path)) as file:
                found += from_arrow(pa.ipc.open_file(file).read_all())
        return found

    def _of(self, batch: int) -> Path:
        return Path(self.place) / f"{batch:012d}"
