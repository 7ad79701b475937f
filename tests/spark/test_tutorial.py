"""The pipeline of the tutorial: it is killed in the middle of its work, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "survive_a_kill.py"
PAGE = ROOT / "docs" / "tutorials" / "survive-a-kill.md"
SHOWN = re.compile(r"^\$ python survive_a_kill\.py (?!run).*\n((?:(?!```).*\n)+)", re.MULTILINE)
PATIENCE = 120


def carry_out(directory: Path, *arguments: str) -> str:
    """What the program says."""
    command = [sys.executable, str(PROGRAM), *arguments]
    done = subprocess.run(  # noqa: S603 — our own program
        command, cwd=directory, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_and_kill(directory: Path) -> None:
    """Run the pipeline, and kill it as soon as it has written something."""
    process = subprocess.Popen(  # noqa: S603 — our own program
        [sys.executable, str(PROGRAM), "run"],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = monotonic() + PATIENCE
    while not list((directory / "tops").glob("batch=*")):
        assert process.poll() is None, "it is killed while it runs"
        assert monotonic() < end, "the pipeline does not get on"
        sleep(0.05)
    process.kill()
    process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # Java and the workers


def test_the_pipeline_of_the_tutorial_survives_a_kill(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    said = [carry_out(tmp_path, "bids", "4")]
    run_and_kill(tmp_path)
    said += [carry_out(tmp_path, *words) for words in (["bids", "4"], ["finish"], ["compare"])]
    assert "the files are what an uninterrupted run gives" in said[-1]
    shown = re.findall(
        r"^\$ python survive_a_kill\.py (?!run).*\n((?:(?!```).*\n)+)", page, re.MULTILINE
    )
    assert said == shown, "the page shows what is said"
