"""A step that was cut short replays as far as it had, whatever a session may replay now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from running.replayed import connected
from running.replayed_body import killed_process
from tidemill.runtime.local.archives import Archives
from tidemill.runtime.local.input_log import InputLog

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tidemill.history.replay import Leg


def test_a_step_that_is_taken_again_goes_as_far_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_process("local", tmp_path, "deliver", 1)
    (log,) = (tmp_path / "state").rglob("input.jsonl")
    begun = InputLog(log).begun
    assert begun is not None
    assert begun.leg is not None
    legs: list[Leg | None] = []
    start = Archives.start_step

    def spying(self: Archives, leg: Leg | None = None) -> None:
        legs.append(leg)
        start(self, leg)

    monkeypatch.setattr(Archives, "start_step", spying)
    with connected("local", tmp_path, rows=7) as session:
        session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        session.start()
        session.await_idle()
    assert legs[0] == begun.leg
    assert set(legs[1:]) <= {None}
