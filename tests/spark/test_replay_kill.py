"""A replay on Spark outlasts kills between batch log, archives, relay and commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from running.replayed import SPARK_POINTS
from running.replayed_body import killed_while_replaying

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

SOME = ()
"""Those that are tried every time."""


@pytest.mark.parametrize(
    "point",
    [p if p in SOME else pytest.param(p, marks=pytest.mark.soak) for p in SPARK_POINTS],
)
def test_a_replay_that_is_killed_goes_on(tmp_path: Path, point: str) -> None:
    killed_while_replaying("spark", tmp_path, point, after=2)
