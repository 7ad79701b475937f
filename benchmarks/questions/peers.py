"""How Tidemill's local engine compares with other systems on the same four queries.

Law: no time of Tidemill counts before its rows are those of DuckDB, and none of a peer before its
rows are Tidemill's. A peer that gives others, or none, is told so in the table: it is a finding.
A peer that is not installed is left out with a word. See ``benchmarks.peers`` for what is fair.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from benchmarks.harness.inputs import Input
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.peers.asking import ask
from benchmarks.peers.queries import QUERIES
from benchmarks.peers.report import COLUMNS, EQUAL, behind, left_out, line, rounds
from benchmarks.peers.stopwatch import LONG, SHORT
from benchmarks.peers.systems import PEERS, TIDEMILL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from benchmarks.peers.asking import Answered
    from benchmarks.peers.report import Round

INPUTS = {
    "large": {
        "s": Input(files=5, rows=30_000, rate=1_000, keys=1_000),
        "a": Input(files=5, rows=30_000, rate=1_000, keys=100_000),
        "b": Input(files=5, rows=30_000, rate=1_000, keys=100_000),
    },
    "small": {
        "s": Input(files=4, rows=3_000, rate=100, keys=100),
        "a": Input(files=4, rows=3_000, rate=100, keys=10_000),
        "b": Input(files=4, rows=3_000, rate=100, keys=10_000),
    },
}
"""Thirty seconds a file. Both have as many rows of a key in a window, so as much work for a row."""


def rows_in(query: str, size: str) -> int:
    """How many rows a query reads of an input."""
    streams = (INPUTS[size][name] for name in QUERIES[query].streams)
    return sum(stream.files * stream.rows for stream in streams)


@cache
def defined(query: str, streams: Path) -> pl.DataFrame:
    """What DuckDB makes of the definition of a query."""
    asked = QUERIES[query]
    with duckdb.connect() as connection:
        for name in asked.streams:
            connection.execute(
                f'CREATE VIEW {name} AS SELECT key, value, epoch_us("at") AS "at" '
                f"FROM '{streams / name}/*.parquet'"
            )
        found = pl.from_arrow(connection.sql(asked.duckdb).to_arrow_table())
    assert isinstance(found, pl.DataFrame), "a table is a frame"
    return found.select(asked.columns)


def asked(round_: Round, context: Context) -> Iterator[tuple[Cell, ...]]:
    """The rows of the table for those who are asked the same.

    Raises:
        WrongAnswerError: Tidemill gives other rows than DuckDB, or none.
    """
    streams = context.folder / round_.size
    wanted = defined(round_.query, streams)
    own: Answered | None = None
    for system in (TIDEMILL, *round_.peers):
        context.progress(f"{round_.query}: {system.name}, {round_.size} input")
        out = context.folder / f"{system.name}-{round_.query}-{round_.size}-{round_.cores}"
        answered = ask(system, round_.query, streams, out, cores=round_.cores)
        own = own or answered
        row = line(round_, system, answered, wanted, own)
        if system is TIDEMILL and row[-1] != EQUAL:
            raise WrongAnswerError(f"Tidemill, {round_.query}, against DuckDB: {row[-1]}")
        yield row


def answers(context: Context) -> Iterator[Table]:
    """What each takes, and what that means."""
    for size, streams in INPUTS.items():
        for number, (name, stream) in enumerate(streams.items()):
            stream.write(context.folder / size / name, seed=context.seed + 10 * number)
    there = [peer for peer in PEERS if peer.missing() is None]
    before = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    found = [row for round_ in rounds(there, cores, rows_in) for row in asked(round_, context)]
    after = os.getloadavg()[0]
    yield Table(
        "Four queries on other systems: the median of three runs after one to warm up",
        COLUMNS,
        (*found, *left_out()),
        (
            behind(found),
            "A ratio is to Tidemill on the same rows and cores: below 1, Tidemill is faster.",
            f"A first run counts if it takes {SHORT:.0f} s; one of {LONG:.0f} s is the last.",
            "Where others use the machine, short runs suffer less: there, compare by CPU.",
            (
                f"The load was {before:.1f} before and {after:.1f} at the end, on {cores} cores: "
                "before, nothing of this was running."
            ),
        ),
    )
    yield Table(
        "What is timed",
        ("system", "packages", "from where to where"),
        tuple(
            (system.name, ", ".join(system.packages) or "this project", system.timed)
            for system in (TIDEMILL, *there)
        ),
    )


QUESTION = Question("peers", "How the local engine compares with other systems", answers)
