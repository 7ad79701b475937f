"""A start that is killed after any step is repeated as if it had not begun. Without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

import tidemill
from tidemill.catalog.entries import QueryEntry
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.record import Facts
from tidemill.runtime.sinks import sinks_of
from tidemill.runtime.spark.driver.checks import check_place, check_queries
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.driver.steps import STEPS, Start
from tidemill.runtime.spark.state.opening import open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tidemill.runtime.spark.driver.cluster import Cluster

MEMORY = {"r": pl.DataFrame({"id": [1, 2]})}


def begin(root: Path, *, steps: int) -> dict[str, bytes]:
    """Take the first steps of a start; what is there afterwards, but for the lock."""
    (root / "in").mkdir(exist_ok=True)
    (root / "in" / "1.csv").write_text("k,t\n1,1\n")
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE csv('{root / 'in'}', settle => 0)"
        " ORDERED BY t; CREATE RELATION r (id BIGINT) SOURCE memory('r')"
    )
    session.sql(f"""CREATE QUERY q INTO csv('{root / "out"}') AS
                    SELECT k, COUNT(*) AS n FROM s [RANGE 5], r WHERE id = k GROUP BY k""")
    queries = [e for e in session.catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
    settings = SparkSettings(checkpoint=str(root / "state"), clock=lambda: 7)
    checkpoint = open_checkpoint(settings, Facts((1, 2), 1, PLANNING.facts(), pipeline="p"))
    try:
        check_place(checkpoint)
        checked = check_queries(
            checkpoint,
            session.catalog,
            queries,
            sinks_of(queries, {}),
            settings,
            memory=MEMORY,
            dropped=(),
            compared=(),
        )
        nothing = cast("Cluster", None)  # no step needs Spark
        start = Start(
            nothing, checkpoint, checked, settings, MEMORY, RunReport(), every=0, is_change=False
        )
        for step in STEPS[:steps]:
            step(start)
    finally:
        checkpoint.close()
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return _names(begin(tmp_path_factory.mktemp("whole"), steps=len(STEPS)))


def _names(files: Iterable[str]) -> set[str]:
    """The names of files; that of a deployment depends on where its sinks are."""
    return {re.sub(r"deployments/\w+", "deployments/…", name) for name in files}


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
def test_a_start_that_is_killed_after_a_step_is_repeated(
    tmp_path: Path, whole: set[str], steps: int
) -> None:
    begin(tmp_path, steps=steps)
    once = begin(tmp_path, steps=len(STEPS))
    assert _names(once) == whole
    assert begin(tmp_path, steps=len(STEPS)) == once, "and a start that finds all changes nothing"


def test_the_plan_is_kept_before_it_is_known(tmp_path: Path) -> None:
    before = begin(tmp_path, steps=len(STEPS) - 1)
    plans = [name for name in before if name.startswith("state/plans/")]
    assert len(plans) == 1
    assert plans[0].removeprefix("state/plans/").removesuffix(".json") not in str(
        before["state/tidemill.json"]
    )
    (tmp_path / plans[0]).write_text("{")  # a disk that lost it
    after = begin(tmp_path, steps=len(STEPS))
    assert after[plans[0]] == before[plans[0]], "what nothing has been built on is written again"
