"""The pipeline: all queries of a catalog as one streaming query of Spark's.

sources -> intake -> stage 1 -> … -> stage n -> delivery
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tidemill.runtime.spark.driver.control import control_messages
from tidemill.runtime.spark.io.sources import stream_messages
from tidemill.runtime.spark.worker.processor import StageProcessor
from tidemill.runtime.spark.worker.stepping import Task
from tidemill.runtime.spark.worker.wire import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.runtime.connectors import Place
    from tidemill.runtime.spark.driver.cluster import Cluster
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.state.checkpoint import Checkpoint
    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["start_pipeline"]


def start_pipeline(  # noqa: PLR0913 — the parts of the pipeline
    cluster: Cluster,
    deployment: Deployment,
    checkpoint: Checkpoint,
    places: Mapping[str, Place],
    file_logs: Mapping[str, FileLog],
    *,
    deliver: Callable[[DataFrame, int], None],
    every: float | None,
    cache_bytes: int,
) -> StreamingQuery:
    """Start to read, compute and deliver.

    Args:
        cluster: Where to run.
        deployment: What runs where at first; each batch is told the version that it runs.
        checkpoint: Where to take up, and to leave, the state.
        places: Where the rows of each stream come from.
        file_logs: The files of the streams that are read from files here.
        deliver: What is done with the results of a batch.
        every: How often a batch begins, in seconds; ``None`` to stop when all is read.
        cache_bytes: How many bytes the copies of state on each host may take.
    """
    spark, deployments = cluster.spark, checkpoint.deployments
    parts = [control_messages(spark, deployment, checkpoint.control)]
    for name, place in places.items():
        stream = deployment.streams[name]
        parts.append(stream_messages(spark, deployments, stream, place, file_logs.get(name)))
    flow = reduce(lambda above, below: above.unionAll(below), parts)
    for number in range(1, deployment.stages + 1):
        task = Task(deployments, number, str(checkpoint.cache), cache_bytes)
        processor = StageProcessor(task)
        flow = flow.groupBy("pid").transformWithStateInPandas(processor, COLUMNS, "Append", "None")
    writer = flow.writeStream.foreachBatch(deliver).outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint.spark))
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(every * 1000)} milliseconds").start()
