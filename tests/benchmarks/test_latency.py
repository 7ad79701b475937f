"""Latency: events that arrive one by one get the answers that DuckDB gives for all of them."""

from __future__ import annotations

import pytest

from benchmarks.latency.local import Sizes, drive
from benchmarks.latency.queries import QUERIES, SECOND, rows_of


@pytest.mark.parametrize("number", range(len(QUERIES)), ids=[asked.name for asked in QUERIES])
def test_duckdb_finds_the_same(number: int) -> None:
    driven = drive(number, 60_000, Sizes(window=1, seconds=0.1, seed=1))
    assert driven.course.events == 6_000
    assert driven.results
    assert bool(driven.state_rows) is QUERIES[number].has_window


def test_streams_take_turns() -> None:
    rows = rows_of(QUERIES[2], 3, 8, rate=2, seed=1)
    assert {name: (frame["at"] / SECOND).to_list() for name, frame in rows.items()} == {
        "a": [2.0, 3.0],
        "b": [1.5, 2.5, 3.5],
    }
