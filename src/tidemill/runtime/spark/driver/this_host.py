"""This host: what Spark is told where all of it runs in one process here, and not in executors.

Then batches are small, and what counts is what each costs besides its rows (design note 0003).
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["BUFFERS", "LOOPBACK", "is_here", "sockets", "telling_java", "use_the_quick_manager"]

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

_JAVA = "-XX:TieredStopAtLevel=1"
"""What Java is told where all of it is on this host.

Here Java only carries blobs, and its second compiler, for code that is run millions of times, would
take nearly half a processor from the Python workers in the first minute, to make little faster.
"""

BUFFERS = {"spark.buffer.pageSize": "256k", "spark.broadcast.blockSize": "256k"}
"""How much Java sets aside at a time where all of it is on this host.

In every batch Spark sorts a few messages and sends a few kilobytes to the tasks. For each sort it
would take a part of the heap, up to 64 MB, and 4 MB for each thing it sends, which Java must clear,
and collect soon after.
"""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Where Spark listens where all of it is on this host: it would do so at the address of the host,
for executors that there are not, and for everybody else on the network."""

_SOCKET_NAME = len("/.00000000-0000-0000-0000-000000000000.sock")
"""How many bytes Spark adds to the directory of a socket."""

_SOCKET_PATH = 103
"""How many bytes the path of a socket may have; some systems take a few more."""


def is_here(master: str) -> bool:
    """Whether everything runs in one process, and not in executors, on this host or others.

    >>> is_here("local[*]"), is_here("local-cluster[2,1,1024]")
    (True, False)
    """
    return re.match(r"local(\[|$)", master) is not None


def sockets() -> dict[str, str]:
    """Let Java and its Python workers talk through sockets in the file system, if names are short.

    Through those of the network a task takes some 40 ms longer. That is what it costs where one
    side holds back what is little (Nagle) until the other has confirmed what came before, which it
    puts off; that it is this was not traced.
    """
    directory = tempfile.mkdtemp(prefix="tidemill-sockets-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    if len(os.fsencode(directory)) + _SOCKET_NAME > _SOCKET_PATH:
        return {}
    name = "spark.python.unix.domain.socket"
    return {f"{name}.enabled": "true", f"{name}.dir": directory}


def use_the_quick_manager(spark: SparkSession) -> None:
    """Write files of checkpoints with one child process a file, which sets permissions, not four.

    This manager renames a file and then the checksum beside it, so that a kill in between could
    leave a checksum that does not fit. So there are none; here everything is in one process, and
    this reaches all of it.
    """
    manager = f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)
    java, context = spark._jvm, spark.sparkContext._jsc  # noqa: SLF001 — no other way leads there
    assert java is not None, "Spark runs"
    place = java.java.net.URI("file:///")
    files = java.org.apache.hadoop.fs.FileSystem.get(place, context.hadoopConfiguration())
    files.setWriteChecksum(False)


@contextmanager
def telling_java(master: str | None) -> Iterator[None]:
    """Start Java with our options; those that the user gives Spark come last, and win."""
    name = "JAVA_TOOL_OPTIONS"
    known = os.environ.get(name)
    if master is not None and is_here(master):
        os.environ[name] = f"{_JAVA} {known or ''}".strip()
    try:
        yield
    finally:
        if known is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = known
