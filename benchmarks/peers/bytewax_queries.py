"""The four queries on Bytewax.

In and out: rows are Python tuples in a list, made before the clock starts and handed over in
batches of a thousand; results are appended to a list. The clock runs while the dataflow does.

Windows are Bytewax's own (``SlidingWindower``), one state a key. Their time moves with the rows
only: as it is by default, time that passes while rows wait to be processed would make them late.
The join is written by hand on ``stateful_batch`` over both streams merged by time, since Bytewax
joins the rows of a window, and no window holds just the pairs that are less than a minute apart.
One worker, which is one thread.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING

import bytewax.operators as op
import pyarrow as pa
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic, windowing
from bytewax.testing import TestingSink, TestingSource, run_main

from benchmarks.peers.stopwatch import Run, Task, Took, main, read, took

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Values: TypeAlias = tuple[object, ...]
    Operators: TypeAlias = Callable[[object], object]
    """From the stream of rows to the stream of results."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
MINUTE = 60 * SECOND
BATCH = 1_000


def filtered(rows: object) -> object:
    """The rows with a value above 50, and twice that value."""

    def kept(batch: list[tuple[int, float, int]]) -> list[tuple[int, float, int]]:
        return [(key, value * 2, at) for key, value, at in batch if value > 50]  # noqa: PLR2004

    return op.flat_map_batch("filter", rows, kept)


def windowed(folder: Callable[[float, tuple[datetime, float]], float]) -> Operators:
    """A fold over each minute, sliding by a second: (key, (first second, result))."""

    def build(rows: object) -> object:
        clock = windowing.EventClock(
            ts_getter=itemgetter(0),
            wait_for_system_duration=timedelta(0),
            now_getter=lambda: EPOCH,
            to_system_utc=lambda _: None,
        )
        windower = windowing.SlidingWindower(
            length=timedelta(seconds=60), offset=timedelta(seconds=1), align_to=EPOCH
        )
        return windowing.fold_window(
            "fold", rows, clock, windower, float, folder, lambda one, _: one, ordered=False
        ).down

    return build


class Near(StatefulBatchLogic):
    """Pairs of rows of one key from both sides that are less than a minute apart."""

    def __init__(self) -> None:
        self.sides: tuple[deque[tuple[int, float]], ...] = (deque(), deque())

    def on_batch(
        self, values: list[tuple[int, int, float]]
    ) -> tuple[list[tuple[float, float]], bool]:
        """The pairs of new rows, in the order of time, with those that are still near."""
        found: list[tuple[float, float]] = []
        left, right = self.sides
        for side, at, value in values:
            for rows in self.sides:
                while rows and rows[0][0] <= at - MINUTE:
                    rows.popleft()
            if side == 0:
                found += [(value, other) for _, other in right]
                left.append((at, value))
            else:
                found += [(other, value) for _, other in left]
                right.append((at, value))
        return found, StatefulBatchLogic.RETAIN

    def snapshot(self) -> object:
        """The rows that are kept."""
        return tuple(deque(side) for side in self.sides)


def joined(rows: object) -> object:
    """The pairs: (key, (left value, right value))."""
    return op.stateful_batch("join", rows, lambda _: Near())


def rows_of(task: Task) -> list[Values]:
    """The input as tuples; a stream with keys has pairs of a key, which is text, and the rest."""
    tables = [read(task.folder / name).to_pydict() for name in task.streams]
    if task.query == "filter":
        return list(zip(*tables[0].values(), strict=True))
    if task.query == "join":
        both = [
            (at, side, str(key), value)
            for side, table in enumerate(tables)
            for key, value, at in zip(*table.values(), strict=True)
        ]
        return [(key, (side, at, value)) for at, side, key, value in sorted(both)]
    return [
        (str(key), (EPOCH + timedelta(microseconds=at), value))
        for key, value, at in zip(*tables[0].values(), strict=True)
    ]


def table_of(query: str, found: Sequence[Values]) -> pa.Table:
    """The results as a table."""
    if query == "filter":
        return pa.table(dict(zip(("key", "v", "at"), zip(*found, strict=True), strict=True)))
    keys = pa.array([int(str(key)) for key, _ in found], pa.int64())
    one, other = zip(*(pair for _, pair in found), strict=True)
    if query == "join":
        return pa.table({"key": keys, "x": one, "y": other})
    until = pa.array([(first + 60) * SECOND for first in one], pa.int64())
    columns = {"key": keys, "until": until}
    return pa.table(columns if query == "distinct" else {**columns, "v": other})


def prepare(task: Task) -> Run:
    """The dataflow of a query over rows in memory."""
    queries: dict[str, Operators] = {
        "filter": filtered,
        "sum": windowed(lambda total, row: total + row[1]),
        "distinct": windowed(lambda one, _: one),
        "join": joined,
    }
    rows = rows_of(task)

    def run() -> tuple[Took, pa.Table]:
        found: list[Values] = []
        flow = Dataflow(task.query)
        stream = op.input("in", flow, TestingSource(rows, batch_size=BATCH))
        op.output("out", queries[task.query](stream), TestingSink(found))
        return took(lambda: run_main(flow)), table_of(task.query, found)

    return run


if __name__ == "__main__":
    main(prepare)
