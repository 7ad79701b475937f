"""A catalog that lasts: sessions on one checkpoint, one after another and at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

import golden
import tidemill
from kept import content, kept_session
from tidemill.catalog.durable import Done, Undone, Written
from tidemill.connectors.connector import Engine
from tidemill.control.kept import KeptCatalog
from tidemill.errors import BindError, RunError, TidemillError
from tidemill.lang.statements import ObjectKind
from tidemill.runtime.local.job import Job, Settings
from tidemill.runtime.lock import take_lock
from tidemill.runtime.runs import Moment
from tidemill.runtime.statement_log import StatementLog
from tidemill.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.catalog.catalog import Catalog
    from tidemill.runtime.runs import Runs

GOLDEN = Path(__file__).parent / "golden" / "checkpoint"

BID = "CREATE STREAM bid (item BIGINT, at BIGINT) SOURCE memory('bids') ORDERED BY at"
Q = "CREATE QUERY q AS SELECT item FROM bid [RANGE 5]"
BIDS = pl.DataFrame({"item": [1, 2], "at": [10, 20]})


def said(directory: Path) -> list[str]:
    """The log in few words."""
    words = []
    for entry in StatementLog(directory).read():
        match entry:
            case Written():
                words.append(f"{'drop' if entry.is_drop else 'create'} {entry.name}")
            case Undone(number):
                words.append(f"undo {number}")
            case Done(number):
                words.append(f"done {number}")
    return words


@pytest.mark.parametrize("case", golden.cases(GOLDEN / "errors.txt"), ids=str)
def test_mistake_gives_this_text(case: golden.Case, tmp_path: Path) -> None:
    before, _, after = f"\n{case.input}".partition("\nthen\n")
    kept_session(tmp_path).sql(before)
    session = kept_session(tmp_path)
    with pytest.raises(TidemillError) as caught:
        session.sql(after)
    golden.check(case, f"{type(caught.value).__name__}: {caught.value}")
    assert content(kept_session(tmp_path).catalog) == content(session.catalog)


def test_the_next_session_knows_everything(tmp_path: Path) -> None:
    first = kept_session(tmp_path / "checkpoint")
    first.put("bids", BIDS)
    first.sql(f"{BID}; {Q}; SELECT item FROM bid [NOW]; CREATE FUNCTION f(x BIGINT) AS x + 1")
    first.sql("CREATE RELATION r (id BIGINT) SOURCE memory('ids')")
    second = kept_session(tmp_path / "checkpoint")
    for kind in ("STREAMS", "QUERIES", "RELATIONS", "FUNCTIONS"):
        shown, expected = second.sql(f"SHOW {kind}"), first.sql(f"SHOW {kind}")
        assert isinstance(shown, pl.DataFrame)
        assert isinstance(expected, pl.DataFrame)
        assert shown.equals(expected)
        assert shown.height
    second.put("bids", BIDS)
    second.run()
    first.run()
    assert second.query(Q).results().equals(first.query(Q).results())
    assert second.find("query_2").results().height == BIDS.height
    with pytest.raises(BindError, match='"bid" is not a query'):
        second.find("bid")


def test_without_a_checkpoint_nothing_is_created_twice() -> None:
    session = tidemill.connect()
    session.sql(BID)
    with pytest.raises(BindError, match='there is a stream "bid" already'):
        session.sql(BID)


def test_nothing_is_made_before_something_is_created(tmp_path: Path) -> None:
    session = kept_session(tmp_path / "new")
    session.sql("SHOW QUERIES; DROP QUERY IF EXISTS q")
    with pytest.raises(BindError):
        session.sql("SELECT x FROM nothing")
    assert not (tmp_path / "new").exists()
    session.sql(BID)
    assert said(tmp_path / "new") == ["create bid"]


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    session = kept_session(tmp_path)
    with pytest.raises(RunError, match="is not a checkpoint, and not empty"):
        session.sql(BID)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert content(session.catalog) == ({}, {})


def test_equal_statements_may_be_written_in_another_way(tmp_path: Path) -> None:
    kept_session(tmp_path).sql(f"{BID}; {Q}")
    session = kept_session(tmp_path)
    session.sql(BID.lower().replace(" (", "("))
    session.sql("create query q as select item from bid window(range 5)")
    assert said(tmp_path) == ["create bid", "create q"]


def test_what_may_change_from_session_to_session_is_changed(tmp_path: Path) -> None:
    into = "CREATE QUERY q INTO parquet('out') AS SELECT item FROM bid [RANGE 5]"
    kept_session(tmp_path).sql(f"{BID}; {into}")
    late = f"{BID} WITHIN 2 SECONDS LATE QUARANTINE"
    replaces = into.replace("'out'", "'out', replace => true")
    session = kept_session(tmp_path)
    session.sql(f"{late}; {replaces}")
    plain = tidemill.connect()
    plain.sql(f"{late}; {replaces}")
    assert content(session.catalog) == content(plain.catalog)
    assert content(kept_session(tmp_path).catalog) == content(plain.catalog)
    for other in (
        BID.replace("'bids'", "'others'"),
        BID.replace("item BIGINT", "item INTEGER"),
        BID.replace("ORDERED BY at", "ORDERED BY item"),
        BID.replace("bid", "Bid", 1),
        into.replace("'out'", "'other'"),
        into.replace("'out'", "'out', form => 'changes'"),
        into.replace("[RANGE 5]", "[RANGE 6]"),
        into.replace(" INTO parquet('out')", ""),
    ):
        with pytest.raises(BindError, match="is another one in this checkpoint"):
            session.sql(other)


def test_unnamed_queries_are_taken_one_by_one(tmp_path: Path) -> None:
    one, other = "SELECT item FROM bid [NOW]", "SELECT item FROM bid [RANGE 9]"
    first = kept_session(tmp_path)
    first.sql(BID)
    names = [first.query(text).name for text in (one, other, one)]
    assert names == ["query_1", "query_2", "query_3"]
    again = kept_session(tmp_path)
    assert [again.query(text).name for text in (one, one, one, other)] == [
        *("query_1", "query_3", "query_4", "query_2")
    ]
    dropping = kept_session(tmp_path)
    dropping.sql("DROP QUERY query_1")
    assert dropping.query(one).name == "query_3"
    assert sorted(kept_session(tmp_path).catalog.objects) == [
        *("bid", "query_2", "query_3", "query_4")
    ]


def test_a_drop_lasts(tmp_path: Path) -> None:
    first = kept_session(tmp_path)
    first.sql(f"{BID}; {Q}; DROP QUERY Q; DROP STREAM BID")
    assert said(tmp_path) == ["create bid", "create q", "drop q", "done 3", "drop bid"]
    second = kept_session(tmp_path)
    assert content(second.catalog) == ({}, {})
    second.sql(BID.replace("item", "thing"))
    assert content(kept_session(tmp_path).catalog) == content(second.catalog)


def test_a_version_that_nobody_has_is_an_error_that_names_the_statement(tmp_path: Path) -> None:
    log = StatementLog(tmp_path)
    text = "CREATE STREAM bid (item BIGINT) SOURCE carrier_pigeon('x')"
    log.append(Written(1, ObjectKind.STREAM, "bid", text))
    with pytest.raises(RunError) as caught:
        kept_session(tmp_path)
    assert "statement 1 of the checkpoint" in caught.value.message
    assert 'the local engine has no connector "carrier_pigeon"' in caught.value.message
    assert text in caught.value.message


# Ownership


def test_a_checkpoint_that_another_session_runs_is_refused(tmp_path: Path) -> None:
    session = kept_session(tmp_path)
    session.sql(BID)
    idle = kept_session(tmp_path)  # nothing is running
    lock = take_lock(tmp_path)
    attempts: list[Callable[[], object]] = [
        *(lambda: kept_session(tmp_path), lambda: idle.sql(Q), idle.start, idle.run)
    ]
    for attempt in attempts:
        with pytest.raises(RunError, match=f"is in use by process {os.getpid()} of"):
            attempt()
    lock.release()
    idle.sql(Q)


def test_a_session_that_runs_has_the_checkpoint_until_it_stops(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    BIDS.write_parquet(tmp_path / "in" / "0.parquet")
    session = kept_session(tmp_path / "state")
    source = BID.replace("memory('bids')", f"parquet('{tmp_path / 'in'}')")
    session.sql(source)
    query = session.query(Q)
    session.start()
    with pytest.raises(RunError, match="is in use"):
        kept_session(tmp_path / "state")
    session.await_idle()
    session.sql("CREATE QUERY late AS SELECT item FROM bid [RANGE 7]")  # its own lock is no matter
    session.sql("ALTER QUERY q AS SELECT item FROM bid [RANGE 6]")
    session.sql("DROP QUERY late")
    with pytest.raises(RunError, match="the session is running"):
        session.sql(source.replace("ORDERED BY at", "ORDERED BY at WITHIN 2 SECONDS"))
    session.stop()
    assert query.results().height
    again = kept_session(tmp_path / "state")
    assert content(again.catalog) == content(session.catalog)
    entry = again.catalog.find("q")
    assert isinstance(entry, type(session.catalog.find("q")))
    assert again.versions("q").equals(session.versions("q"))
    assert again.query(Q).name == "q"
    assert again.query(Q.replace("5", "6")).name == "q"
    with pytest.raises(BindError, match='query "q" is another one in this checkpoint'):
        again.query(Q.replace("5", "7"))


def test_what_another_session_has_written_is_not_overwritten(tmp_path: Path) -> None:
    one = kept_session(tmp_path)
    one.sql(BID)
    other = kept_session(tmp_path)
    other.sql(Q)
    one.sql("SHOW STREAMS")
    attempts: list[Callable[[], object]] = [lambda: one.sql(Q), one.start, one.run]
    for attempt in attempts:
        with pytest.raises(RunError, match="another session has changed the checkpoint") as caught:
            attempt()
        assert caught.value.hint == "connect again: the new session knows what has changed"
    assert said(tmp_path) == ["create bid", "create q"]


def test_a_change_of_another_session_is_not_overwritten(tmp_path: Path) -> None:
    one = kept_session(tmp_path)
    one.sql(f"{BID}; {Q}")
    kept_session(tmp_path).sql("ALTER QUERY q AS SELECT item FROM bid [RANGE 9]")
    with pytest.raises(RunError, match="another session has changed the checkpoint"):
        one.sql("DROP QUERY q")


# Changes


def test_a_query_that_has_not_run_can_be_changed(tmp_path: Path) -> None:
    kept_session(tmp_path).sql(f"{BID}; {Q}")
    again = f"{BID}; {Q}; ALTER QUERY q AS SELECT item FROM bid [RANGE 9]"
    for _ in range(3):
        session = kept_session(tmp_path)
        session.sql(again)
        assert session.versions("q")["version"].to_list() == [1, 2]
        assert said(tmp_path) == ["create bid", "create q"]


def test_an_unnamed_query_that_was_changed_is_found_by_its_first_text(tmp_path: Path) -> None:
    script = (
        f"{BID}; SELECT item FROM bid [NOW]; ALTER QUERY query_1 AS SELECT item FROM bid [RANGE 2]"
    )
    for _ in range(3):
        session = kept_session(tmp_path)
        session.sql(script)
        assert session.versions("query_1")["version"].to_list() == [1, 2]
    session.sql("ALTER QUERY query_1 AS SELECT item FROM bid [NOW]")
    assert kept_session(tmp_path).versions("query_1").height == 3


class Refusing(Job):
    """A job that goes on with nothing else."""

    def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        decide(Moment())
        raise RunError("not now")


def test_what_is_refused_is_undone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    BIDS.write_parquet(tmp_path / "in" / "0.parquet")
    state = tmp_path / "state"
    session = Session(
        lambda catalog, frames, callbacks: cast(
            "Runs", Refusing(catalog, frames, Settings(), callbacks)
        ),
        engine=Engine.LOCAL,
        kept=KeptCatalog(state, Engine.LOCAL),
    )
    session.sql(BID.replace("memory('bids')", f"parquet('{tmp_path / 'in'}')"))
    session.sql(Q)
    session.start()
    for statement in ("SELECT item FROM bid [NOW]", "DROP QUERY q"):
        with pytest.raises(RunError, match="not now"):
            session.sql(statement)
    session.stop()
    assert said(state) == ["create bid", "create q", "create query_2", "undo 3", "drop q", "undo 4"]
    again = kept_session(state)
    assert content(again.catalog) == content(session.catalog)
    assert list(again.catalog.objects) == ["bid", "q"]
    again.sql("DROP QUERY q")
    assert list(kept_session(state).catalog.objects) == ["bid"]


KILLED = """
import os, signal, sys
from pathlib import Path
from kept import kept_session
from tidemill.control.queries import LivingQueries

session = kept_session(Path(sys.argv[1]))
LivingQueries.go_on_with = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
session.sql(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("statement", "there"),
    [
        ("CREATE QUERY p AS SELECT item FROM bid [NOW]", ["bid", "p", "q"]),
        ("DROP QUERY q", ["bid"]),
    ],
)
def test_a_session_that_is_killed_before_the_effect(
    tmp_path: Path, statement: str, there: list[str]
) -> None:
    kept_session(tmp_path).sql(f"{BID}; {Q}")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    ran = subprocess.run(  # noqa: S603 — our own program
        [sys.executable, "-c", KILLED, str(tmp_path), statement], env=environment, check=False
    )
    assert ran.returncode == -signal.SIGKILL
    assert len(said(tmp_path)) == 3
    session = kept_session(tmp_path)
    assert sorted(session.catalog.objects) == there
    is_drop = statement.startswith("DROP")
    assert said(tmp_path)[3:] == (["done 3"] if is_drop else [])
    session.sql(statement.replace("DROP QUERY", "DROP QUERY IF EXISTS"))
    assert sorted(session.catalog.objects) == there


# What is not kept


def test_a_secret_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "moonlight"  # noqa: S105 — that of a test
    session = kept_session(tmp_path)
    session.sql(BID)
    for statement in (
        f"CREATE STREAM s (x BIGINT) SOURCE parquet('s3://ann:{secret}@bucket')",
        f"CREATE RELATION s (x BIGINT) SOURCE csv('https://ann:{secret}@host/x')",
        f"CREATE QUERY s INTO parquet('https://ann:{secret}@host') AS SELECT item FROM bid [NOW]",
    ):
        with pytest.raises(BindError, match="holds a secret, and statements are kept") as caught:
            session.sql(statement)
        assert secret not in str(caught.value)
    monkeypatch.setenv("PLACE", f"s3://ann:{secret}@bucket")
    session.sql("CREATE STREAM s (x BIGINT) SOURCE parquet(env('PLACE'))")
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret.encode() in found for found in kept)
    monkeypatch.delenv("PLACE")
    again = kept_session(tmp_path)  # it is looked up when it is used
    assert again.catalog.find("s") == session.catalog.find("s")


def test_what_only_a_process_can_give_is_asked_for_by_name(tmp_path: Path) -> None:
    first = kept_session(tmp_path)
    first.sql(BID)
    first.sql("CREATE STREAM view AS SELECT item FROM bid")
    first.sql("CREATE STREAM unused (x BIGINT) SOURCE memory('unused')")
    first.sql("CREATE RELATION r (id BIGINT) SOURCE memory()")
    first.sql("CREATE QUERY told INTO callback('tell') AS SELECT item FROM view [NOW]")
    first.sql("CREATE QUERY q AS SELECT item FROM view [NOW], r WHERE item = id")
    session = kept_session(tmp_path)
    for begin in (session.run, session.start):
        with pytest.raises(RunError) as caught:
            begin()
        assert caught.value.message == (
            'there is no callback "tell", which query "told" is to call, and no frame "bids", '
            'which "bid" reads, and no frame "r", which "r" reads'
        )
        assert caught.value.hint == (
            "write session.callback('tell', function), session.put('bids', frame), "
            "session.put('r', frame) before the session starts"
        )
    rows: list[pl.DataFrame] = []
    session.callback("tell", lambda frame, _: rows.append(frame))
    session.put("bids", BIDS)
    session.put("r", pl.DataFrame({"id": [2]}))
    session.run()
    assert pl.concat(rows).height == BIDS.height
    assert session.find("q").results()["item"].to_list() == [2]
