"""A program in which a plan takes over on Spark, and that kills itself at a point on the way.

python moved.py DIRECTORY POINT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tidemill
from running.moving_body import JOINED, define_three, feed, goes_to
from spark.changed import arm
from tidemill.runtime.records_file import RecordKeeper
from tidemill.runtime.spark.driver import steps
from tidemill.runtime.spark.driver.delivery import Delivery
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.state.batch_log import BatchLog

if TYPE_CHECKING:
    from tidemill.runtime.spark.driver.checks import Checked

__all__ = ["POINTS", "connected"]

_AT_THE_STATEMENT: dict[str, tuple[object, str, bool]] = {
    "when it is decided": (RecordKeeper, "write", False),
    "in the batch that is held": (RunReport, "take", True),
}
_AT_THE_SWITCH: dict[str, tuple[object, str, bool]] = {
    "when it takes over": (RecordKeeper, "write", False),
    **{f"after {step.__name__}": (steps, step.__name__, False) for step in steps.CHANGE_STEPS},
}
_AFTER_IT: dict[str, tuple[object, str, bool]] = {
    "after the batch begins": (BatchLog, "begin", False),
    "after the batch is computed": (RunReport, "take", True),
    "before the batch ends": (BatchLog, "end", True),
    "after the batch ends": (BatchLog, "end", False),
    "after the batch": (Delivery, "__call__", False),
}
POINTS = (*_AT_THE_STATEMENT, *_AT_THE_SWITCH, *_AFTER_IT)


def connected(root: Path) -> tidemill.Session:
    """A session on the checkpoint below a directory."""
    return tidemill.connect(
        engine="spark", master="local[2]", partitions=2, checkpoint=root / "checkpoint"
    )


def _arm_then(owner: object, name: str, is_before: bool) -> None:  # noqa: FBT001 — as it is there
    """Let this process be killed so in the batch after the next change."""
    know = steps.know

    def armed(report: RunReport, checked: Checked, batch_log: BatchLog) -> None:
        know(report, checked, batch_log)
        arm(owner, name, is_before)

    setattr(steps, "know", armed)  # noqa: B010 — a function of ours


def main(root: Path, point: str) -> None:
    """Let a plan take over, up to the point."""
    with connected(root) as session:
        define_three(session, root)
        feed(root, 0, 20)
        feed(root, 20, 40, "ab")
        session.sql(f"CREATE QUERY q INTO parquet('{root / 'out'}', form => 'changes') AS {JOINED}")
        session.start()
        session.await_idle()
        if point in _AT_THE_STATEMENT:
            arm(*_AT_THE_STATEMENT[point])
        goes_to(session, 2)
        feed(root, 40, 60, "ab")
        session.await_idle()
        if point in _AT_THE_SWITCH:
            arm(*_AT_THE_SWITCH[point])
        if point in _AFTER_IT:
            _arm_then(*_AFTER_IT[point])
        feed(root, 20, 60, "c")
        session.await_idle()
        feed(root, 60, 70)
        session.await_idle()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
