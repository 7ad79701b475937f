"""Queries that are created between two sessions of a checkpoint begin where the pipeline stands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.between_body import created_between, lives, opened
from running.shop import TOTAL, bags, define, expected, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("keep", ["", "KEEP 40", "KEEP ALL", "KEEP 60 BY REFERENCE"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_they_answer_from_the_instant_that_is_named(
    tmp_path: Path, keep: str, partitions: int
) -> None:
    state = tmp_path / "state"
    created_between(
        partial(tidemill.connect, checkpoint=state, partitions=partitions), tmp_path, keep
    )
