"""A change outlasts kills at every point between statement, record, log of batches and commit.

After the kill the checkpoint is opened without a script. Either the change was written down, and
the sink gets the formula of it, or it was not, and the query goes on as it was; another query goes
on in any case. What is in the files is applied, and compared at every instant.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import tidemill
from running.shop import bags, expected, write
from spark.changed import LAST, NEW, OLD, POINTS
from spark.on_spark import MASTER

pytestmark = pytest.mark.spark

SOME = ("after end",)
"""Those that are tried every time."""

UNTIL = 81
"""From there on the new version answers, as can be told when 50 rows have come."""


@pytest.mark.parametrize(
    "point", [p if p in SOME else pytest.param(p, marks=pytest.mark.soak) for p in POINTS]
)
def test_a_change_that_is_killed_is_done_or_not(tmp_path: Path, point: str) -> None:
    source, output, checkpoint = (tmp_path / name for name in ("in", "out", "state"))
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    program = [sys.executable, str(tests / "spark" / "changed.py")]
    ran = subprocess.run(  # noqa: S603 — this interpreter
        [*program, str(source), str(output), str(checkpoint), point],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    with tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
    ) as session:
        session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        shown = session.sql("SHOW QUERIES")
        assert isinstance(shown, pl.DataFrame)
        assert sorted(shown["name"]) == ["changed", "other"]
        session.start()
        for first in range(50, LAST, 25):
            if not (source / f"{first:06d}.parquet").exists():
                write(source, first, first + 25)
            session.await_idle()
        versions = session.versions("changed")["version"].max()
    old, new = bags(expected(source, OLD), LAST), bags(expected(source, NEW), LAST)
    is_done = versions == 2
    assert is_done is (point != "before the record")
    found = {name: bags(delivered(output / name), LAST) for name in ("changed", "other")}
    for time in range(LAST - 5):
        wanted = new[time] if is_done and time >= UNTIL else old[time]
        assert found["changed"][time] == wanted, f"changed at {time}"
        assert found["other"][time] == old[time], f"other at {time}"


def delivered(directory: Path) -> pl.DataFrame:
    """What is in the files of a sink."""
    files = sorted(directory.glob("batch=*/*.parquet"))
    return pl.concat(pl.read_parquet(file, hive_partitioning=False) for file in files)
