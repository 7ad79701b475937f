"""The view of a job that runs: tables for a terminal, lines for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tidemill.cli.meter import lags
from tidemill.cli.units import (
    batches_text,
    bytes_text,
    files_text,
    lag_text,
    rate_text,
    seconds_text,
)
from tidemill.model.time import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.cli.meter import Reading

__all__ = ["line", "table", "tables", "totals"]


def table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """An empty table; columns of numbers are set to the right."""
    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", no_wrap=True)
    return made


def tables(reading: Reading) -> Group:
    """What a terminal shows."""
    below = Text(totals(reading), style="dim")
    warnings = [Text(f"{where}: {text}", style="yellow") for where, text in _warnings(reading)]
    return Group(_streams(reading), Text(), _queries(reading), Text(), *warnings, below)


def _warnings(reading: Reading) -> Iterator[tuple[str, str]]:
    """What people should know about the files of streams."""
    for stream in reading.progress.streams:
        for text in stream.warnings:
            yield stream.name, text


def _streams(reading: Reading) -> Table:
    made = table(
        *("stream", "files", "rows", "rate", "watermark", "lag", "late"),
        numbers=("files", "rows", "rate", "lag", "late"),
    )
    behind = lags(reading.progress)
    for stream in reading.progress.streams:
        made.add_row(
            stream.name,
            files_text(stream.files),
            f"{stream.rows:,}",
            rate_text(reading.stream_rates[stream.name]),
            time_text(stream.watermark),
            lag_text(behind[stream.name]),
            Text(f"{stream.refused:,}", style="yellow" if stream.refused else ""),
        )
    return made


def _queries(reading: Reading) -> Table:
    made = table("query", "rows out", "rate", numbers=("rows out", "rate"))
    for query in reading.progress.queries:
        made.add_row(query.name, f"{query.rows:,}", rate_text(reading.query_rates[query.name]))
    return made


def totals(reading: Reading) -> str:
    """How many batches, how much is remembered, how long it took."""
    progress = reading.progress
    most_rows, most_bytes = reading.most_state
    return (
        f"{batches_text(progress.batches)}"
        f" · state {progress.state_rows:,} rows, {bytes_text(progress.state_bytes)}"
        f" (at most {most_rows:,} rows, {bytes_text(most_bytes)})"
        f" · {seconds_text(reading.seconds)}"
    )


def line(reading: Reading) -> str:
    """What a file or a pipe gets: everything in one line."""
    progress = reading.progress
    streams = (
        f"{stream.name} {stream.rows:,} ({rate_text(reading.stream_rates[stream.name])})"
        + (f", {files_text(stream.files)} files" if stream.files else "")
        + f" up to {time_text(stream.watermark)}"
        + (f", {stream.refused:,} late" * (stream.refused > 0))
        + "".join(f", {text}" for text in stream.warnings)
        for stream in progress.streams
    )
    queries = (f"{query.name} {query.rows:,}" for query in progress.queries)
    return f"{totals(reading)} | in: {'; '.join(streams)} | out: {'; '.join(queries)}"
