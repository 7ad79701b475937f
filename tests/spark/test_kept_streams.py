"""What streams have kept on Spark can be asked for while it runs, and when it has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import define, write
from running.test_kept_streams import kept_from
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

LAST = "SELECT t FROM s [RANGE 3]"


def asked(session: tidemill.Session) -> list[int]:
    return session.ask(LAST, at=5).frame["t"].to_list()


def test_what_a_checkpoint_keeps_is_there_when_a_run_is_over(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with tidemill.connect(engine="spark", master=MASTER, checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in", keep="KEEP ALL")
        session.start()
        session.await_idle()
        assert (asked(session), kept_from(session)) == ([3, 4, 5], {"s": "the beginning"})
        write(tmp_path / "more", 0, 10)
        define(session, tmp_path / "more", name="more", keep="KEEP ALL")
        session.await_idle()
        everywhere = {"s": "the beginning", "more": "the beginning"}
        assert kept_from(session) == everywhere
        session.stop()
        assert (asked(session), kept_from(session)) == ([3, 4, 5], everywhere)
        session.run(end=True)
        assert (asked(session), kept_from(session)) == ([3, 4, 5], everywhere)
    with tidemill.connect(engine="spark", master=MASTER) as session:
        define(session, tmp_path / "in", keep="KEEP ALL")
        session.run()
        assert kept_from(session) == {"s": ""}
        with pytest.raises(tidemill.RunError, match="was given up with the run"):
            asked(session)
