"""What is asked of a replay that is killed, on whatever engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl

from running.replayed import BEGUN, FILE_ROWS, connected
from running.shop import bags, expected, write

__all__ = ["killed_process", "killed_while_replaying"]

LAST = 160


def killed_process(engine: str, root: Path, point: str, after: int) -> None:
    """Let a process replay until it kills itself at a point."""
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    ran = subprocess.run(  # noqa: S603 — this interpreter
        [sys.executable, "-m", "running.replayed", engine, str(root), point, str(after)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]


def killed_while_replaying(engine: str, root: Path, point: str, after: int) -> None:
    """Kill a process at a point, go on with another one, and compare at every instant."""
    killed_process(engine, root, point, after)
    with connected(engine, root, rows=7) as session:  # what was cut short goes as far as it had
        session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        session.start()
        for first in range(BEGUN, LAST, FILE_ROWS):
            if not (root / "in" / f"{first:06d}.parquet").exists():
                write(root / "in", first, first + FILE_ROWS)
        session.await_idle()
        parts = {name: session.versions(name) for name in ("changed", "late")}
    for name, frame in parts.items():
        answers = [
            (since, until, bags(expected(root / "in", text[text.index("SELECT") :]), LAST))
            for _, text, _, since, until in frame.rows()
        ]
        found = bags(_delivered(root / name), LAST)
        for time in range(LAST - 5):
            there = [right[time] for since, until, right in answers if since <= time < until]
            assert len(there) <= 1, "each instant has one answer"
            assert [found[time]] == (there or [Counter()]), f"{name} at {time}"


def _delivered(directory: Path) -> pl.DataFrame:
    """What is in the files of a sink."""
    files = sorted(directory.glob("batch=*/*.parquet"))
    return pl.concat(pl.read_parquet(file, hive_partitioning=False) for file in files)
