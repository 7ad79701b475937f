"""Ask a system a query in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.measure import Timing
from benchmarks.peers.systems import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.systems import System

__all__ = ["Answered", "ask"]

PATIENCE = 300


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of it.

    Attributes:
        timing: How long the runs that count took; None if there was none.
        processor: The same by the processor.
        outputs: The rows of every run, in files.
        failure: Why it gave no answer, or none to the end; empty if it did.
    """

    timing: Timing | None
    processor: Timing | None
    outputs: tuple[Path, ...]
    failure: str = ""

    def rows(self, run: int) -> pl.DataFrame:
        """The rows of a run."""
        return pl.read_parquet(self.outputs[run])


def ask(system: System, query: str, streams: Path, out: Path, *, cores: int) -> Answered:
    """Let a system answer a query several times on some cores.

    Args:
        system: Who is asked.
        query: The name of the query.
        streams: Where its input is.
        out: Where its outputs go.
        cores: How many cores it may use.
    """
    command = [system.python(), "-m", system.module, query, str(streams), str(out)]
    threads = {"POLARS_MAX_THREADS": str(cores), "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(  # noqa: S603 — ours
            [*command, "--cores", str(cores)],
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Answered(None, None, (), f"no answer in {PATIENCE} s")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"run"')]
    seconds, processor = (
        tuple(run[name] for run in told if run["counts"]) for name in ("seconds", "processor")
    )
    outputs = tuple(out / f"{run['run']}.parquet" for run in told)
    failure = ""
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        failure = f"failed: {said[-1] if said else f'exit code {done.returncode}'}"
    if not seconds:
        return Answered(None, None, outputs, failure or "no run to the end")
    return Answered(Timing(seconds), Timing(processor), outputs, failure)
