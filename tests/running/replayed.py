"""A program that fills queries with kept rows, and kills itself at a point on the way.

python -m running.replayed ENGINE ROOT POINT AFTER

A stream keeps its past; one query is changed USING EXACT and another one is created WITH HISTORY,
and both are replayed a few rows at a time. The process is killed at a point of a batch, when it
has passed that point some times.
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

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BEGUN",
    "FILE_ROWS",
    "LOCAL_POINTS",
    "NEW",
    "OLD",
    "PAST",
    "SPARK_POINTS",
    "connected",
    "places",
]

OLD = "SELECT k, SUM(v + t) AS total FROM s [RANGE 12] GROUP BY k"
NEW = "SELECT k, SUM(v + t) AS total FROM s [RANGE 30] WHERE v > 2 GROUP BY k"
BEGUN, PAST, FILE_ROWS = 50, 100, 5

LOCAL_POINTS = ("note", "compute", "deliver", "save", "commit")
"""The stages of a step."""

SPARK_POINTS = (
    "before replay",
    "after replay",
    "after run",
    "before take",
    "after take",
    "before end",
    "after end",
    "after __call__",
)
"""Methods of the batch log, of the archives and of the delivery."""


def _armed(
    function: Callable[..., object], after: int, *, is_before: bool
) -> Callable[..., object]:
    left = [after]

    @wraps(function)
    def killing(*args: object, **options: object) -> object:
        given = None if is_before and not left[0] else function(*args, **options)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return given

    return killing


def _arm_spark(point: str, after: int) -> None:
    from tidemill.runtime.spark.driver.delivery import Delivery  # noqa: PLC0415 — only there
    from tidemill.runtime.spark.driver.replaying import SparkArchives  # noqa: PLC0415
    from tidemill.runtime.spark.state.batch_log import BatchLog  # noqa: PLC0415

    when, name = point.split()
    owners: dict[str, Any] = {"replay": BatchLog, "end": BatchLog, "__call__": Delivery}
    owner = owners.get(name, SparkArchives)
    setattr(owner, name, _armed(getattr(owner, name), after, is_before=when == "before"))


def _arm_local(point: str, after: int) -> None:
    from tidemill.runtime.local import stepping  # noqa: PLC0415 — only there

    stages = {one.__name__: one for one in stepping.STAGES}
    armed: Any = _armed(stages[point], after, is_before=False)
    stepping.STAGES = tuple(armed if name == point else s for name, s in stages.items())


def connected(engine: str, root: Path, rows: int = 12) -> tidemill.Session:
    """A session on the checkpoint, which replays a few rows in a batch."""
    where = {"engine": engine, "master": "local[2]"} if engine == "spark" else {}
    return tidemill.connect(
        checkpoint=root / "state",
        partitions=2,
        replay_rows=rows,
        **where,  # type: ignore[arg-type]
    )


def places(root: Path) -> dict[str, str]:
    """Where the queries write to."""
    return {
        name: f"INTO parquet('{root / name}', form => 'changes')" for name in ("changed", "late")
    }


def main(engine: str, root: Path, point: str, after: int) -> None:
    """Create, change, and let rows come."""
    into = places(root)
    write(root / "in", 0, FILE_ROWS)
    with connected(engine, root) as session:
        define(session, root / "in", keep="KEEP 200")
        session.sql(f"CREATE QUERY changed {into['changed']} AS {OLD}")
        session.start()
        for first in range(FILE_ROWS, BEGUN, FILE_ROWS):
            write(root / "in", first, first + FILE_ROWS)
            session.await_idle()
        session.sql(f"CREATE QUERY late {into['late']} START WITH HISTORY AS {OLD}")
        session.sql(f"ALTER QUERY changed AS {NEW} USING EXACT")
        (_arm_spark if engine == "spark" else _arm_local)(point, after)
        for first in range(BEGUN, PAST, FILE_ROWS):
            write(root / "in", first, first + FILE_ROWS)
            session.await_idle()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
