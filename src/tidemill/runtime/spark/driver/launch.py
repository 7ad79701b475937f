"""Launching Java, the process that Spark runs in, and ending it.

PySpark keeps one Java process for the life of this one. A Java process in which Spark could not be
started must not stand in the way of the next attempt, so it is ended here, and forgotten.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from tidemill.runtime.spark.driver.java import forget_java

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["end_java", "has_java", "java_log", "launch_java", "new_log"]

_PATIENCE = 5.0
"""How long Java may take to end by itself, in seconds."""

_LOGS: dict[int, Path] = {}
"""The logs of the Java processes that were started here, by their numbers."""

# What goes wrong between Python and Java is raised; without this it would be printed as well.
logging.getLogger("py4j").addHandler(logging.NullHandler())


def has_java() -> bool:
    """Whether this process has a Java process."""
    return SparkContext._gateway is not None  # noqa: SLF001 — PySpark does not tell


def java_log() -> Path | None:
    """Where the Java process writes, if it was started here."""
    process = None if SparkContext._gateway is None else SparkContext._gateway.proc  # noqa: SLF001
    return None if process is None else _LOGS.get(process.pid)


def new_log() -> Path:
    """An empty log, which only its owner can read."""
    file, path = tempfile.mkstemp(prefix="tidemill-spark-", suffix=".log")
    os.close(file)
    return Path(path)


def launch_java(settings: Mapping[str, str], log: Path) -> None:
    """Start Java; all that it and the processes it starts write goes to the log.

    Raises:
        PySparkRuntimeError: It has ended before it could be talked to.
        OSError: The program that starts it is not there.
    """
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    with log.open("ab") as file:
        output = {"stdout": file, "stderr": file}
        gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
    if gateway.proc is not None:
        _LOGS[gateway.proc.pid] = log
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 — no other way leads there


def end_java() -> None:
    """End the Java process, if there is one, so that the next Spark starts another."""
    gateway = SparkContext._gateway  # noqa: SLF001 — PySpark does not tell
    if gateway is None:
        return
    with suppress(Py4JError, OSError):  # it may be dead already
        gateway.shutdown()
    process = gateway.proc
    if process is not None:
        # Java ends when its standard input is closed.
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except TimeoutExpired:
            process.kill()
            process.wait()
    forget_java()
