"""A pipeline of the local engine that is killed goes on; it loses and doubles nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from random import Random
from time import sleep

import polars as pl

import tidemill
from running.killed import STEP_ROWS, TEXTS
from running.shop import define, write
from tidemill.runtime.answers import Answer

KILLS = int(os.environ.get("TIDEMILL_KILLS", "3"))
"""At random moments, besides one after each stage that writes; ``make soak`` sets more."""

FILES = 80
ROWS = FILES * STEP_ROWS


def started(root: Path, *words: str, program: str = "running.killed") -> subprocess.Popen[bytes]:
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    process = subprocess.Popen(  # noqa: S603 — our own program
        [sys.executable, "-m", program, str(root), *words],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == b"ready\n"
    return process


def test_a_killed_pipeline_goes_on(tmp_path: Path) -> None:
    source, random = tmp_path / "in", Random(KILLS)  # noqa: S311 — the same moments every time
    files = iter(range(0, ROWS, STEP_ROWS))
    for first in islice(files, FILES // 2):
        write(source, first, first + STEP_ROWS)
    for step, stage in enumerate(("note", "deliver", "save", "commit")):
        process = started(tmp_path, stage, str(step % 3))
        assert process.wait(60) == -signal.SIGKILL, "it has killed itself"
    for _ in range(KILLS):
        for first in islice(files, FILES // 2 // KILLS):
            write(source, first, first + STEP_ROWS)
        process = started(tmp_path)
        sleep(random.uniform(0, 0.2))
        assert process.poll() is None, "it is killed while it runs"
        process.kill()
        process.wait()
    for first in files:
        write(source, first, first + STEP_ROWS)
    assert started(tmp_path, "end").wait(60) == 0
    steps: set[str] = set()
    with tidemill.connect() as whole:
        define(whole, source)
        queries = [whole.query(text) for text in TEXTS]
        whole.run()
        for number, query in enumerate(queries):
            parts = sorted((tmp_path / f"out{number}").glob("batch=*/part-*.parquet"))
            steps.update(path.parent.name for path in parts)
            frames = [pl.read_parquet(p, glob=False, hive_partitioning=False) for p in parts]
            assert given(query, frames).equals(query.results()), query.name
        assert len(steps) > FILES // 2, "there were many steps"
        assert given(queries[0], taken(tmp_path, queries[0])).equals(queries[0].results())


def given(query: tidemill.Query, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """What was given of an answer, piece by piece, in the form of ``results``."""
    answer = Answer(query.schema)
    answer.read(frames)
    return answer.results()


def taken(root: Path, query: tidemill.Query) -> list[pl.DataFrame]:
    """What the function got; a batch that came twice was the same."""
    batches: dict[int, list[dict[str, int]]] = {}
    again = 0
    for line in (root / "taken.jsonl").read_text().splitlines():
        found = json.loads(line)
        again += found["batch"] in batches
        assert batches.setdefault(found["batch"], found["rows"]) == found["rows"]
    assert again, "some batch came twice"
    types = query.results().schema
    return [pl.DataFrame(rows, schema=types, orient="row") for rows in batches.values()]
