"""WHY on Spark: the same as on the local engine, with the same ids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.why_body import Pipeline, explained_throughout
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_all_that_is_explained_is_what_the_reference_says(tmp_path: Path) -> None:
    connect = partial(tidemill.connect, engine="spark", master=MASTER, partitions=2)
    explained_throughout(Pipeline(partial(connect, checkpoint=tmp_path / "state"), tmp_path))
