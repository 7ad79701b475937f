"""A table of an answer fits into every width, and shows where something was left out."""

from __future__ import annotations

from io import StringIO

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tidemill.cli.excerpt import Excerpt, excerpt_lines, excerpt_of, shortened

FRAME = pl.DataFrame(
    {
        "item": ["pen", None, "a lamp with a very long name that nobody reads to its end"],
        "n": [1, 2, None],
        "city": ["Rome", "Berlin", "two\nlines"],
        "weight": [0.5, 123456.789, None],
        "start": [0, 0, 0],
        "end": [1, 1, 1],
    }
)
TIMES = [["2026-03-01 12:00:00"] * 3, ["2026-03-01 12:03:00"] * 3]


def drawn(excerpt: Excerpt, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, markup=False, emoji=False, highlight=False)
    console.print(excerpt_lines(excerpt, width))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_what_fits_is_shown_as_it_is() -> None:
    assert drawn(excerpt_of("q: 3 rows", FRAME.select("item", "n", "city").head(2)), 80) == [
        "q: 3 rows",
        " item   n   city",
        "───────────────────",
        " pen    1   Rome",
        " NULL   2   Berlin",
    ]


def test_texts_are_cut_before_columns_are_left_out() -> None:
    assert drawn(excerpt_of("q", FRAME.drop("start", "end")), 50) == [
        "q",
        " item                 n   city             weight",
        "──────────────────────────────────────────────────",
        " pen                  1   Rome                0.5",
        " NULL                 2   Berlin       123456.789",
        " a lamp with a …   NULL   two\\nlines         NULL",
    ]


def test_columns_are_left_out_before_the_times() -> None:
    assert drawn(excerpt_of("q", FRAME.tail(1), times=[t[:1] for t in TIMES]), 64) == [
        "q",
        " item             …   start                 end",
        "─" * 64,
        " a lamp with a…   …   2026-03-01 12:00:00   2026-03-01 12:03:00",
    ]


def test_the_rows_that_are_left_out_are_counted() -> None:
    excerpt = excerpt_of("q", FRAME.select("n"), more=1000)
    assert drawn(shortened(excerpt, 1), 40)[-2:] == [" 1", "… and 1,002 more"]


def test_of_the_latest_rows_the_newest_stay() -> None:
    excerpt = Excerpt("q", ("a",), (("old",), ("new",)), is_tail=True)
    assert drawn(shortened(excerpt, 1), 40) == ["q", " a", "─────", " new"]


texts = st.text(st.characters(categories=["L", "N", "P", "So"]), max_size=30)


@given(
    rows=st.lists(st.tuples(*[texts] * 5), min_size=1, max_size=3),
    names=st.tuples(*[texts] * 5),
    numbers=st.frozensets(st.integers(0, 2)),
    times=st.integers(0, 2),
    width=st.integers(20, 200),
)
def test_no_line_is_longer_than_the_window(
    rows: list[tuple[str, ...]],
    names: tuple[str, ...],
    numbers: frozenset[int],
    times: int,
    width: int,
) -> None:
    lines = drawn(Excerpt("a title " * 9, names, tuple(rows), numbers, times), width)
    assert len(lines) == 3 + len(rows), "one line for each row"
    assert all(cell_len(line) <= width for line in lines)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_numbers_are_never_cut(width: int) -> None:
    wide = pl.DataFrame({f"column {at}": [10**17 + at] for at in range(12)})
    cells = drawn(excerpt_of("q", wide), width)[-1].split()
    shown = [cell for cell in cells if cell != "…"]
    assert shown == [str(10**17 + at) for at in range(len(shown))]
    assert ("…" in cells) == (len(shown) < 12)
    assert shown
