"""The laws of wanted rows fail with each mistake that one could make about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from laws import test_rows_wanted as laws
from laws.test_needed_columns_mutants import breaks
from laws.test_rows_wanted import Tale
from tidemill.physical import rows_read
from tidemill.runtime import columns
from tidemill.runtime.local import pipeline
from tidemill.runtime.reading import parquet_columns, parquet_groups, parquet_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import polars as pl

    from laws.test_needed_columns import Case
    from tidemill.catalog.entries import StreamEntry
    from tidemill.model.types import Value
    from tidemill.physical.fragments import Fragment, Graph
    from tidemill.physical.ranges import Range
    from tidemill.runtime.reading.parquet_groups import Run, Wanted

ROWS_OF, ROWS_READ, FILLED = columns.rows_of, rows_read.rows_read, parquet_pieces._filled  # noqa: SLF001
RANGE, RUN = parquet_groups._Groups._range, parquet_groups._Groups.run  # noqa: SLF001

PLAIN, ASIDE = laws.POLICIES[0], laws.POLICIES[2]
A_FILE = laws.test_a_file_has_the_same_rows_whatever_is_wanted_of_it


def differs(case: Case, act: Callable[[Tale], None] = Tale.once) -> None:
    """Require that a session shows something else, in a case that is an example of the law."""
    with pytest.raises(AssertionError):
        laws.same_with_and_without(case, act)


@pytest.mark.parametrize(
    "what",
    [
        *(pytest.param(what, marks=pytest.mark.soak) for what in ("may_be_nan", "may_be_null")),
        "may_be_value",
    ],
)
def test_what_a_group_says_of_a_column_is_misread(what: str) -> None:
    def wrong(
        groups: parquet_groups._Groups,
        number: int,
        rows: int,
        place: int,
        bound: Callable[[parquet_groups.Raw], Value],
    ) -> Range:
        found = RANGE(groups, number, rows, place, bound)
        match what:
            case "may_be_nan":
                return replace(found, may_be_nan=False)
            case "may_be_null":
                return replace(found, may_be_null=False)
            case _:
                return replace(found, may_be_value=False)

    with patch.object(parquet_groups._Groups, "_range", wrong):  # noqa: SLF001
        breaks(A_FILE)


@pytest.mark.soak
def test_milliseconds_are_taken_for_microseconds() -> None:
    with patch.object(parquet_groups, "_time", lambda _unit, raw: TIME(1, raw)):
        breaks(A_FILE)


TIME = parquet_groups._time  # noqa: SLF001


@pytest.mark.soak
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
        differs(laws.ordered(PLAIN))


def test_the_time_of_rows_that_are_not_wanted_is_not_read() -> None:
    def without(stream: StreamEntry, graph: Graph) -> Wanted | None:
        found = ROWS_OF(stream, graph)
        return found and replace(found, timed=frozenset())

    with patch.object(columns, "rows_of", without):
        differs(laws.ordered(PLAIN))


def test_rows_aside_are_those_only_that_are_wanted() -> None:
    with (
        patch.object(columns, "_is_kept_aside", lambda _: False),
        patch.object(columns, "columns_of", lambda *_: None),
    ):
        differs(laws.ordered(ASIDE))


def test_a_query_without_a_filter_wants_nothing() -> None:
    def forgotten(intake: Fragment) -> frozenset[rows_read.Conditions] | None:
        each = {one: replace(intake, writes=(one,)) for one in intake.writes}
        some = tuple(one for one, alone in each.items() if ROWS_READ(alone) is not None)
        return ROWS_READ(replace(intake, writes=some))

    with patch.object(columns, "rows_read", forgotten):
        differs(laws.ordered(PLAIN, laws.SELECTS[0]))


def test_what_was_left_out_ahead_is_not_read_again() -> None:
    with patch.object(pipeline, "_is_more", lambda *_: False):
        differs(laws.AHEAD, Tale.in_between)


def test_types_of_columns_are_not_looked_at(tmp_path: Path) -> None:
    with (
        patch.object(parquet_columns, "_holds", lambda *_: True),
        pytest.raises(AssertionError),
    ):
        laws.test_malformed_rows_of_groups_that_are_not_wanted_are_found(tmp_path)
