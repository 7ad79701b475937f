"""Frames made of columns: what Polars' own ways give."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tidemill.physical.frames import framed, keep, keep_few, pick

ROWS = pl.DataFrame({"a": [1, 2, None], "^.*$": ["x", None, "z"], "*": [True, False, None]})


@pytest.mark.parametrize("names", [[], ["a"], ["*", "a"], ["^.*$"], list(ROWS.columns)])
def test_columns_are_picked_by_their_names(names: list[str]) -> None:
    assert pick(ROWS, names).equals(pl.DataFrame([ROWS.get_column(name) for name in names]))


def test_rows_are_kept_where_a_series_is_true() -> None:
    mask = pl.Series([True, None, False])
    assert keep(ROWS, mask).equals(ROWS.filter(mask))


@pytest.mark.parametrize("kept", [[], [0], [2], [0, 1], [0, 1, 2]])
def test_few_rows_are_kept_as_many_are(kept: list[int]) -> None:
    rows = pl.concat([ROWS] * 3)
    mask = np.isin(np.arange(rows.height), kept)
    assert keep_few(rows, mask).equals(rows.filter(pl.Series(mask)))


def test_columns_must_be_as_long_as_each_other() -> None:
    with pytest.raises(pl.exceptions.ShapeError):
        framed([pl.Series("a", [1, 2]), pl.Series("b", [1])])


def test_a_frame_is_not_changed_by_what_is_done_to_another() -> None:
    picked = pick(ROWS, ["a", "*"])
    picked.columns = ["x", "y"]
    assert ROWS.columns == ["a", "^.*$", "*"]
    assert ROWS["a"].name == "a"
