"""A program that changes a query with a sink on Spark, and kills itself at a point on the way.

python changed.py INPUT OUTPUT CHECKPOINT POINT
"""

from __future__ import annotations

import os
import signal
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tidemill
from running.shop import define, write
from tidemill.runtime.records_file import RecordKeeper
from tidemill.runtime.spark.driver import steps
from tidemill.runtime.spark.driver.delivery import Delivery
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.state.batch_log import BatchLog

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LAST", "NEW", "OLD", "POINTS", "arm", "create"]

OLD = "SELECT k, SUM(v + t) AS total FROM s [RANGE 30] GROUP BY k"
NEW = "SELECT k, SUM(v + t) AS total FROM s [RANGE 10] WHERE v > 2 GROUP BY k"
LAST = 200

_IN_THE_STATEMENT: dict[str, tuple[object, str, bool]] = {
    "before the record": (RecordKeeper, "write", True),
    "after the record": (RecordKeeper, "write", False),
    **{f"after {step.__name__}": (steps, step.__name__, False) for step in steps.CHANGE_STEPS},
}
_IN_THE_NEXT_BATCH: dict[str, tuple[object, str, bool]] = {
    "after begin": (BatchLog, "begin", False),
    "after computing": (RunReport, "take", True),
    "before end": (BatchLog, "end", True),
    "after end": (BatchLog, "end", False),
    "after the batch": (Delivery, "__call__", False),
}
_AT_ITS_END: dict[str, tuple[object, str, bool]] = {
    "after its end is written": (RecordKeeper, "write", False),
    "after the batch of its end": (Delivery, "__call__", False),
}
POINTS = (*_IN_THE_STATEMENT, *_IN_THE_NEXT_BATCH, *_AT_ITS_END)
"""Where a change can be killed: between statement, record, log of batches and commit,
and when the old version has answered all it had to."""


def _kill(*_args: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(owner: Any, name: str, is_before: bool) -> None:  # noqa: ANN401, FBT001 — any of ours
    """Let this process be killed before or after a function is called next."""
    function: Callable[..., object] = getattr(owner, name)

    @wraps(function)
    def killing(*args: object, **options: object) -> None:
        if not is_before:
            function(*args, **options)
        _kill()

    setattr(owner, name, killing)
    changed = [killing if step is function else step for step in steps.CHANGE_STEPS]
    setattr(steps, "CHANGE_STEPS", tuple(changed))  # noqa: B010 — a table of constants


def create(session: tidemill.Session, source: Path, output: Path) -> None:
    """Create the stream and the queries."""
    define(session, source)
    for name in ("changed", "other"):
        into = f"INTO parquet('{output / name}', form => 'changes')"
        session.sql(f"CREATE QUERY {name} {into} AS {OLD}")


def main(source: Path, output: Path, checkpoint: Path, point: str) -> None:
    """Create, change, and let rows come."""
    write(source, 0, 50)
    with tidemill.connect(
        engine="spark", master="local[2]", partitions=2, checkpoint=checkpoint
    ) as session:
        create(session, source, output)
        session.start()
        session.await_idle()
        if point in _IN_THE_STATEMENT:
            arm(*_IN_THE_STATEMENT[point])
        session.sql(f"ALTER QUERY changed AS {NEW}")
        if point in _IN_THE_NEXT_BATCH:
            arm(*_IN_THE_NEXT_BATCH[point])
        write(source, 50, 75)
        session.await_idle()
        arm(*_AT_ITS_END[point])
        write(source, 75, 100)
        session.await_idle()


if __name__ == "__main__":
    places = [Path(place) for place in sys.argv[1:4]]
    main(places[0], places[1], places[2], sys.argv[4])
