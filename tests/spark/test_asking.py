"""One-time queries on Spark: the same as on the local engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.asking_body import Pipeline, asked_throughout
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


@pytest.mark.soak  # what WHY is asked goes the same way, every time
def test_all_that_is_asked_is_answered_as_the_reference_does(tmp_path: Path) -> None:
    connect = partial(tidemill.connect, engine="spark", master=MASTER, partitions=2)
    asked_throughout(Pipeline(partial(connect, checkpoint=tmp_path / "state"), tmp_path))
