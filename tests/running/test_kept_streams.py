"""Streams that keep their past come and go while others are read, and say what they have kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import TOTAL, define, write

if TYPE_CHECKING:
    from pathlib import Path


def kept_from(session: tidemill.Session) -> dict[str, str]:
    shown = session.sql("SHOW STREAMS")
    assert isinstance(shown, pl.DataFrame)
    return dict(shown.select("name", "kept_from").rows())


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_stream_with_keep_is_read_from_its_creation_on_by_queries_or_not(
    tmp_path: Path, *, is_kept: bool
) -> None:
    write(tmp_path / "in", 0, 10)
    write(tmp_path / "more", 0, 10)
    with tidemill.connect(checkpoint=tmp_path / "state" if is_kept else None) as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total AS {TOTAL}")
        session.start()
        define(session, tmp_path / "more", name="more", keep="KEEP ALL")
        session.await_idle()
        assert kept_from(session) == {"s": "", "more": "the beginning"}
        assert session.ask("SELECT t FROM more [RANGE 3]", at=5).frame["t"].to_list() == [3, 4, 5]
        session.sql("DROP STREAM more")
        session.await_idle()
        assert [stream.name for stream in session.progress().streams] == ["s"]


def test_a_stream_that_cannot_be_read_is_not_created(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in", keep="KEEP ALL")
        session.start()
        with pytest.raises(tidemill.RunError, match="there is no directory"):
            define(session, tmp_path / "nowhere", name="more", keep="KEEP ALL")
        session.await_idle()
        assert kept_from(session) == {"s": "the beginning"}
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        assert kept_from(session) == {"s": "the beginning"}


def test_what_is_kept_is_shown_in_every_session(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    state = tmp_path / "state"
    with tidemill.connect(checkpoint=state) as session:
        define(session, tmp_path / "in", keep="KEEP ALL")
        assert kept_from(session) == {"s": ""}
        session.run()
        assert kept_from(session) == {"s": "the beginning"}
        looking = tidemill.connect(checkpoint=state, read_only=True)
        assert kept_from(looking) == {"s": "the beginning"}
    with tidemill.connect(checkpoint=state) as session:
        assert kept_from(session) == {"s": "the beginning"}


def test_a_query_does_not_start_with_a_history_that_nobody_has_kept(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with tidemill.connect() as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total AS {TOTAL}")
        session.start()
        session.await_idle()
        session.sql("STOP QUERY total IMMEDIATE")
        with pytest.raises(tidemill.RunError, match="is still to answer up to where it was"):
            session.sql("START QUERY total WITH HISTORY")
        write(tmp_path / "in", 10, 20)
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="do not keep the rows that its windows hold"):
            session.sql("START QUERY total WITH HISTORY")
        session.sql("START QUERY total WARM")
