"""Queries that are changed, stopped and started on Spark: the same as on the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.living_body import exercised
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_statements_on_a_running_session(tmp_path: Path) -> None:
    exercised(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)
