"""Answers: their latest rows, and a summary of what a run has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.cli.excerpt import excerpt_lines, excerpt_of
from tidemill.cli.meter import averaged
from tidemill.cli.present import is_kept, present_excerpt, queries_of
from tidemill.cli.units import rate_text, seconds_text
from tidemill.cli.view import tables
from tidemill.model.time import END_OF_TIME, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from tidemill.cli.excerpt import Excerpt
    from tidemill.cli.meter import Reading
    from tidemill.runtime.answers import Answer
    from tidemill.session import Session

__all__ = ["print_answers", "print_summary"]


def print_summary(console: Console, reading: Reading, places: Mapping[str, str]) -> None:
    """What came in, what came out and where it went, and how fast."""
    console.print(tables(averaged(reading), console.width, places))
    rows = sum(stream.rows for stream in reading.progress.streams)
    rate = rate_text(rows / reading.seconds) if reading.seconds > 0 else "-"
    console.print(f"{rows:,} rows in {seconds_text(reading.seconds)}, {rate}")
    if reading.progress.log is not None:
        console.print(f"Spark's log: {reading.progress.log}", soft_wrap=True)


def print_answers(console: Console, session: Session, rows: int) -> None:
    """The latest rows of every answer that goes nowhere else."""
    if rows == 0:
        return
    for query in queries_of(session):
        answer = session.current_answer(query.name) if is_kept(query) else None
        if answer is None:
            continue
        if answer.has_ended:
            found = list(_ended(query.name, answer, rows))
        else:
            shown = present_excerpt(query.name, answer, rows)
            found = [] if shown is None else [shown]
        for excerpt in found:
            console.print()
            console.print(excerpt_lines(excerpt, console.width))


def _ended(name: str, answer: Answer, rows: int) -> Iterator[Excerpt]:
    """The rows that stay for ever, if others do not; and those that began last, with both times."""
    results = answer.results()
    *columns, start, end = results.columns
    stays = results.filter(pl.col(end) == END_OF_TIME).select(columns)
    if 0 < stays.height < results.height and answer.is_whole:
        first = stays.sort(columns, nulls_last=False).head(rows)
        title = f"{name} in the end: {stays.height:,} rows"
        yield excerpt_of(title, first, more=stays.height - first.height)
    last = results.tail(rows)
    shown = f"last {rows} of {results.height:,}" if results.height > rows else f"{results.height:,}"
    times = [[time_text(time) for time in last[column]] for column in (start, end)]
    yield excerpt_of(f"{name}: {shown} rows", last, times=times)
