"""Queries that are changed, stopped and started on Spark: the same as on the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.living_body import NEW, OLD, exercised
from running.shop import define, expected, write
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_statements_on_a_running_session(tmp_path: Path) -> None:
    exercised(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)


def test_a_changed_query_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The script that created it, and one that creates it as it is now, take it up again."""
    directory, checkpoint = tmp_path / "in", tmp_path / "state"
    write(directory, 0, 50)
    texts = [f"CREATE QUERY q AS {text}" for text in (OLD, NEW)]
    with tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
    ) as session:
        define(session, directory)
        session.query(texts[0])
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q AS {NEW}")
        write(directory, 50, 55)
        session.await_idle()
    given: list[pl.DataFrame] = []
    for number, text in enumerate(texts):
        with tidemill.connect(
            engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
        ) as session:
            define(session, directory)
            query = session.query(text)
            session.start()
            first = 55 + 45 * number
            write(directory, first, first + 45)
            session.await_idle()
            parts = query.versions().select("version", "fresh", "since").rows()
            assert parts == [(1, 0, 0), (2, 50, 59)]
            given.append(query.changes())
    with (
        tidemill.connect(engine="spark", master=MASTER, checkpoint=checkpoint) as session,
        pytest.raises(tidemill.RunError, match="is not the one that this checkpoint runs"),
    ):
        define(session, directory)
        session.query("CREATE QUERY q AS SELECT k, v AS total FROM s")
        session.start()
    wanted = expected(directory, NEW)
    for frame, since, until in ((given[0], 60, 99), (given[1], 101, 144)):
        due = (pl.col("time") >= since) & (pl.col("time") < until)
        order = ["time", "sign", "k", "total"]
        assert frame.filter(due).sort(order).equals(wanted.filter(due).sort(order))
