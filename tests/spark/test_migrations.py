"""Another plan takes over on Spark: the same as on the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.migrations_body import lying_behind
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_two_streams_one_of_which_lies_behind(tmp_path: Path) -> None:
    lying_behind(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)
