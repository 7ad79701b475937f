"""Tables on Spark in what is asked once: here, and in another session without Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import TOTAL, bags, define, expected, write
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_a_table_on_spark_is_asked_once_though_its_streams_keep_nothing(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    there = bags(expected(tmp_path / "in", TOTAL), 40)
    state = tmp_path / "state"
    with tidemill.connect(engine="spark", master=MASTER, checkpoint=state, partitions=2) as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE TABLE total KEEP 12 AS {TOTAL}")
        session.start()
        session.await_idle()
        with tidemill.connect(checkpoint=state, read_only=True) as look:
            for one in (session, look):
                assert one.ask("SELECT * FROM total").known == 39
                for time in (26, 30, 38):
                    found = one.ask("SELECT a.* FROM total a JOIN total b ON a.k = b.k", at=time)
                    assert Counter(found.frame.rows()) == there[time]
                with pytest.raises(tidemill.RunError, match='"total" is kept from 26 on'):
                    one.ask("SELECT * FROM total", at=25)
