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


def test_a_script_that_has_forgotten_keep_does_not_remove_what_was_kept(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    state = tmp_path / "state"
    with tidemill.connect(checkpoint=state) as session:
        define(session, tmp_path / "in", keep="KEEP ALL")
        session.run()
    with tidemill.connect(checkpoint=state) as session:
        with pytest.raises(tidemill.BindError, match="what it has kept would be removed"):
            define(session, tmp_path / "in")
        session.run()
        assert session.ask("SELECT t FROM s [RANGE 3]", at=5).frame["t"].to_list() == [3, 4, 5]
    with tidemill.connect(checkpoint=state) as session:
        define(session, tmp_path / "in", keep="KEEP 1 HOUR BY REFERENCE")
        session.run()
        assert kept_from(session) == {"s": "the beginning"}
        session.sql("DROP STREAM s")
        define(session, tmp_path / "in")


def state_with_kept_rows(root: Path) -> Path:
    """A checkpoint in which a stream has kept rows."""
    write(root / "in", 0, 10)
    with tidemill.connect(checkpoint=root / "state") as session:
        define(session, root / "in", keep="KEEP ALL")
        session.run()
    return root / "state"


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("lost", ["000000000000-0.parquet", "kept.jsonl"])
def test_a_file_of_what_is_kept_that_is_lost_is_told_and_nothing_else_is_removed(
    tmp_path: Path, lost: str, *, read_only: bool
) -> None:
    state = state_with_kept_rows(tmp_path)
    kept = state / "kept" / "s"
    (kept / lost).unlink()
    there = sorted(kept.iterdir())
    session = tidemill.connect(checkpoint=state, read_only=read_only)
    with pytest.raises(tidemill.RunError, match=rf'is damaged: "{kept / lost}"'):
        session.ask("SELECT t FROM s [RANGE 3]", at=5)
    if not read_only and lost == "kept.jsonl":
        with pytest.raises(tidemill.RunError, match=rf'is damaged: "{kept / lost}"'):
            session.run()
    assert sorted(kept.iterdir()) == there


def test_what_others_have_put_beside_kept_rows_stays(tmp_path: Path) -> None:
    state = state_with_kept_rows(tmp_path)
    (state / "kept" / "s" / "mine").mkdir()
    (state / "kept" / "mine.txt").write_text("mine")
    with tidemill.connect(checkpoint=state) as session:
        session.run()
        assert session.ask("SELECT t FROM s [RANGE 3]", at=5).frame["t"].to_list() == [3, 4, 5]
    assert (state / "kept" / "s" / "mine").is_dir()
    assert (state / "kept" / "mine.txt").is_file()


def test_files_are_named_where_there_is_no_checkpoint_too(tmp_path: Path) -> None:
    source = tmp_path / "in"
    write(source, 0, 30)
    with tidemill.connect() as session:
        define(session, source, keep="KEEP ALL BY REFERENCE")
        session.sql("CREATE QUERY first AS SELECT k FROM s")
        session.start()
        session.await_idle()
        late = session.query(f"CREATE QUERY late START WITH HISTORY AS {TOTAL}")
        session.await_idle()
        right = [(0, 45, 10), (1, 45, 10), (2, 42, 9)]
        assert sorted(late.snapshot(28).rows()) == right
        assert sorted(session.ask(TOTAL, at=28).frame.rows()) == right
        (source / "000000.parquet").unlink()
        with pytest.raises(tidemill.RunError, match="has been changed or removed"):
            session.ask(TOTAL, at=28)
