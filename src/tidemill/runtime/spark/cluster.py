"""The Spark session: started with what the pipeline needs, and quiet.

What Spark and its Python workers write goes to a log file. A session that is already there is used
as it is, with the settings that can still be made.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tidemill.runtime.spark.java import forget_java, has_ended, hush_java, java_process
from tidemill.runtime.spark.this_host import (
    BUFFERS,
    is_here,
    sockets,
    telling_java,
    use_the_quick_manager,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import Popen

__all__ = ["Cluster", "open_cluster"]

_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}
"""What the pipeline needs, and can be set on a session that is already there."""

_TURN = Lock()
"""Starting moves standard output for a moment, so only one does it at a time."""

_LOGS: dict[str, Path] = {}
"""The logs of the Sparks that were started here."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Spark session, how many tasks it runs at a time, where its log is, and its Java process."""

    spark: SparkSession
    tasks: int
    log: Path | None
    java: Popen[bytes] | None = None


def open_cluster(master: str | None, memory: str) -> Cluster:
    """The Spark session of this process; started if there is none.

    Args:
        master: Where to run, as Spark writes it.
        memory: How much memory the driver gets; with a local master it is all there is.
    """
    with _TURN:
        return _open(master, memory)


def _open(master: str | None, memory: str) -> Cluster:
    if has_ended(java_process()):
        forget_java()
    active: SparkSession | None = None
    with suppress(PySparkRuntimeError):  # there is none
        active = SparkSession.active()
    if active is not None and active.sparkContext._jsc is not None:  # noqa: SLF001 — not stopped
        return _fitted(active, _LOGS.get(active.sparkContext.applicationId))
    log = Path(tempfile.mkstemp(prefix="tidemill-spark-", suffix=".log")[1])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tidemill")
    if master is not None:
        # A local master gives up at the first failure of a task unless it is told to try again.
        builder = builder.master(re.sub(r"^local\[([*\d]+)\]$", r"local[\1,4]", master))
    settings = {
        **_SETTINGS,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.daemon.module": "tidemill.runtime.spark.daemon",
    }
    if master is not None and is_here(master):
        settings |= BUFFERS | sockets()
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _output_to(log), telling_java(master):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    hush_java(spark.sparkContext)
    _LOGS[spark.sparkContext.applicationId] = log
    return _fitted(spark, log)


def _fitted(spark: SparkSession, log: Path | None) -> Cluster:
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    _send_tasks_whole(spark)
    if is_here(str(spark.sparkContext.master)):
        use_the_quick_manager(spark)
    tasks = max(1, spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    return Cluster(spark, tasks, log, java_process())


def _send_tasks_whole(spark: SparkSession) -> None:
    """Let a task that carries large relations travel as it is.

    Spark would make a broadcast of it, which stateful processors cannot read. Java's configuration
    is asked, since a session that was there before has been configured.
    """
    context = spark.sparkContext._jsc  # noqa: SLF001 — there is no other way to it
    context.sc().conf().set("spark.broadcast.UDFCompressionThreshold", "1g")


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """What processes started here write goes to the log; they keep it when this is over."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        for old, number in zip(saved, (1, 2), strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(file)
