"""What the scripts of all systems share: what they are asked, and how they tell what it took.

    python -m benchmarks.peers.<system>_queries QUERY INPUT OUTPUT [--repeat N] [--cores N]

A script runs in the environment of its system, so this file needs nothing but pyarrow. It reads
the streams in the folder INPUT, answers QUERY several times, writes the rows of each run to
OUTPUT/<run>.parquet, and prints a line of JSON for each:

    {"run": 0, "seconds": 1.5, "processor": 1.25, "counts": false}

Law: the seconds of a run lie between its first row in and its last row out; starting the process,
importing, converting the input to what the system likes best, and writing OUTPUT do not count. Nor
does the first run, unless it takes so long that what happens only once does not matter. A run that
takes longer than a minute is the last one. The seconds of the processor are those of all threads
and of all processes that the script has started: on a machine that others use, they say more.
"""

# ruff: noqa: T201 — it prints

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["LONG", "SHORT", "Run", "Task", "Took", "main", "microseconds", "read", "took"]

SHORT = 20.0
LONG = 60.0


@dataclass(frozen=True, slots=True)
class Took:
    """How long a run took.

    Attributes:
        seconds: By the clock.
        processor: By the processor: the sum over all threads and processes.
    """

    seconds: float
    processor: float


Run: TypeAlias = Callable[[], tuple[Took, pa.Table]]
"""Answers a query once: how long it took, and the rows."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a script is asked.

    Attributes:
        query: Which query: filter, sum, join or distinct.
        folder: Where the streams are, a folder of Parquet files each.
        scratch: A folder for what the system wants to have in files.
        cores: How many cores it may use.
    """

    query: str
    folder: Path
    scratch: Path
    cores: int

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that the query reads."""
        return ("a", "b") if self.query == "join" else ("s",)


def read(folder: Path) -> pa.Table:
    """The rows of a stream in the order of time; ``at`` becomes microseconds since 1970."""
    table = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))
    return microseconds(table, "at")


def microseconds(table: pa.Table, name: str) -> pa.Table:
    """The table with a column of times as whole microseconds since 1970."""
    times = pc.cast(table[name], pa.timestamp("us", table[name].type.tz)).cast(pa.int64())
    return table.set_column(table.column_names.index(name), name, times)


def took(work: Callable[[], object]) -> Took:
    """How long some work takes."""
    below = _below()
    used, began = process_time(), perf_counter()
    work()
    seconds, own = perf_counter() - began, process_time() - used
    return Took(seconds, own + _below() - below)


def _below() -> float:
    """The seconds of the processor that all processes below this one have used."""
    ticks: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):  # it has ended since
            continue
        fields = text.rpartition(")")[2].split()  # from the third on: state, parent, …
        process = int(stat.parent.name)
        ticks[process] = int(fields[11]) + int(fields[12])
        below.setdefault(int(fields[1]), []).append(process)
    waiting, total = list(below.get(os.getpid(), ())), 0
    while waiting:
        process = waiting.pop()
        total += ticks[process]
        waiting += below.get(process, ())
    return total / os.sysconf("SC_CLK_TCK")


def main(prepare: Callable[[Task], Run]) -> None:
    """Do what the command line asks.

    Args:
        prepare: Reads and converts the input of a task, and gives the function that is timed.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=["filter", "sum", "join", "distinct"])
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, default=1)
    given = parser.parse_args()
    # Before anything starts a thread, since threads inherit it.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    scratch = given.output / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    run = prepare(Task(given.query, given.input, scratch, given.cores))
    left, number = given.repeat, 0
    while left:
        time, rows = run()
        counts = number > 0 or time.seconds > SHORT
        pq.write_table(rows, given.output / f"{number}.parquet")
        print(json.dumps({"run": number, **asdict(time), "counts": counts}), flush=True)
        left = 0 if time.seconds > LONG else left - counts
        number += 1
