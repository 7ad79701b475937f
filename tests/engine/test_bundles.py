"""Rows that several channels have in common go once: cases that a law does not draw often."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import tidemill
from tidemill.engine.bundles import _counts

BIDS = pl.DataFrame({"at": [1, 2, 3], "item": ["pen", "cup", "pen"]})


def test_queries_that_all_want_every_row_need_no_bits() -> None:
    with tidemill.connect(partitions=2) as session:
        session.put("bids", BIDS)
        session.sql(
            "CREATE STREAM bid (at BIGINT, item VARCHAR) SOURCE memory('bids') ORDERED BY at"
        )
        both = session.query("SELECT at, item FROM bid [RANGE 5]")
        items = session.query("SELECT item FROM bid [RANGE 5]")
        session.run()
        assert sorted(both.snapshot(2).rows()) == [(1, "pen"), (2, "cup")]
        assert sorted(items.snapshot(2).rows()) == [("cup",), ("pen",)]


@pytest.mark.parametrize("rows", [0, 1, 254, 255, 256, 600])
@pytest.mark.parametrize("words", [0, 1, 2])
def test_bits_are_counted_row_by_row(rows: int, words: int) -> None:
    drawn = np.random.default_rng(rows).integers(0, 2**63, (rows, words), dtype=np.uint64)
    counted = [
        sum(int(word) >> bit & 1 for word in column) for column in drawn.T for bit in range(64)
    ]
    assert _counts(drawn).tolist() == counted
