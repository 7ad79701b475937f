"""The archives of a pipeline on Spark, and the job that replays their rows before a batch.

Tasks write what they keep (``worker/keeping.py``); here it is put into the list of the archive when
the batch is done, before the batch log says so. What is replayed in a batch is decided here, and
written down at its beginning. Tasks of a job of its own read it then and do what is done where rows
come in (``worker/replaying.py``); the first stage finds it.

Law: a batch that is computed again replays the same rows, and a kill at any moment leaves what the
next start goes on from.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.history.pieces import Entry
from tidemill.history.replay import Leg, advanced, pieces
from tidemill.model.time import Time
from tidemill.runtime.archives import KeptStreams
from tidemill.runtime.spark.worker.keeping import kept_pieces
from tidemill.runtime.spark.worker.replaying import Relay, Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from tidemill.catalog.entries import StreamEntry
    from tidemill.history.pieces import Piece
    from tidemill.history.replay import Replay
    from tidemill.runtime.spark.state.batch_log import BatchLog, Beginning
    from tidemill.runtime.spark.state.deployments import Deployments
    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.wire import Message

__all__ = ["SparkArchives"]


class SparkArchives(KeptStreams):
    """The kept rows of all streams, as the driver knows them."""

    def open_at(self, streams: Mapping[str, StreamEntry], batch_log: BatchLog) -> None:
        """Keep the past of streams from now on; what batches kept that are not done is removed.

        Raises:
            RunError: An archive is damaged.
        """
        newest, marks = batch_log.newest, batch_log.watermarks
        come = {name: Time(max(newest.get(name, -1) + 1, marks.get(name, 0))) for name in streams}
        self.open(streams, come, batch_log.ended + 1)

    def begin(
        self,
        batch: int,
        inputs: Mapping[str, tuple[str, Time]],
        epochs: Mapping[str, int],
        batch_log: BatchLog,
    ) -> None:
        """Decide what is replayed in a batch, and write it down.

        Args:
            batch: The batch, which is still to be delivered.
            inputs: The inputs that are filled with kept rows, with their streams, and from which
                instant on; those of queries that have run are filled as far as the log says.
            epochs: When the queries of inputs began.
            batch_log: What is known when a batch begins.
        """
        self.replays = {r: one for r, one in batch_log.replays.items() if r in inputs}
        ran = batch_log.ran
        self.fill({r: one for r, one in inputs.items() if epochs[r] > ran}, batch)
        reached = {rows: replay.watermark for rows, replay in self.advance().items()}
        batch_log.replay(batch, self.replays, reached, self.leg())

    def run(
        self,
        spark: SparkSession,
        deployment: Deployment,
        deployments: Deployments,
        batch: int,
        begun: Beginning,
    ) -> None:
        """Read what is replayed in a batch, and leave it for the first stage.

        Raises:
            RunError: Kept rows cannot be read.
        """
        if not begun.replays:
            return
        chosen = {
            rows: pieces(replay, self.by_stream, Leg(*begun.leg))
            for rows, replay in begun.replays.items()
            if rows in deployment.replayed
        }
        relay = Relay(deployments.relay)
        relay.begin(batch)
        shares = _shares(batch, chosen, spark.sparkContext.defaultParallelism)
        if len(shares) == 1 or sum(p.rows for s in chosen.values() for p in s) < _ROWS_OF_A_TASK:
            for share in shares:  # to start tasks takes longer
                relay.put(batch, share.number, share.messages(deployment, deployments.kept))
            return
        work = partial(_replay, deployments, deployment.version, tuple(shares))
        frame = spark.range(0, len(shares), 1, len(shares))
        frame.mapInArrow(work, "messages long").toArrow()

    def take(self, batch: int, messages: Sequence[Message], watermarks: Mapping[str, int]) -> None:
        """Keep what the tasks of a batch have written, before the batch counts as done.

        Raises:
            OSError: It cannot be written.
        """
        entries = {
            stream: Entry(batch, watermarks.get(stream, 0), tuple(some))
            for stream, some in kept_pieces(messages).items()
        }
        self.add(entries, watermarks)

    def left(self, begun: Beginning) -> dict[str, Replay]:
        """What is still to be replayed after a batch."""
        leg = Leg(*begun.leg)
        later = {rows: advanced(r, self.by_stream, leg) for rows, r in begun.replays.items()}
        return {rows: replay for rows, replay in later.items() if not replay.is_over}


_ROWS_OF_A_TASK = 20_000
"""So many rows are read here: a job takes longer to start than that takes."""


def _shares(batch: int, chosen: Mapping[str, list[Piece]], tasks: int) -> list[Share]:
    """Pieces for so many tasks, about as many rows for each; those that follow stay together."""
    count = max(1, min(tasks, max((len(some) for some in chosen.values()), default=1)))
    dealt: list[dict[str, list[Piece]]] = [{} for _ in range(count)]
    for rows, some in chosen.items():
        total, before = sum(piece.rows for piece in some), 0
        for piece in some:
            dealt[before * count // total].setdefault(rows, []).append(piece)
            before += piece.rows
    return [
        Share(batch, number, {rows: tuple(some) for rows, some in one.items()})
        for number, one in enumerate(dealt)
    ]


def _replay(
    deployments: Deployments,
    version: str,
    shares: Sequence[Share],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Replay the shares whose numbers come to a task."""
    deployment, relay = deployments.open(version), Relay(deployments.relay)
    for number in (n for batch in batches for n in batch.column("id").to_pylist()):
        share = shares[number]
        count = relay.put(share.batch, number, share.messages(deployment, deployments.kept))
        yield pa.RecordBatch.from_pydict({"messages": [count]})
