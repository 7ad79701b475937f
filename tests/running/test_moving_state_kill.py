"""A plan that takes over outlasts a kill at every point; nothing is lost, and nothing doubled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.kept import CrashError, crashing
from running.moving_body import (
    JOINED,
    assert_delivered,
    define_three,
    feed,
    goes_to,
    has_gone,
    is_under_way,
)
from tidemill.control import queries
from tidemill.control.kept import KeptCatalog
from tidemill.control.moving import advanced
from tidemill.runtime.local.checkpoint import LocalCheckpoint
from tidemill.runtime.local.keeping import Keeper
from tidemill.runtime.local.pipeline import Pipeline
from tidemill.runtime.local.stepping import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog
    from tidemill.runtime.runs import Moment

NAMES = tuple(stage.__name__ for stage in STAGES)
STEPS = {"the step that is held": 0, "the step after the switch": 1}
OFTEN = {("the step that is held", "deliver"), ("the step after the switch", "save")}
POINTS = {
    "after the record": (KeptCatalog, "write_records", False),
    "before state is moved": (Pipeline, "_go_over", True),
    "before the checkpoint knows the plan": (LocalCheckpoint, "record_kept", True),
    "before the commit": (Keeper, "commit", True),
    "after the commit": (Keeper, "commit", False),
}


@contextmanager
def begun(root: Path) -> Iterator[tidemill.Session]:
    """A session in which a plan is to take over when ``c`` has come as far as the others."""
    with tidemill.connect(partitions=2, checkpoint=root / "checkpoint") as session:
        define_three(session, root)
        feed(root, 0, 20)
        feed(root, 20, 40, "ab")
        session.sql(f"CREATE QUERY q INTO parquet('{root / 'out'}', form => 'changes') AS {JOINED}")
        session.start()
        session.await_idle()
        goes_to(session, 2)
        session.await_idle()
        assert is_under_way(session)
        yield session


def assert_goes_on(root: Path) -> None:
    """Open the checkpoint again; the other plan takes over if it has not done so."""
    with tidemill.connect(partitions=2, checkpoint=root / "checkpoint") as session:
        session.start()
        session.await_idle()
        feed(root, 60, 80)
        session.await_idle()
        assert not is_under_way(session)
        assert has_gone(session)
    assert_delivered(root, 79)


def some(step: str, stage: str) -> object:
    """A parameter: some of the points are tried every time."""
    marks = () if (step, stage) in OFTEN else (pytest.mark.soak,)
    return pytest.param(step, stage, marks=marks)


@pytest.mark.parametrize(("step", "stage"), [some(step, name) for step in STEPS for name in NAMES])
def test_killed_in_a_step(tmp_path: Path, step: str, stage: str) -> None:
    with begun(tmp_path) as session, crashing(STEPS[step], NAMES.index(stage)):
        feed(tmp_path, 40, 60, "ab")
        feed(tmp_path, 20, 60, "c")
        with pytest.raises(CrashError):
            session.await_idle()
    assert_goes_on(tmp_path)


@pytest.mark.parametrize("point", POINTS)
def test_killed_when_the_plan_takes_over(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, is_before = POINTS[point]
    function = getattr(owner, name)
    is_deciding: list[bool] = []

    def decides(catalog: Catalog, moment: Moment) -> Catalog:
        found = advanced(catalog, moment)
        if found is not catalog:
            is_deciding.append(True)
        return found

    def crash(*given: object, **options: object) -> None:
        if not (is_deciding and is_before):
            function(*given, **options)
        if is_deciding:
            raise CrashError

    with begun(tmp_path) as session, monkeypatch.context() as patch:
        patch.setattr(queries, "advanced", decides)
        patch.setattr(owner, name, crash)
        feed(tmp_path, 40, 60, "ab")
        feed(tmp_path, 20, 60, "c")
        with pytest.raises(CrashError):
            session.await_idle()
    assert_goes_on(tmp_path)
