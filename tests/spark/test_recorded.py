"""What rows are made of, kept with queries on Spark: the same as on the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.recorded_body import they_are_kept
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_it_is_what_streams_would_have_kept(tmp_path: Path) -> None:
    state = tmp_path / "state"
    they_are_kept(
        tmp_path,
        lambda: tidemill.connect(engine="spark", master=MASTER, checkpoint=state, partitions=2),
    )
