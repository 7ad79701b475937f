"""The laws of needed columns fail with each mistake that one could make about them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings

from laws import test_needed_columns as laws
from tidemill.lang.statements import LatePolicy
from tidemill.runtime import columns
from tidemill.runtime.local.growing import GrowingFiles
from tidemill.runtime.local.pipeline import Pipeline
from tidemill.runtime.measuring.sample import Sample
from tidemill.runtime.reading import parquet_columns, parquet_pieces
from tidemill.runtime.reading.parquet_pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.reading.shaping import Refuse

READ, COLUMNS_OF, LOOK_AT = Pieces.read, columns.columns_of, Sample.look_at

A_FILE = laws.test_a_file_has_the_same_rows_whatever_is_needed_of_it
A_SESSION = laws.test_a_session_shows_the_same_whatever_is_read
IN_BETWEEN = laws.test_a_query_that_begins_in_a_file_gets_its_columns


def breaks(law: Callable[[], None]) -> None:
    """Require that a law fails, or what it looks at does."""
    name = "_hypothesis_internal_use_settings"
    quick = settings(phases=[Phase.generate], database=None, max_examples=2000)
    with patch.object(law, name, quick, create=True), pytest.raises(Exception):  # noqa: B017, PT011
        law()


@pytest.mark.parametrize(
    ("where", "what", "wrong"),
    [
        (parquet_columns._File, "may_be_null", lambda *_: False),  # noqa: SLF001
        (parquet_columns, "_holds", lambda *_: True),
        *(
            pytest.param(where, what, lambda *_: True, marks=pytest.mark.soak)
            for where, what in (
                (parquet_columns, "_is_in_calendar"),
                (parquet_columns, "_is_text"),
                (parquet_pieces, "is_sound"),
            )
        ),
    ],
)
def test_what_a_file_says_of_itself_is_misread(where: object, what: str, wrong: object) -> None:
    with patch.object(where, what, wrong):
        breaks(A_FILE)


def test_pieces_are_read_again_that_were_given() -> None:
    def all_again(self: Pieces, refuse: Refuse, _skip: int = 0) -> Iterator[pl.DataFrame]:
        return READ(self, refuse)

    with patch.object(Pieces, "read", all_again):
        breaks(A_FILE)


def test_the_time_of_rows_is_not_read() -> None:
    def without(stream: StreamEntry, graph: Graph) -> frozenset[str] | None:
        found = COLUMNS_OF(stream, graph)
        return (found and found - {"at"}) or None

    with patch.object(columns, "columns_of", without):
        breaks(A_SESSION)


def test_rows_aside_have_the_columns_only_that_are_needed() -> None:
    with patch.object(columns, "LatePolicy", type("", (), {"QUARANTINE": LatePolicy.DROP})):
        breaks(A_SESSION)


@pytest.mark.soak
def test_what_was_read_ahead_is_taken_for_what_is_needed_now() -> None:
    def not_again(self: Pipeline, needed: Mapping[str, frozenset[str]]) -> None:
        self._intake.needed = needed
        for name, source in self._sources.items():
            assert isinstance(source, GrowingFiles)
            source.needed = needed.get(name)

    with patch.object(Pipeline, "_need", not_again):
        breaks(IN_BETWEEN)


@pytest.mark.soak
def test_columns_that_were_not_looked_at_count_as_if_they_were() -> None:
    def forgotten(one: Sample, rows: pl.DataFrame, _columns: Iterable[str] = ()) -> None:
        LOOK_AT(one, rows)

    with patch.object(Sample, "look_at", forgotten):
        breaks(IN_BETWEEN)
