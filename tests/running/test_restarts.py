"""Changes and restarts at random: what sinks get is what the parts of each query say."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.restarts_body import Story

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(6))
def test_what_sinks_get_through_changes_and_restarts(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 — the same story every time
    partitions = random.randint(1, 3)

    def connect() -> tidemill.Session:
        return tidemill.connect(checkpoint=tmp_path / "state", partitions=partitions)

    Story(tmp_path, connect, random, queries=8).tell()
