"""Whether Tidemill's answers to NEXMark's queries are those of DuckDB, at many instants.

    python -m benchmarks.nexmark.check [--events n] [--seed n] [--disorder microseconds]

Events are few and slow, 100 a second, so that windows move often; the day changes half-way. All
queries run at once on the local engine, with one partition and with three. Then each is asked about
instants: the first and the last, one before and some behind them, those at which windows move and
the ones before, some by chance, and some at which its own rows come and go. At each instant the
rows that windows hold are given to DuckDB, which runs the same SELECT over them; both must find the
same bag of rows. Nothing is rounded: sums are of whole numbers, and means are their quotients.
Queries that look at one row at a time are compared over all instants as well.
"""

# ruff: noqa: T201 — a benchmark prints

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

if __package__ in (None, ""):  # run as a program
    sys.path.insert(0, str(Path(__file__).parents[2]))

import duckdb
import polars as pl

import tidemill
from benchmarks.harness.comparable import same_rows
from benchmarks.nexmark.generator import around_midnight, write
from benchmarks.nexmark.queries import ASKED, MACROS, QUESTIONS, declarations
from tidemill.demo.chance import Chance
from tidemill.demo.events import SECOND
from tidemill.demo.nexmark import STREAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.nexmark.question import Question
    from tidemill.demo.nexmark import Site
    from tidemill.runtime.answers import Answer

__all__ = [
    "Finding",
    "check",
    "compare",
    "database_of",
    "instants",
    "own_instants",
    "run",
    "slow_site",
]

Rows: TypeAlias = Counter[tuple[object, ...]]

_RATE = 100
_SLIDES = (2 * SECOND, 10 * SECOND)
_RANGES = (10 * SECOND, 60 * SECOND, 86_400 * SECOND)
_FOR_EVER = 2**63 - 1
_FILES = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """How often an answer was looked at, and where it was wrong.

    Attributes:
        question: What was asked.
        instants: At how many instants.
        rows: How many rows were compared.
        wrong: The instants at which others were expected; ``None`` for all instants together.
    """

    question: Question
    instants: int
    rows: int
    wrong: tuple[int | None, ...]


def slow_site(events: int, seed: int, *, disorder: int) -> Site:
    """A site with few events a second, on which the day changes half-way."""
    return around_midnight(events, seed, rate=_RATE, disorder=disorder)


def check(
    site: Site, directory: Path, *, partitions: int, common: Sequence[int], own: int
) -> list[Finding]:
    """Run all queries and ask each about instants.

    Args:
        site: What happens.
        directory: Where its files are.
        partitions: In how many partitions the engine keeps its state.
        common: Instants at which every query is asked.
        own: At how many others, about, each is asked, at which its rows come and go.
    """
    session = run(site, directory, partitions=partitions)
    database = database_of(directory)
    findings = []
    for question in ASKED:
        answer = session.answer(question.name)
        at = sorted({*common, *own_instants(answer.results(), own)})
        findings.append(compare(question, answer, database, at))
    return findings


def run(site: Site, directory: Path, *, partitions: int) -> tidemill.Session:
    """A session that has run all queries."""
    session = tidemill.connect(engine="local", partitions=partitions)
    session.sql(declarations(site, directory))
    for question in ASKED:
        session.sql(f"CREATE QUERY {question.name} AS {question.sql}")
    session.run()
    assert not session.refused()["rows"].sum(), "rows keep the promise of WITHIN"
    return session


def instants(site: Site, count: int) -> list[int]:
    """Instants of all kinds: at the ends, where windows move, and by chance."""
    first, last = site.begins(), site.ends()
    edges = [first - 1, first, first + 1, last - 1, last, last + 1]
    behind = [last + size + more for size in _RANGES for more in (-1, 0)]
    span = last - first
    moves = [
        (first + span * part // 4) // slide * slide + more
        for part in (1, 2, 3)
        for slide in _SLIDES
        for more in (-1, 0)
    ]
    few = max(2, (count - len(edges) - len(behind) - len(moves)) // 2)
    positions = pl.int_range(few, dtype=pl.Int64, eager=True)
    events = Chance(site.seed).below(site.events, positions, lane="instants")
    times = Chance(site.seed).below(span + 1, positions, lane="times")
    chosen = [first + event * SECOND // site.rate for event in events]
    return sorted({*edges, *behind, *moves, *chosen, *(first + time for time in times)})


def own_instants(results: pl.DataFrame, count: int) -> list[int]:
    """Instants at which rows of an answer come, are there for the last time, and are gone."""
    some = results.gather_every(max(1, results.height * 3 // count))
    starts, ends = some["start"].to_list(), some["end"].to_list()
    return [*starts, *(end - 1 for end in ends), *(end for end in ends if end < _FOR_EVER)]


def compare(
    question: Question,
    answer: Answer,
    database: duckdb.DuckDBPyConnection,
    instants: Sequence[int],
) -> Finding:
    """Compare an answer at some instants, and over all if it looks at one row at a time."""
    rows, wrong = 0, list[int | None]()
    for at in instants:
        found = answer.snapshot(at)
        rows += found.height
        if not _is_expected(found, question, database, at):
            wrong.append(at)
    if question.stateless:
        everything = answer.results().drop("start", "end")
        rows += everything.height
        if not _is_expected(everything, question, database, None):
            wrong.append(None)
    return Finding(question, len(instants), rows, tuple(wrong))


def database_of(directory: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB with tables of everything that happens."""
    database = duckdb.connect(config={"threads": 1})
    for name in (*STREAMS, "side"):
        database.execute(f"CREATE TABLE {name} AS FROM '{directory}/{name}/*.parquet'")
    database.execute(MACROS)
    return database


def _is_expected(
    found: pl.DataFrame, question: Question, database: duckdb.DuckDBPyConnection, at: int | None
) -> bool:
    """Whether DuckDB finds the same bag of rows."""
    assert question.duckdb is not None, "what is asked is asked of both"
    database.execute(f"SET VARIABLE t = {'NULL' if at is None else at}::BIGINT")
    if same_rows(found, _frame(database, question.duckdb)):
        return True
    # Rows of Python's are slow, but their numbers are equal whatever their types are.
    expected: Rows = Counter(database.execute(question.duckdb).fetchall())
    return Counter(found.rows()) == expected


def _frame(database: duckdb.DuckDBPyConnection, text: str) -> pl.DataFrame:
    frame = pl.from_arrow(database.sql(text).to_arrow_table())
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disorder", type=int, default=SECOND, help="in microseconds")
    parser.add_argument("--instants", type=int, default=40)
    asked = parser.parse_args()
    site = slow_site(asked.events, asked.seed, disorder=asked.disorder)
    is_wrong = False
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write(directory, site, files=_FILES)
        common = instants(site, asked.instants)
        for partitions in (1, 3):
            began = perf_counter()
            findings = check(
                site, directory, partitions=partitions, common=common, own=asked.instants // 2
            )
            time = perf_counter() - began
            print(f"{site.events:,} events, partitions: {partitions}, {time:.0f} s\n")
            _print(findings)
            is_wrong = is_wrong or any(finding.wrong for finding in findings)
    sys.exit(is_wrong)


def _print(findings: Sequence[Finding]) -> None:
    found = {finding.question.name: finding for finding in findings}
    print("| query | asks | instants | rows | ok |")
    print("|---|---|---:|---:|---|")
    for question in QUESTIONS:
        if question.name not in found:
            print(f"| {question.name} | {question.title} | | | missing: {question.missing} |")
            continue
        finding = found[question.name]
        ok = "NO" if finding.wrong else "yes"
        print(
            f"| {question.name} | {question.title} | {finding.instants} | {finding.rows:,} | {ok} |"
        )
    for finding in findings:
        if finding.wrong:
            print(f"\n{finding.question.name} is wrong at {finding.wrong}")
    print()


if __name__ == "__main__":
    main()
