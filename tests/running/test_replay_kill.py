"""A replay on the local engine outlasts kills at every stage of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from running.replayed import LOCAL_POINTS
from running.replayed_body import killed_while_replaying

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "after", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (0, 2, 3))]
)
@pytest.mark.parametrize("point", LOCAL_POINTS)
def test_a_replay_that_is_killed_goes_on(tmp_path: Path, point: str, after: int) -> None:
    killed_while_replaying("local", tmp_path, point, after)
