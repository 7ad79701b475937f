"""A checkpoint is not opened while the Java process of a killed driver works on it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tidemill.errors import RunError
from tidemill.runtime.spark.state.orphans import JAVA_FILE, await_orphan, forget_java, note_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as found:  # noqa: S607 — any process
        yield found
        found.kill()


def orphaned(directory: Path, java: int, **facts: object) -> None:
    """Let a checkpoint know the Java process of another driver."""
    note_java(directory, java)
    path = directory / JAVA_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "driver": 1, **facts}))


def test_an_orphan_is_waited_for(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    orphaned(tmp_path, process.pid)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            process.kill()  # it is a zombie from now on, which does nothing

    await_orphan(tmp_path, wait=wait)
    assert len(waited) >= 3


def test_an_orphan_that_does_not_end_is_named(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    orphaned(tmp_path, process.pid)
    with pytest.raises(RunError, match=f"by the Java process {process.pid} of a driver") as caught:
        await_orphan(tmp_path, patience=0)
    assert caught.value.hint == f"end process {process.pid}, and start again"


def test_others_are_not_waited_for(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    await_orphan(tmp_path, patience=0)
    note_java(tmp_path, process.pid)
    await_orphan(tmp_path, patience=0)  # it is ours
    orphaned(tmp_path, process.pid, host="elsewhere")
    await_orphan(tmp_path, patience=0)
    orphaned(tmp_path, process.pid, started=1)
    await_orphan(tmp_path, patience=0)  # another process has the number now
    for text in ("", "7", '{"java": 7'):
        (tmp_path / JAVA_FILE).write_text(text)
        await_orphan(tmp_path, patience=0)
    forget_java(tmp_path)
    forget_java(tmp_path)
    assert not (tmp_path / JAVA_FILE).exists()
    note_java(tmp_path, None)
    note_java(tmp_path, 2**22 + 1)  # there is no such process
    assert not (tmp_path / JAVA_FILE).exists()
    assert os.getpid() != 1
