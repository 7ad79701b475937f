"""Queries that are created between two sessions of a checkpoint begin where the pipeline stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.between_body import created_between, lives, opened
from running.kept import CrashError, crashing
from running.shop import TOTAL, bags, define, expected, write
from tidemill.runtime.local import stepping

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("keep", ["", "KEEP 40", "KEEP ALL", "KEEP 60 BY REFERENCE"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_they_answer_from_the_instant_that_is_named(
    tmp_path: Path, keep: str, partitions: int
) -> None:
    state = tmp_path / "state"
    created_between(
        partial(tidemill.connect, checkpoint=state, partitions=partitions), tmp_path, keep
    )


def connected(root: Path) -> tidemill.Session:
    return opened(partial(tidemill.connect, checkpoint=root / "state"))


def after_a_session(root: Path, keep: str = "", text: str = "SELECT k FROM s [RANGE 3]") -> None:
    """A checkpoint of which one session has processed sixty rows."""
    write(root / "in", 0, 60)
    with tidemill.connect(checkpoint=root / "state") as session:
        define(session, root / "in", keep=keep)
        session.sql(f"CREATE QUERY old AS {text}")
        session.run()


def contents(root: Path) -> dict[str, bytes]:
    """What is in a checkpoint, and below it, but for its lock."""
    found = (root / "state").rglob("*")
    return {
        str(path): path.read_bytes() for path in found if path.is_file() and path.name != "lock"
    }


def refused(act: Callable[[], object], match: str) -> None:
    with pytest.raises(tidemill.RunError, match=match):
        act()


def counted(rows: int) -> list[tuple[int, ...]]:
    return [(rows,)] if rows else []


COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 10]"


@pytest.mark.parametrize(("keep", "complete", "n"), [("", "69", 3), ("KEEP 40", "58", 10)])
def test_a_run_begins_them_as_a_start_does(
    tmp_path: Path, keep: str, complete: str, n: int
) -> None:
    after_a_session(tmp_path, keep)
    write(tmp_path / "in", 60, 70)
    with connected(tmp_path) as session:
        late = session.query(f"CREATE QUERY late AS {COUNT}")
        session.run()
        assert lives(session) == {"late": complete, "old": "the beginning"}
        assert late.snapshot(62).rows() == counted(n)


def test_the_same_session_may_create_them_after_it_has_stopped(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connected(tmp_path) as session:
        define(session, tmp_path / "in", keep="KEEP 20")
        session.sql(f"CREATE QUERY old AS {TOTAL}")
        session.start()
        session.await_idle()
        session.stop()
        late = session.query(f"CREATE QUERY late AS {COUNT}")
        assert lives(session)["late"] == "58"
        session.start()
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        assert [late.snapshot(t).rows() for t in range(58, 69)] == [counted(10)] * 11


def test_those_of_a_checkpoint_that_has_not_run_have_always_been_there(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connected(tmp_path) as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY one AS {COUNT}")
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY two START WITH HISTORY AS {COUNT}")
        session.run()
        assert lives(session) == dict.fromkeys(("one", "two"), "the beginning")
        assert not (tmp_path / "state" / "queries.json").exists()


def test_a_history_that_cannot_be_had_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    after_a_session(tmp_path)
    before = contents(tmp_path)
    with connected(tmp_path) as session:
        asked = "CREATE QUERY late START WITH HISTORY AS SELECT k FROM s [RANGE 100]"
        refused(lambda: session.sql(asked), '"s" does not keep its past.* from 159 on')
        refused(
            lambda: session.sql(asked.replace("RANGE 100", "ROWS 3")), "not keep its past\nhint"
        )
    assert contents(tmp_path) == before


def test_a_history_that_is_not_there_any_more_at_the_start_is_refused(tmp_path: Path) -> None:
    after_a_session(tmp_path, "KEEP 20")
    waits = connected(tmp_path)
    waits.sql("CREATE QUERY late START WITH HISTORY AS SELECT k FROM s [RANGE 12]")
    lines = (tmp_path / "state" / "kept" / "s" / "kept.jsonl").read_text().splitlines()
    header = json.loads(lines[0]) | {"since": 59}
    (tmp_path / "state" / "kept" / "s" / "kept.jsonl").write_text(json.dumps(header) + "\n")
    before = contents(tmp_path)
    for session in (waits, connected(tmp_path)):
        assert lives(session)["late"] == "never"
        refused(session.start, "cannot start with history")
        refused(session.run, "cannot start with history")
    assert contents(tmp_path) == before


def test_a_start_that_is_refused_leaves_them_to_begin_later(tmp_path: Path) -> None:
    after_a_session(tmp_path, "KEEP 20")
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY late INTO callback('taken') AS {COUNT}")
        before = contents(tmp_path)
        refused(session.start, "taken")
        refused(session.run, "taken")
        assert contents(tmp_path) == before
        assert lives(session)["late"] == "58"
        taken: list[pl.DataFrame] = []
        session.callback("taken", lambda rows, _batch: taken.append(rows))
        session.start()
        session.await_idle()
        assert lives(session)["late"] == "58"


def test_a_failure_after_they_have_begun_leaves_them_as_they_have_begun(tmp_path: Path) -> None:
    after_a_session(tmp_path, "KEEP 20")
    write(tmp_path / "in", 60, 70)
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY late AS {COUNT}")
        with crashing(0, len(stepping.STAGES) - 1), pytest.raises(CrashError):
            session.run()
        assert lives(session)["late"] == "58"
    with connected(tmp_path) as session:
        assert lives(session)["late"] == "58"
        session.run()
        assert session.ask("SELECT * FROM QUERY late", at=62).frame.rows() == counted(10)


@pytest.mark.parametrize("method", ["record_kept", "begin", "know"])
@pytest.mark.parametrize("is_before", [True, False])
def test_what_was_decided_outlasts_a_kill_before_it_takes_effect(
    tmp_path: Path, method: str, *, is_before: bool
) -> None:
    after_a_session(tmp_path, "KEEP 20")
    with connected(tmp_path) as session:
        session.sql(
            f"CREATE QUERY late INTO parquet('{tmp_path / 'late'}', form => 'changes') AS {COUNT}"
        )
    path = os.pathsep.join(
        [str(Path(__file__).parents[1]), str(Path(tidemill.__file__).parents[1])]
    )
    ran = subprocess.run(  # noqa: S603 — this interpreter
        [sys.executable, "-c", KILLED, str(tmp_path / "state"), method, str(is_before)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    with connected(tmp_path) as session:
        assert lives(session)["late"] == "58"
        session.start()
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        assert session.find("late").snapshot(62).rows() == counted(10)
        assert session.versions("late").select("since").rows() == [(58,)]


KILLED = """
import os, signal, sys
import polars as pl
import tidemill
from tidemill.runtime.local.checkpoint import LocalCheckpoint

checkpoint, method, is_before = sys.argv[1:]
session = tidemill.connect(checkpoint=checkpoint)
session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
there = getattr(LocalCheckpoint, method)

def kill(self, *given, **named):
    if is_before == "False":
        there(self, *given, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(LocalCheckpoint, method, kill)
session.start()
"""


@pytest.mark.parametrize(
    ("keep", "since", "complete", "n"), [("", 60, 69, 3), ("KEEP 20", 58, 58, 10)]
)
def test_one_that_was_changed_before_it_began_begins_as_it_is_now(
    tmp_path: Path, keep: str, since: int, complete: int, n: int
) -> None:
    after_a_session(tmp_path, keep)
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY late AS {TOTAL}")
        session.sql(f"ALTER QUERY late AS {COUNT}")
    with connected(tmp_path) as session:
        assert lives(session)["late"] == str(complete)
        session.start()
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        assert session.find("late").snapshot(62).rows() == counted(n)
        assert session.versions("late").select("version", "since").rows() == [(1, None), (2, since)]


def test_one_that_has_stopped_does_not_begin_again(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connected(tmp_path) as session:
        define(session, tmp_path / "in", keep="KEEP 20")
        session.sql(f"CREATE QUERY stops AS {COUNT}")
        session.start()
        session.await_idle()
        session.sql("STOP QUERY stops")
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        versions = session.versions("stops")
    for first in (70, 80):
        write(tmp_path / "in", first, first + 10)
        with connected(tmp_path) as session:
            session.start()
            session.await_idle()
            shown = session.sql("SHOW QUERIES")
            assert isinstance(shown, pl.DataFrame)
            assert shown["state"].to_list() == ["stopped"]
            assert session.versions("stops").equals(versions)


def test_before_it_has_begun_it_is_asked_as_it_will_be(tmp_path: Path) -> None:
    after_a_session(tmp_path, "KEEP ALL")
    asked = "SELECT * FROM QUERY late AS OF 30"
    looking = tidemill.connect(checkpoint=tmp_path / "state", read_only=True)
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY late AS {COUNT}")
        for _ in range(2):
            assert lives(session)["late"] == lives(looking)["late"] == "58"
            for one in (session, looking):
                refused(lambda: one.sql(asked), "answers from 58 on")  # noqa: B023
                assert one.ask("SELECT * FROM QUERY late", at=58).frame.rows() == counted(10)
            session.run()


def test_one_that_is_dropped_before_it_begins_leaves_nothing(tmp_path: Path) -> None:
    after_a_session(tmp_path, "KEEP 20")
    with connected(tmp_path) as session:
        session.sql(f"CREATE QUERY late AS {TOTAL}; DROP QUERY late; DROP QUERY old")
        late = session.query(f"CREATE QUERY late AS {COUNT}")
        session.start()
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        assert lives(session) == {"late": "58"}
        assert late.snapshot(62).rows() == counted(10)


@pytest.mark.parametrize("stage", range(len(stepping.STAGES)))
def test_rows_of_a_step_that_was_cut_short_are_theirs_unless_it_is_done(
    tmp_path: Path, stage: int
) -> None:
    after_a_session(tmp_path)
    write(tmp_path / "in", 60, 70)
    session = connected(tmp_path)
    with crashing(0, stage), pytest.raises(CrashError):
        session.run()
    session.stop()
    is_done = stage == len(stepping.STAGES) - 1
    with connected(tmp_path) as session:
        late = session.query(f"CREATE QUERY late AS {COUNT}")
        assert lives(session)["late"] == ("79" if is_done else "69")
        session.start()
        write(tmp_path / "in", 70, 80)
        session.await_idle()
        assert late.snapshot(75).rows() == counted(6 if is_done else 10)


# Streams that nobody has read


def other(session: tidemill.Session, root: Path, keep: str = "") -> None:
    """Another stream, with the same rows."""
    write(root / "other", 0, 60)
    session.sql(
        "CREATE STREAM o (k BIGINT, v BIGINT, t BIGINT)"
        f" SOURCE parquet('{root / 'other'}') ORDERED BY t {keep}"
    )


BOTH = "SELECT s.v AS x, o.v AS y FROM s [RANGE 5] JOIN o [RANGE 5] ON s.t = o.t"


@pytest.mark.parametrize(
    ("keeps", "complete"), [(("", ""), 64), (("KEEP 20", ""), 64), (("KEEP ALL",) * 2, 0)]
)
@pytest.mark.parametrize("is_running", [False, True])
def test_of_a_stream_that_is_joined_all_rows_from_its_beginning_on_are_read(
    tmp_path: Path, keeps: tuple[str, str], complete: int, *, is_running: bool
) -> None:
    after_a_session(tmp_path, keeps[0])
    with connected(tmp_path) as session:
        if is_running:
            session.start()
        other(session, tmp_path, keeps[1])
        late = session.query(f"CREATE QUERY late AS {BOTH}")
        named = lives(session)["late"]
        if is_running and keeps[1] and named != "the beginning":
            # A stream that keeps its past is read as soon as it is there: perhaps before the query.
            complete = int(named)
            assert complete < 60, "it is complete from the next instant on"
        else:
            assert named == (str(complete) if complete else "the beginning")
        if not is_running:
            session.start()
        write(tmp_path / "in", 60, 100)
        write(tmp_path / "other", 60, 100)
        session.await_idle()
        found = bags(late.changes(), 95)
    with tidemill.connect() as session:
        define(session, tmp_path / "in")
        other(session, tmp_path)
        query = session.query(BOTH)
        session.run()
        wanted = bags(query.changes(), 95)
    assert found[complete:] == wanted[complete:]
    assert any(wanted)


def test_a_stream_that_keeps_its_past_is_read_from_its_beginning_on(tmp_path: Path) -> None:
    after_a_session(tmp_path)
    with connected(tmp_path) as session:
        other(session, tmp_path, "KEEP 5")
        late = session.query("CREATE QUERY late START WITH HISTORY AS SELECT v FROM o [RANGE 9]")
        session.start()
        session.await_idle()
        assert lives(session)["late"] == "the beginning"
        wanted = expected(tmp_path / "other", "SELECT v FROM s [RANGE 9]")
        assert bags(late.changes(), 59) == bags(wanted, 59)


def test_of_a_stream_that_nobody_reads_any_more_it_is_known_what_had_come(tmp_path: Path) -> None:
    after_a_session(tmp_path)
    with connected(tmp_path) as session:
        session.start()
        other(session, tmp_path)
        session.sql("CREATE QUERY once AS SELECT v FROM o")
        write(tmp_path / "other", 60, 70)
        session.await_idle()
        session.sql("DROP QUERY once")
    for first in (60, 70):
        write(tmp_path / "in", first, first + 10)
        with connected(tmp_path) as session:
            session.run()
    with connected(tmp_path) as session:
        late = session.query("CREATE QUERY late AS SELECT v FROM o [RANGE 5]")
        assert lives(session)["late"] == "74"
        session.start()
        write(tmp_path / "other", 70, 80)
        session.await_idle()
        wanted = bags(expected(tmp_path / "other", "SELECT v FROM s [RANGE 5] WHERE t >= 70"), 79)
        assert bags(late.changes(), 79) == wanted
        session.sql("DROP QUERY late")
    with connected(tmp_path) as session:
        assert lives(session) == {"old": "the beginning"}
        session.run()
        session.sql("CREATE QUERY late AS SELECT v FROM o [RANGE 5]")
        assert lives(session)["late"] == "84"
