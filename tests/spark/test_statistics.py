"""Statistics leave Spark, and are those of the local engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.statistics_body import measured_and_kept
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_what_is_measured_on_spark_is_what_the_local_engine_measures(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    local = measured_and_kept(
        partial(tidemill.connect, checkpoint=tmp_path / "local" / "state"), tmp_path / "local"
    )
    on_spark = partial(
        tidemill.connect,
        engine="spark",
        master=MASTER,
        partitions=2,
        checkpoint=tmp_path / "spark" / "state",
    )
    (tmp_path / "spark").mkdir()
    found = measured_and_kept(on_spark, tmp_path / "spark")
    exact = ("input", "what", "of", "source", "rows", "as_of")
    are_counted = local["what"] != "selectivity"  # how many pairs there were depends on batches
    assert found.filter(are_counted).select(exact).equals(local.filter(are_counted).select(exact))
    values = zip(found["value"], local["value"], strict=True)
    assert all(one == pytest.approx(other, rel=0.02, abs=0.001) for one, other in values)
