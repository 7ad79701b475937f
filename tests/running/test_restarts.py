"""Changes and restarts at random: what sinks get is what the parts of each query say."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.restarts_body import Story
from tidemill.history import pieces
from tidemill.runtime import archive_files

if TYPE_CHECKING:
    from pathlib import Path

KEEPS = ["KEEP 12", "KEEP 60 BY REFERENCE", "KEEP 40", "KEEP ALL"]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))]
)
def test_what_sinks_get_through_changes_and_restarts(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 — the same story every time
    partitions = random.randint(1, 3)

    def connect() -> tidemill.Session:
        return tidemill.connect(checkpoint=tmp_path / "state", partitions=partitions)

    Story(tmp_path, connect, random, queries=8).tell()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))]
)
@pytest.mark.parametrize(
    "keep", [*KEEPS[:2], *(pytest.param(keep, marks=pytest.mark.soak) for keep in KEEPS[2:])]
)
def test_the_same_where_streams_keep_their_past(
    tmp_path: Path, seed: int, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(f"{seed} {keep}")  # noqa: S311 — the same story every time
    if seed % 2 == 0:  # files are copied as they are, and a step reads a part of one
        monkeypatch.setattr(archive_files, "_WORTH_COPYING", 1)
        monkeypatch.setattr(pieces, "PIECE_ROWS", random.choice([2, 7]))
    partitions, rows = random.randint(1, 3), random.choice([1, 5, 50, 1000])

    def connect() -> tidemill.Session:
        state = tmp_path / "state"
        return tidemill.connect(checkpoint=state, partitions=partitions, replay_rows=rows)

    Story(tmp_path, connect, random, queries=5, keep=keep).tell()
