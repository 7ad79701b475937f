"""The Spark session: started with what the pipeline needs, and quiet.

What Spark and its Python workers write goes to a log file. A session that is already there is used
as it is, with the settings that can still be made. Where Spark cannot be started, nothing is left
of the attempt, so that the next one begins anew.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tidemill.runtime.spark.driver.java import forget_java, has_ended, hush_java, java_process
from tidemill.runtime.spark.driver.launch import end_java, has_java, java_log, launch_java, new_log
from tidemill.runtime.spark.driver.starting import refuse_what_cannot_start, start_failure
from tidemill.runtime.spark.driver.this_host import (
    BUFFERS,
    LOOPBACK,
    is_here,
    sockets,
    telling_java,
    use_the_quick_manager,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from subprocess import Popen

__all__ = ["Cluster", "open_cluster"]

_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # In this format Spark names what it writes by the attempt at a batch, so that files of one that
    # was stopped are not those of the next. Checkpoints that began with format 1 go on with it.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}
"""What the pipeline needs, and can be set on a session that is already there."""

_TURN = Lock()
"""A process has one Spark, so only one starts it at a time."""


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

    Raises:
        RunError: It cannot be started.
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
        return _fitted(active)
    if not has_java() and "PYSPARK_GATEWAY_PORT" not in os.environ:
        refuse_what_cannot_start(master, memory)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **_SETTINGS,
        "spark.app.name": "tidemill",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.daemon.module": "tidemill.runtime.spark.worker.daemon",
    }
    if master is not None:
        # A local master gives up at the first failure of a task unless it is told to try again.
        settings["spark.master"] = re.sub(r"^local\[([*\d]+)\]$", r"local[\1,4]", master)
    if master is not None and is_here(master):
        settings |= BUFFERS | LOOPBACK | sockets()
    spark = _started(settings, master=master, memory=memory)
    spark.sparkContext.setLogLevel("WARN")
    hush_java(spark.sparkContext)
    return _fitted(spark)


def _started(settings: Mapping[str, str], *, master: str | None, memory: str) -> SparkSession:
    """A new Spark session, in the Java process that is there, or a new one.

    Raises:
        RunError: There is none, and no new Java process either.
    """
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    is_ours = not has_java()
    log = new_log() if is_ours else java_log()
    try:
        if is_ours and log is not None:
            with telling_java(master):
                launch_java(settings, log)
        return builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 — whatever it is, there is no Spark
        told = start_failure(error, log, master=master, memory=memory)
        if is_ours:
            end_java()
        if is_ours and log is not None and str(log) not in str(told):
            log.unlink()
        raise told from None  # what Java says of it has a hundred lines
    except BaseException:
        if is_ours:
            end_java()
        raise


def _fitted(spark: SparkSession) -> Cluster:
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    _send_tasks_whole(spark)
    if is_here(str(spark.sparkContext.master)):
        use_the_quick_manager(spark)
    tasks = max(1, spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    return Cluster(spark, tasks, java_log(), java_process())


def _send_tasks_whole(spark: SparkSession) -> None:
    """Let a task that carries large relations travel as it is.

    Spark would make a broadcast of it, which stateful processors cannot read. Java's configuration
    is asked, since a session that was there before has been configured.
    """
    context = spark.sparkContext._jsc  # noqa: SLF001 — there is no other way to it
    context.sc().conf().set("spark.broadcast.UDFCompressionThreshold", "1g")
