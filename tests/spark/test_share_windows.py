"""Queries on Spark that share a join of larger windows, over a restart and a drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import bags, define, expected, write
from running.test_share_windows import RATE, plan_text, text
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def opened(root: Path, *sizes: int) -> tidemill.Session:
    place = root / "state"
    session = tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=place)
    define(session, root / "in", keep=RATE)
    for size in sizes:
        into = f"parquet('{root / f'out{size}'}')"
        session.sql(f"CREATE QUERY q{size} INTO {into} AS {text(size)}")
    return session


def test_queries_share_a_join_on_spark(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path, 5, 12) as session:
        session.start()
        session.await_idle()
        before = plan_text(session, 5)
        assert "Shorten(by=7)" in before
    write(tmp_path / "in", 20, 40)
    with opened(tmp_path, 5, 12) as session:
        session.start()
        session.await_idle()
        assert plan_text(session, 5) == before
        session.sql("DROP QUERY q12")
        write(tmp_path / "in", 40, 60)
        session.await_idle()
        assert plan_text(session, 5) == before
        session.stop()
        session.run(end=True)
        given = session.answer("q5").changes()
        assert bags(given, 80) == bags(expected(tmp_path / "in", text(5)), 80)
