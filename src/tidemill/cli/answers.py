"""Answers: the first rows of each, and a summary of what a run has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.cli.meter import averaged
from tidemill.cli.units import rate_text, seconds_text
from tidemill.cli.view import table, tables
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import time_text
from tidemill.runtime.console import cell_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from tidemill.cli.meter import Reading
    from tidemill.session import Session

__all__ = ["print_answers", "print_summary", "queries_of"]


def queries_of(session: Session) -> Iterator[QueryEntry]:
    """The queries that are registered, in the order of their names."""
    for entry in session.catalog.entries(ObjectKind.QUERY):
        assert isinstance(entry, QueryEntry), "queries are registered so"
        yield entry


def print_summary(console: Console, reading: Reading) -> None:
    """What came in, what came out, and how fast."""
    console.print(tables(averaged(reading)))
    rows = sum(stream.rows for stream in reading.progress.streams)
    rate = rate_text(rows / reading.seconds) if reading.seconds > 0 else "-"
    console.print(f"{rows:,} rows in {seconds_text(reading.seconds)}, {rate}")
    if reading.progress.log is not None:
        console.print(f"Spark's log: {reading.progress.log}", soft_wrap=True)


def print_answers(console: Console, session: Session, *, rows: int) -> None:
    """The first rows of every answer that goes nowhere else."""
    if rows == 0:
        return
    for query in queries_of(session):
        if query.sink is None:
            answer = session.answer(query.name).results()
            console.print()
            console.print(_first_rows(query.name, answer, rows))


def _first_rows(name: str, answer: pl.DataFrame, rows: int) -> Table:
    """The first rows; the last two columns are from when, and until when, a row is valid."""
    shown = f"first {rows} of {answer.height:,}" if answer.height > rows else f"{answer.height:,}"
    *columns, start, end = answer.columns
    numbers = tuple(column for column in columns if answer.schema[column].is_numeric())
    made = table(*columns, start, end, numbers=numbers, title=f"{name}: {shown} rows")
    for *values, begin, until in answer.head(rows).iter_rows():
        made.add_row(*map(cell_text, values), time_text(begin), time_text(until))
    return made
