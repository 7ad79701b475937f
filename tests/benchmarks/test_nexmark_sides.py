"""NEXMark on several engines: each query is asked or refused, and their rows can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.harness.comparable import (
    each_session,
    each_window,
    require_same,
    same_answer,
    same_rows,
)
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.nexmark.generator import around_midnight
from benchmarks.nexmark.native import NATIVE
from benchmarks.nexmark.queries import ASKED
from benchmarks.nexmark.refused import CANNOT
from benchmarks.nexmark.sides import Load, streams_of

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000
BY_NAME = {question.name: question for question in ASKED}


def results(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, ["x", "start", "end"], orient="row")


def test_spark_alone_is_asked_or_there_is_a_reason() -> None:
    assert NATIVE.keys() | CANNOT.keys() == BY_NAME.keys()
    assert not NATIVE.keys() & CANNOT.keys()


def test_windows_of_spark_alone_slide_as_those_of_tidemill() -> None:
    for name, native in NATIVE.items():
        slides = f"SLIDE {(native.slide or 0) // SECOND} SECONDS"
        assert (slides in str(BY_NAME[name].sql)) == (native.slide is not None)
        by = f"PARTITION BY {native.sessions} SESSION"
        assert (by in str(BY_NAME[name].sql)) == (native.sessions is not None)


def test_a_row_holds_about_each_window_that_ends_while_it_does() -> None:
    # windows that end at 2 s and 4 s; then one that ends at 6 s
    found = each_window(results((7, 2 * SECOND - 1, 6 * SECOND - 1)), 2 * SECOND)
    assert found.rows() == [(7, 2 * SECOND), (7, 4 * SECOND)]
    assert each_window(results((8, 6 * SECOND - 1, 8 * SECOND - 1)), 2 * SECOND).rows() == [
        (8, 6 * SECOND)
    ]


def test_a_row_that_no_window_ends_in_is_in_none() -> None:
    assert each_window(results((7, 2 * SECOND, 3 * SECOND)), 2 * SECOND).is_empty()


def test_of_a_session_the_last_row_counts() -> None:
    # two bids, then one; and a session of another bidder, cut where nothing changes
    rows = [(7, 1, 0, 4), (7, 2, 4, 9), (7, 1, 12, 17), (8, 1, 3, 5), (8, 1, 5, 8)]
    found = each_session(pl.DataFrame(rows, ["x", "n", "start", "end"], orient="row"), "x")
    assert sorted(found.rows()) == [(7, 1, 17), (7, 2, 9), (8, 1, 8)]


def test_how_the_time_of_a_row_is_cut_makes_no_difference() -> None:
    whole, cut = results((1, 0, 9), (2, 3, 4)), results((2, 3, 4), (1, 5, 9), (1, 0, 5))
    assert same_answer(whole, cut)
    assert not same_answer(whole, results((2, 3, 4), (1, 6, 9), (1, 0, 5)))


def test_rows_count_as_often_as_they_are_there() -> None:
    one, two = results((1, 0, 5)), results((1, 0, 5), (1, 0, 5))
    assert not same_answer(one, two)
    assert not same_rows(pl.concat([two, results((2, 0, 5))]), pl.concat([one, one, one]))


def test_types_that_engines_do_not_share_do_not_matter_but_values_do() -> None:
    time = pl.Series("at", [1, 2]).cast(pl.Datetime("us"))
    own = pl.DataFrame({"n": pl.Series([1, 2], dtype=pl.Int64), "at": time})
    other = pl.DataFrame(
        {"at": time.dt.replace_time_zone("UTC").dt.cast_time_unit("ns"), "n": own["n"]}
    ).cast({"n": pl.Int32})
    assert require_same("both", own.reverse(), other) == 2
    with pytest.raises(WrongAnswerError, match="both: 2 rows, not these 2"):
        require_same("both", own.with_columns(pl.col("n") * 1.5), other)
    with pytest.raises(WrongAnswerError, match="both: 2 rows, not these 1"):
        require_same("both", own, other.head(1))


def test_all_events_of_the_streams_that_are_read_count(tmp_path: Path) -> None:
    load = Load(around_midnight(1_000, 1, rate=100), tmp_path, files=4, skip=2)
    load.write()
    assert streams_of(BY_NAME["q13"]) == ("bid",)
    assert streams_of(BY_NAME["q23"]) == ("person", "auction", "bid")
    assert load.events(BY_NAME["q23"]) == 1_000
    assert load.events(BY_NAME["q23"], skip=2) == 500
    assert load.rate(BY_NAME["q23"], [9, 9, 1, 1]) == 250
