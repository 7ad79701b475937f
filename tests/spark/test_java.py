"""Java is killed: it is said in a sentence, nothing waits for ever, and everything goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import tidemill
from spark.java_killed import define
from tidemill.runtime.spark.driver.java import java_ended


@pytest.mark.spark
@pytest.mark.soak
def test_a_program_goes_on_when_java_is_killed(tmp_path: Path) -> None:
    program = Path(__file__).with_name("java_killed.py")
    done = subprocess.run(  # noqa: S603 — our own program
        [sys.executable, str(program), str(tmp_path)],
        timeout=200,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no traceback of others"
    with tidemill.connect() as session:
        query = define(session, tmp_path)
        session.run()
        expected = query.results()
    assert pl.read_parquet(tmp_path / "answer.parquet").equals(expected)


def test_the_log_says_why_java_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff" * 100_000 + b"\njava.lang.OutOfMemoryError: Java heap space\n\tat x\n")
    error = java_ended(None, str(log))
    assert error.message == (
        "Spark's Java process has ended: java.lang.OutOfMemoryError: Java heap space"
    )
    assert str(log) in str(error.hint)
    log.write_text("#  SIGSEGV (0xb) at pc=0x00, pid=7, tid=8\n")
    assert java_ended(None, str(log)).message.endswith(
        "ended: SIGSEGV (0xb) at pc=0x00, pid=7, tid=8"
    )
    for nothing in (None, str(tmp_path / "nothing")):
        assert java_ended(None, nothing).message == "Spark's Java process has ended"
    with subprocess.Popen([sys.executable, "-c", "exit(3)"]) as process:
        process.wait()
    assert java_ended(process, None).message == "Spark's Java process has ended: exit code 3"
