"""The view of a job that runs: tables for a terminal, lines for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from tidemill.cli.excerpt import excerpt_lines, shortened
from tidemill.cli.meter import lags
from tidemill.cli.table import table
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
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import ConsoleOptions, RenderableType
    from rich.table import Table

    from tidemill.cli.excerpt import Excerpt
    from tidemill.cli.meter import Reading

__all__ = ["line", "starting_text", "tables", "totals", "whole_view"]

_NUMBERS = ("files", "rows", "rate", "lag", "late", "rows out", "to replay")
_STREAMS = ("stream", "files", "rows", "rate", "watermark", "lag", "late")
_FRAME = 3
"""How many lines an answer has besides its rows: an empty one, a title, the names of columns."""

_LEAST_NEEDED = ("lag", "files", "rate")
"""The columns that are left out first where there is no room."""

_CUT = ("goes to", "stream", "query")
"""The columns that are cut next; times and numbers are shown as they are."""


def starting_text(seconds: float) -> str:
    """What is seen before there is anything to see."""
    return f"starting Spark … {seconds_text(seconds)}"


def whole_view(
    reading: Reading,
    answers: Sequence[Excerpt],
    places: Mapping[str, str],
    *,
    size: ConsoleOptions,
) -> RenderableType:
    """What a terminal shows of a job that runs: counts, and as much of the answers as fits."""
    width, height = size.max_width, size.size.height
    counts = tables(reading, width, places)
    progress = reading.progress
    # Two tables with a head and a rule, two empty lines, the totals, and one line for the cursor.
    lines = len(progress.streams) + len(progress.queries) + sum(1 for _ in _warnings(reading))
    room = height - lines - 8
    return Group(counts, *_fitted(answers, width, room))


def _warnings(reading: Reading) -> Iterator[Text]:
    """What people should know about the files of streams."""
    for stream in reading.progress.streams:
        for text in stream.warnings:
            yield Text(f"{stream.name}: {text}", style="yellow")


def _fitted(answers: Sequence[Excerpt], width: int, room: int) -> Iterator[RenderableType]:
    """As many answers as there are lines for, with as many rows."""
    shown = len(answers)
    while shown and shown * (_FRAME + 2) + (shown < len(answers)) > room:
        shown -= 1
    room -= shown < len(answers)
    for number, answer in enumerate(answers[:shown]):
        share = room // (shown - number) - _FRAME
        rows = len(answer.rows)
        if rows + (answer.more > 0) > share:
            rows = share if answer.is_tail else share - 1
        fitting = shortened(answer, rows)
        room -= _FRAME + len(fitting.rows) + (fitting.more > 0)
        yield Text()
        yield excerpt_lines(fitting, width, is_dense=True)
    if (left := len(answers) - shown) and room >= 0:
        which = "1 more answer" if left == 1 else f"{left} more answers"
        yield Text(f"… and {which}, in a window with more lines", style="dim")


def tables(reading: Reading, width: int, places: Mapping[str, str]) -> Group:
    """How much has come in and out, in lines that are no longer than the width.

    Args:
        reading: How far the job has come.
        width: How many characters a line has.
        places: Where the answer of each query goes.
    """
    below = Text(totals(reading, width), style="dim", no_wrap=True, overflow="ellipsis")
    counts = _streams(reading, width), Text(), _queries(reading, width, places), Text()
    return Group(*counts, *_warnings(reading), below)


def _streams(reading: Reading, width: int) -> Table:
    behind = lags(reading.progress)
    rows = [
        (
            stream.name,
            files_text(stream.files),
            f"{stream.rows:,}",
            rate_text(reading.stream_rates[stream.name]),
            time_text(stream.watermark),
            lag_text(behind[stream.name]),
            f"{stream.refused:,}",
        )
        for stream in reading.progress.streams
    ]
    return _table(_STREAMS, rows, width)


def _queries(reading: Reading, width: int, places: Mapping[str, str]) -> Table:
    rows = [
        (
            query.name,
            f"{query.rows:,}",
            rate_text(reading.query_rates[query.name]),
            f"{query.to_replay:,}" if query.to_replay else "",
            places.get(query.name, ""),
        )
        for query in reading.progress.queries
    ]
    return _table(("query", "rows out", "rate", "to replay", "goes to"), rows, width)


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]], width: int) -> Table:
    """The rows, without columns that are empty, or needed least if there is no room."""
    wide = [max(cell_len(text) for text in texts) for texts in zip(columns, *rows, strict=True)]
    kept = [at for at in range(len(columns)) if not rows or any(row[at] for row in rows)]
    for name in _LEAST_NEEDED:
        if _excess(wide, kept, width) > 0:
            kept = [at for at in kept if columns[at] != name]
    for name in _CUT:
        if (excess := _excess(wide, kept, width)) > 0 and name in columns:
            at = columns.index(name)
            wide[at] -= min(excess, max(0, wide[at] - len(name)))
    made = table()
    for at in kept:
        made.add_column(
            columns[at],
            justify="right" if columns[at] in _NUMBERS else "left",
            no_wrap=True,
            max_width=wide[at],
        )
    for row in rows:
        made.add_row(*(_cell(columns[at], row[at]) for at in kept))
    return made


def _excess(wide: Sequence[int], kept: Sequence[int], width: int) -> int:
    """By how much the columns, with the gaps between them, are too wide."""
    return sum(wide[at] for at in kept) + 3 * len(kept) - 1 - width


def _cell(column: str, text: str) -> Text:
    return Text(text, style="yellow" if column == "late" and text != "0" else "")


def totals(reading: Reading, width: int = 1000) -> str:
    """How many batches, how much is remembered, how long it took; the most only if it fits."""
    progress = reading.progress
    most_rows, most_bytes = reading.most_state
    parts = (
        batches_text(progress.batches),
        f"state {progress.state_rows:,} rows, {bytes_text(progress.state_bytes)}",
        seconds_text(reading.seconds),
    )
    most = f"{parts[1]} (at most {most_rows:,} rows, {bytes_text(most_bytes)})"
    whole = " · ".join((parts[0], most, parts[2]))
    return whole if cell_len(whole) <= width else " · ".join(parts)


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
