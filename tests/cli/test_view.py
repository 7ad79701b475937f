"""The view of a job fits into its window: least needed columns go first, then rows and answers."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from tidemill.cli.excerpt import Excerpt
from tidemill.cli.meter import Meter, Reading
from tidemill.cli.view import whole_view
from tidemill.runtime.progress import Progress, QueryProgress, StreamProgress

NOW = 1_772_366_699_999_999


def reading(streams: int = 1, queries: int = 2) -> Reading:
    return Meter().read(
        Progress(
            1234,
            tuple(
                StreamProgress(f"bids_of_shop_{n}", 12_345_678, n, NOW, (1000, 20_000))
                for n in range(streams)
            ),
            tuple(QueryProgress(f"query_{n}", 1_234_567) for n in range(queries)),
            1_000_000,
            10**9,
        ),
        3700,
    )


def drawn(
    width: int, height: int, answers: list[Excerpt], *, streams: int = 1, queries: int = 2
) -> list[str]:
    console = Console(
        file=StringIO(), width=width, height=height, force_terminal=True, color_system=None
    )
    places = {
        "query_0": "parquet a/path/that/is/long/enough/to/be/cut/somewhere",
        "query_1": "memory",
    }
    console.print(whole_view(reading(streams, queries), answers, places, size=console.options))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def answer(name: str, rows: int) -> Excerpt:
    columns = tuple(f"column_{n}" for n in range(9))
    cells = tuple(tuple(f"a value of {row} {column}" for column in columns) for row in range(rows))
    return Excerpt(f"{name} at 5: {rows} rows", columns, cells)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("height", [16, 24, 50])
@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_it_fits(width: int, height: int, count: int) -> None:
    lines = drawn(width, height, [answer(f"query_{n}", 10) for n in range(count)])
    assert len(lines) < height
    assert all(cell_len(line) <= width for line in lines)
    for needed in ("stream", "rows", "watermark", "2026-03-01 12:04:59.999999", "late"):
        assert any(needed in line for line in lines), needed


def test_what_is_needed_least_is_left_out_first() -> None:
    heads = {width: drawn(width, 24, [])[0].split() for width in (120, 92, 80, 74, 60)}
    assert heads == {
        120: ["stream", "files", "rows", "rate", "watermark", "lag", "late"],
        92: ["stream", "files", "rows", "rate", "watermark", "late"],
        80: ["stream", "rows", "rate", "watermark", "late"],
        74: ["stream", "rows", "rate", "watermark", "late"],
        60: ["stream", "rows", "watermark", "late"],
    }


def test_answers_share_the_room() -> None:
    lines = drawn(80, 24, [answer("query_0", 10), answer("query_1", 2)])
    assert [line.strip() for line in lines if line.startswith("… and")] == ["… and 8 more"]
    few = drawn(80, 24, [answer(f"query_{n}", 9) for n in range(5)])
    assert few[-1] == "… and 3 more answers, in a window with more lines"


def test_a_window_without_room_shows_counts_only() -> None:
    lines = drawn(80, 10, [answer("query_0", 10)])
    assert not any("column_0" in line for line in lines)
