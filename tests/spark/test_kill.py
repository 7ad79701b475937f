"""A pipeline whose process is killed goes on where it was, and loses and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep

import polars as pl
import pytest

import tidemill
from spark.on_spark import write_files
from spark.pipeline import QUERIES, define
from tidemill.catalog.entries import QueryEntry
from tidemill.runtime.answers import Answer
from tidemill.runtime.lock import LOCK_FILE, take_lock

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("TIDEMILL_KILLS", "2"))
"""``make soak`` sets more."""

FILES = 2 * KILLS + 4
"""One a batch; a kill comes every second batch, or a little later."""

PATIENCE = 300


def started(source: Path, output: Path, checkpoint: Path) -> subprocess.Popen[bytes]:
    """The pipeline in a process group of its own, so that all of it can be killed."""
    program = Path(__file__).with_name("pipeline.py")
    return subprocess.Popen(  # noqa: S603 — our own program
        [sys.executable, str(program), *map(str, (source, output, checkpoint))],
        start_new_session=True,
    )


def batches(checkpoint: Path) -> int:
    """How many batches have been begun."""
    found = (checkpoint / "spark" / "offsets").glob("[0-9]*")
    return len(list(found))


def wait_for_batch(process: subprocess.Popen[bytes], checkpoint: Path, number: int) -> None:
    end = monotonic() + PATIENCE
    while batches(checkpoint) < number and process.poll() is None:
        assert monotonic() < end, "the pipeline does not get on"
        sleep(0.05)


def await_lock(process: subprocess.Popen[bytes], checkpoint: Path) -> None:
    """Wait until the pipeline holds the lock; the batches may be those of the one before."""
    end = monotonic() + PATIENCE
    while f'"pid": {process.pid},' not in (checkpoint / LOCK_FILE).read_text(encoding="utf-8"):
        assert monotonic() < end, "the pipeline does not take the lock"
        sleep(0.05)
    with pytest.raises(tidemill.RunError, match=f"in use by process {process.pid} "):
        take_lock(checkpoint)


def test_a_killed_pipeline_goes_on(tmp_path: Path) -> None:
    source, output, checkpoint = (tmp_path / name for name in ("in", "out", "state"))
    times = list(range(75 * FILES))
    frame = pl.DataFrame(
        {"k": [t * t % 5 for t in times], "v": [t * 7 % 10 for t in times], "t": times}
    )
    write_files(source, frame, len(times) // FILES)
    random = Random(KILLS)  # noqa: S311 — the same moments every time, as far as that goes
    for kill in range(KILLS):
        process = started(source, output, checkpoint)
        wait_for_batch(process, checkpoint, 1 + 2 * kill)
        sleep(random.uniform(0, 0.6))  # somewhere in a batch
        assert process.poll() is None, "it is killed while it runs"
        await_lock(process, checkpoint)
        process.kill()  # Java and the workers live on for a moment, and hold no lock
        process.wait()
        take_lock(checkpoint).release()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process = started(source, output, checkpoint)
    assert process.wait(PATIENCE) == 0

    with tidemill.connect() as session:
        define(session, source)
        session.run()
        for name in QUERIES:
            expected = session.answer(name)
            assert written(output / name, session, name).equals(expected.results()), name


def written(directory: Path, session: tidemill.Session, name: str) -> pl.DataFrame:
    """The answer that files hold, in the form of ``results``."""
    entry = session.catalog.find(name)
    assert isinstance(entry, QueryEntry)
    answer = Answer(entry.plan.schema)
    answer.read(pl.read_parquet(file) for file in sorted(directory.glob("batch=*/*.parquet")))
    return answer.results()
