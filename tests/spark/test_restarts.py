"""Changes and restarts at random on Spark: what sinks get is what the parts of each query say."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.restarts_body import Story
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))]
)
def test_what_sinks_get_through_changes_and_restarts(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 — the same story every time

    def connect() -> tidemill.Session:
        return tidemill.connect(
            engine="spark", master=MASTER, checkpoint=tmp_path / "state", partitions=2
        )

    Story(tmp_path, connect, random, queries=6, restarts=0.25).tell()
