"""Restarts on Spark, at random and with other settings: sinks get what they are to get."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.restarts_body import Story
from running.settings_body import migrated
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def _later(*stories: tuple[int, str]) -> list[object]:
    return [pytest.param(*story, marks=pytest.mark.soak) for story in stories]


@pytest.mark.parametrize(
    ("seed", "keep"),
    [
        (0, "KEEP 40"),
        *_later((1, ""), (2, "KEEP ALL BY REFERENCE"), (3, ""), (4, "KEEP ALL"), (5, "KEEP 15")),
    ],
)
def test_what_sinks_get_through_changes_and_restarts(tmp_path: Path, seed: int, keep: str) -> None:
    random = Random(seed)  # noqa: S311 — the same story every time
    rows = random.choice([1, 20, 1000])

    def connect() -> tidemill.Session:
        return tidemill.connect(
            engine="spark",
            master=MASTER,
            checkpoint=tmp_path / "state",
            partitions=2,
            replay_rows=rows,
        )

    Story(tmp_path, connect, random, queries=6, restarts=0.25, keep=keep).tell()


@pytest.mark.soak
def test_other_settings_on_a_checkpoint_are_a_migration(tmp_path: Path) -> None:
    connect = partial(tidemill.connect, engine="spark", master=MASTER)
    migrated(partial(connect, checkpoint=tmp_path / "state", partitions=2), tmp_path)
