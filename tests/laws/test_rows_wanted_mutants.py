"""The laws of wanted rows fail with each mistake that one could make about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from laws import test_rows_wanted as laws
from laws.test_needed_columns_mutants import breaks
from tidemill.physical import rows_read
from tidemill.runtime import columns
from tidemill.runtime.local import pipeline
from tidemill.runtime.reading import parquet_columns, parquet_groups, parquet_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.model.types import Value
    from tidemill.physical.fragments import Fragment, Graph
    from tidemill.physical.ranges import Range
    from tidemill.runtime.reading.parquet_groups import Run, Wanted

ROWS_OF, ROWS_READ, FILLED = columns.rows_of, rows_read.rows_read, parquet_pieces._filled  # noqa: SLF001
RANGE, RUN = parquet_groups._Groups._range, parquet_groups._Groups.run  # noqa: SLF001

A_FILE = laws.test_a_file_has_the_same_rows_whatever_is_wanted_of_it
A_SESSION = laws.test_a_session_shows_the_same_whatever_rows_are_read
IN_BETWEEN = laws.test_queries_that_come_and_go_get_their_rows


@pytest.mark.parametrize("what", ["may_be_nan", "may_be_null", "may_be_value"])
def test_what_a_group_says_of_a_column_is_misread(what: str) -> None:
    def wrong(*arguments: object) -> Range:
        return replace(RANGE(*arguments), **{what: False})

    with patch.object(parquet_groups._Groups, "_range", wrong):  # noqa: SLF001
        breaks(A_FILE)


def test_milliseconds_are_taken_for_microseconds() -> None:
    with patch.object(parquet_groups, "_time", lambda _unit, raw: TIME(1, raw)):
        breaks(A_FILE)


TIME = parquet_groups._time  # noqa: SLF001


def test_values_of_a_group_stand_for_those_of_another() -> None:
    known: dict[int, Mapping[str, Value]] = {}

    def first(groups: parquet_groups._Groups, number: int) -> Run:
        run = RUN(groups, number)
        if run.instead is None:
            return run
        return replace(run, instead=known.setdefault(id(groups), run.instead))

    with patch.object(parquet_groups._Groups, "run", first):  # noqa: SLF001
        breaks(A_FILE)


def test_rows_that_are_not_read_are_not_there() -> None:
    def nothing(
        frame: pl.DataFrame | None,
        rows: int,
        run: Run,
        asked: Iterable[str],
        types: Mapping[str, pl.DataType],
    ) -> pl.DataFrame:
        filled = FILLED(frame, rows, run, asked, types)
        return filled if run.instead is None else filled.clear()

    with patch.object(parquet_pieces, "_filled", nothing):
        breaks(A_SESSION)


def test_the_time_of_rows_that_are_not_wanted_is_not_read() -> None:
    def without(stream: StreamEntry, graph: Graph) -> Wanted | None:
        found = ROWS_OF(stream, graph)
        return found and replace(found, timed=frozenset())

    with patch.object(columns, "rows_of", without):
        breaks(A_SESSION)


def test_rows_aside_are_those_only_that_are_wanted() -> None:
    with patch.object(columns, "_is_kept_aside", lambda _: False):
        breaks(A_SESSION)


def test_a_query_without_a_filter_wants_nothing() -> None:
    def forgotten(intake: Fragment) -> frozenset[rows_read.Conditions] | None:
        found = ROWS_READ(intake)
        return frozenset() if found is None else found

    with patch.object(columns, "rows_read", forgotten):
        breaks(A_SESSION)


@pytest.mark.soak
def test_what_was_left_out_ahead_is_not_read_again() -> None:
    with patch.object(pipeline, "_is_more", lambda *_: False):
        breaks(IN_BETWEEN)


def test_malformed_rows_of_groups_that_are_not_wanted_are_overlooked() -> None:
    with patch.object(parquet_columns, "_holds", lambda *_: True):
        breaks(A_FILE)
