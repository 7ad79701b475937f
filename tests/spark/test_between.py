"""Queries that are created between two sessions on Spark: the same as on the local engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.between_body import created_between
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "keep",
    [
        "KEEP 40",
        *(pytest.param(keep, marks=pytest.mark.soak) for keep in ("", "KEEP ALL BY REFERENCE")),
    ],
)
def test_they_answer_from_the_instant_that_is_named(tmp_path: Path, keep: str) -> None:
    connect = partial(tidemill.connect, engine="spark", master=MASTER, partitions=2)
    created_between(partial(connect, checkpoint=tmp_path / "state"), tmp_path, keep)
