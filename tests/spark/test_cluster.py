"""The pipeline on a cluster: a master of Spark's and two workers, whose executors are processes.

It takes minutes to start all of them, so it is part of ``make soak``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pyspark
import pytest

import tidemill
from spark.on_spark import write_files
from spark.pipeline import QUERIES, define
from spark.test_kill import written

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.soak]

HOME = Path(pyspark.__file__).parent
PATIENCE = 600


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        assert isinstance(port, int)
        return port


@contextmanager
def running(name: str, *arguments: str) -> Iterator[None]:
    """A process of Spark's, in a group of its own."""
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(  # noqa: S603 — Spark's own program
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def wait_for(port: int) -> None:
    end = monotonic() + 60
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert monotonic() < end, "the master does not listen"
        sleep(0.2)


def test_a_cluster_gives_the_answers_of_the_local_engine(tmp_path: Path) -> None:
    times = list(range(300))
    frame = pl.DataFrame(
        {"k": [t * t % 5 for t in times], "v": [t * 7 % 10 for t in times], "t": times}
    )
    source = write_files(tmp_path / "in", frame, 75)
    port = free_port()
    master, place = f"spark://127.0.0.1:{port}", ("--host", "127.0.0.1")
    room = ("--cores", "1", "--memory", "2g", "--webui-port", "0", "-d", str(tmp_path / "work"))
    program = Path(__file__).with_name("pipeline.py")
    paths = source, tmp_path / "out", tmp_path / "state"
    with running("master.Master", *place, "--port", str(port), "--webui-port", "0"):
        wait_for(port)
        with running("worker.Worker", *room, master), running("worker.Worker", *room, master):
            command = [sys.executable, str(program), *map(str, paths), master]
            assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0  # noqa: S603
    with tidemill.connect() as session:
        define(session, source)
        session.run()
        for name in QUERIES:
            expected = session.answer(name).results()
            assert written(tmp_path / "out" / name, session, name).equals(expected), name
