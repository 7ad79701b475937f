"""Tables on Spark: the rows of the answer at every instant, over changes and restarts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import PAIRS, TOTAL, bags, define, expected, write
from spark.on_spark import MASTER
from tidemill.errors import RunError
from tidemill.runtime.spark.state.batch_log import BatchLog

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

PAST = 150


def connect(root: Path) -> tidemill.Session:
    return tidemill.connect(engine="spark", master=MASTER, checkpoint=root / "state", partitions=2)


def require(session: tidemill.Session, root: Path, keep: int | None) -> int:
    """Find the rows of both tables that are to be there; up to when both are known."""
    known = []
    for name, text in (("total", TOTAL), ("pair", PAIRS)):
        there, table = bags(expected(root / "in", text), PAST), session.table(name)
        now = table.bag()
        assert now.since == (0 if keep is None else max(now.at - keep, 0))
        for time in range(now.since, min(now.known, PAST)):
            assert Counter(table.snapshot(time).rows()) == there[time], f"{name} at {time}"
        known.append(now.known)
    return min(known)


def test_tables_have_their_rows_over_restarts_and_a_batch_that_comes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", 0, 30)
    with connect(tmp_path) as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE TABLE total KEEP 12 AS {TOTAL}; CREATE TABLE pair KEEP 12 AS {PAIRS}")
        session.start()
        session.await_idle()
        for first in (30, 45):
            write(tmp_path / "in", first, first + 15)
            session.await_idle()
        assert require(session, tmp_path, 12) == 59
    with connect(tmp_path) as reader:
        assert require(reader, tmp_path, 12) == 59, "nothing runs"
    end = BatchLog.end
    failing = [True]

    def failing_end(log: BatchLog, *given: object) -> None:
        if failing.pop() if failing else False:
            raise RunError("the power is off")
        end(log, *given)  # type: ignore[arg-type]

    write(tmp_path / "in", 60, 75)
    monkeypatch.setattr(BatchLog, "end", failing_end)
    with connect(tmp_path) as session:
        session.start()
        with pytest.raises(RunError, match="the power is off"):
            session.await_idle()
    with connect(tmp_path) as reader:
        assert require(reader, tmp_path, 12) == 59, "the batch is not done"
    with connect(tmp_path) as session:
        session.start()
        session.await_idle()
        assert require(session, tmp_path, 12) == 74
        session.sql("DROP TABLE pair")
        assert not (tmp_path / "state" / "tables" / "pair").exists()


def test_a_bounded_run_without_a_checkpoint_keeps_tables_in_memory(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 30)
    with tidemill.connect(engine="spark", master=MASTER, partitions=1) as session:
        define(session, tmp_path / "in")
        session.sql(
            f"CREATE TABLE total KEEP ALL AS {TOTAL}; CREATE TABLE pair KEEP ALL AS {PAIRS}"
        )
        session.run()
        require(session, tmp_path, None)
        assert session.table("total").bag().at == 29
