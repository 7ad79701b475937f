"""What is asked once of a pipeline: before it runs, meanwhile and after, here and elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running import asker
from running.asking_body import Pipeline, answered, asked_throughout
from running.kept import CrashError, crashing, in_small_steps
from running.shop import PAIRS, TOTAL, rows, write
from tidemill.control.checkpoint_past import past_in
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.batch_ends import last_end
from tidemill.runtime.kept_streams import kept_streams
from tidemill.runtime.local import stepping

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP = "KEEP 100"
JOINED = "SELECT name, v FROM s [RANGE 4], r WHERE id = k"
LAST = "SELECT k, COUNT(*) AS n FROM s [ROWS 5] GROUP BY k"


def connected(root: Path, *texts: str, keep: str = KEEP, **settings: object) -> tidemill.Session:
    """A session on the checkpoint below a directory, with queries whose answers are in memory."""
    session = tidemill.connect(checkpoint=root / "state", **settings)  # type: ignore[arg-type]
    session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
    session.sql(
        f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{root / 'in'}')"
        f" ORDERED BY t {keep};"
        "CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')"
    )
    for number, text in enumerate(texts):
        session.sql(f"CREATE QUERY q{number} AS {text}")
    return session


def looking(root: Path) -> tidemill.Session:
    return tidemill.connect(checkpoint=root / "state", read_only=True)


def snapshot(root: Path, text: str, time: int) -> pl.DataFrame:
    """What a query that has run from the beginning to the end says of an instant."""
    with tidemill.connect() as session:
        session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        session.sql(
            f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{root / 'in'}')"
            " ORDERED BY t;"
            "CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')"
        )
        query = session.query(text)
        session.run()
        return query.snapshot(time)


def write_many(directory: Path, past: int, size: int) -> None:
    """Files of so many rows each."""
    for first in range(0, past, size):
        write(directory, first, first + size)


def refused(act: Callable[[], object], match: str) -> None:
    with pytest.raises(tidemill.RunError, match=match):
        act()


# The same frame


@pytest.mark.parametrize("text", [TOTAL, PAIRS, JOINED, LAST, "SELECT k, v FROM s"])
def test_an_instant_has_one_frame_whenever_and_wherever_it_is_asked(
    tmp_path: Path, text: str
) -> None:
    write(tmp_path / "in", 0, 40)
    asked, frames = f"{text} AS OF 30", []
    with connected(tmp_path, JOINED) as session:
        session.start()
        session.await_idle()
        frames += [session.sql(asked), looking(tmp_path).sql(asked)]
        write(tmp_path / "in", 40, 80)
        session.await_idle()
        frames += [session.ask(text, at=30).frame, looking(tmp_path).ask(text, at=30).frame]
    frames.append(session.sql(asked))
    with connected(tmp_path, JOINED) as again:
        frames.append(again.sql(asked))  # before it is started
        again.start()
        write(tmp_path / "in", 80, 120)
        again.await_idle()
        frames.append(again.sql(asked))
    frames.append(looking(tmp_path).sql(asked))
    wanted = snapshot(tmp_path, text, 30)
    assert all(isinstance(frame, pl.DataFrame) and frame.equals(wanted) for frame in frames)


def test_a_run_without_a_checkpoint_can_be_asked(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with tidemill.connect() as session:
        session.sql(
            f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{tmp_path / 'in'}')"
            " ORDERED BY t KEEP ALL"
        )
        refused(lambda: session.sql("SELECT * FROM s AS OF 5"), "nothing is known yet")
        session.run()
        assert session.ask(TOTAL, at=20).frame.equals(snapshot(tmp_path, TOTAL, 20))
        assert session.ask(TOTAL).at == 39
        session.start()
        session.await_idle()
        assert session.ask(TOTAL).at == 38
        assert session.ask(TOTAL).known == 39


def test_now_is_the_last_instant_that_is_known_and_after_the_end_that_of_the_latest_row(
    tmp_path: Path,
) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.run()
        answer = session.ask(TOTAL)
        assert (answer.at, answer.known, answer.batch) == (38, 39, 0)
        session.run(end=True)
        assert (session.ask(TOTAL).at, session.ask(TOTAL).known) == (39, END_OF_TIME)
    assert looking(tmp_path).ask(TOTAL).at == 39
    assert looking(tmp_path).ask(TOTAL, at=45).frame.equals(snapshot(tmp_path, TOTAL, 45))


def test_what_is_taken_again_after_a_kill_is_known_once(tmp_path: Path) -> None:
    write_many(tmp_path / "in", 60, 10)
    for stage in range(len(stepping.STAGES)):
        root = tmp_path / str(stage)
        (root / "in").mkdir(parents=True)
        for path in (tmp_path / "in").iterdir():
            os.link(path, root / "in" / path.name)
        with in_small_steps(10, 10):
            session = connected(root, TOTAL)
            with crashing(2, stage), pytest.raises(CrashError):
                session.run()
            session.stop()
            before = looking(root).ask(TOTAL)
            assert before.frame.equals(snapshot(tmp_path, TOTAL, before.at))
            with connected(root, TOTAL) as again:
                again.run()
        after = looking(root).ask(TOTAL, at=before.at)
        assert after.frame.equals(before.frame)
        assert (
            looking(root).ask("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]").frame["n"][0] == 59
        )


def test_a_pipeline_that_has_failed_can_be_asked_up_to_its_last_batch(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        (tmp_path / "in" / "000040.parquet").write_bytes(b"no parquet")
        with pytest.raises(tidemill.RunError, match="000040"):
            session.await_idle()
        assert session.ask(TOTAL, at=38).frame.equals(looking(tmp_path).ask(TOTAL).frame)


# Order


def test_rows_are_put_in_order_and_cut(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, JOINED) as session:
        session.run()
        text = (
            "SELECT name, v FROM s [RANGE 12] LEFT JOIN r ON id = k"
            " ORDER BY name DESC NULLS FIRST, v * -1, t LIMIT 5 OFFSET 2 AS OF 30"
        )
        found = session.sql(text)
        assert isinstance(found, pl.DataFrame)
        inside = rows(19, 31).with_columns(
            name=pl.col("k").replace_strict({0: "zero", 1: "one"}, default=None)
        )
        wanted = inside.sort(
            "name", "v", "t", descending=[True, True, False], nulls_last=[False, False, False]
        )
        assert found.rows() == wanted.select("name", "v").slice(2, 5).rows()


# What is known, and kept


def test_an_instant_that_is_not_known_is_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        refused(lambda: session.ask(TOTAL, at=39), r"known up to 39, as far as stream \"s\"")
        refused(lambda: session.ask(TOTAL, at=39, wait=0.2), "known up to 39")
        query = session.find("q0")
        refused(lambda: query.snapshot(39, wait=0.2), "known up to 39")
        write(tmp_path / "in", 40, 80)
        assert session.ask(TOTAL, at=60, wait=30).frame.equals(snapshot(tmp_path, TOTAL, 60))
        assert query.snapshot(60, wait=30).equals(snapshot(tmp_path, TOTAL, 60))


def test_what_is_not_kept_any_more_is_an_error_that_says_from_when_on_it_is(
    tmp_path: Path,
) -> None:
    with connected(tmp_path, TOTAL, keep="KEEP 40") as session:
        with in_small_steps(2, 2):
            write_many(tmp_path / "in", 400, 5)
            session.run()
        look = looking(tmp_path)
        with pytest.raises(tidemill.RunError, match="it can be asked from") as found:
            look.ask(TOTAL, at=100)
        first = int(found.value.message.rpartition("asked from ")[2].split()[0])
        assert 300 < first < 399
        refused(lambda: look.ask(TOTAL, at=first - 1), f"asked from {first} on")
        assert look.ask(TOTAL, at=first).frame.equals(snapshot(tmp_path, TOTAL, first))
        refused(lambda: look.ask(LAST, at=380), "they need all rows")


def test_a_stream_that_does_not_keep_its_past_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL, keep="") as session:
        session.start()
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="does not keep its past") as found:
            session.sql("SELECT * FROM s AS OF 5")
        assert "KEEP" in (found.value.hint or "")
        # Its answer is in memory as long as the session goes on.
        frame = session.sql("SELECT * FROM QUERY q0 AS OF 30")
        assert isinstance(frame, pl.DataFrame)
        assert frame.equals(snapshot(tmp_path, TOTAL, 30))
    refused(lambda: looking(tmp_path).sql("SELECT * FROM QUERY q0 AS OF 30"), "keep its past")


# Answers of queries


def test_the_answer_of_a_query_is_the_same_from_memory_and_from_kept_rows(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    text = "SELECT t.k, total, v FROM QUERY q0 t JOIN s [RANGE 3] ON t.k = s.k ORDER BY v AS OF 50"
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        here, there = session.sql(text), looking(tmp_path).sql(text)
    assert isinstance(here, pl.DataFrame)
    assert isinstance(there, pl.DataFrame)
    assert here.equals(there)
    assert here.height == 3


def test_a_query_that_was_changed_answers_as_its_parts_do(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q0 AS {TOTAL.replace('30', '10')} USING EXACT")
        write(tmp_path / "in", 60, 120)
        session.await_idle()
        query = session.find("q0")
        for time in range(40, 110):
            asked = f"SELECT * FROM QUERY q0 AS OF {time}"
            here, there = session.sql(asked), looking(tmp_path).sql(asked)
            assert isinstance(here, pl.DataFrame)
            assert isinstance(there, pl.DataFrame)
            assert here.equals(there), time
            assert here.equals(query.snapshot(time)), time


def test_what_a_query_does_not_say_is_an_error_or_nothing(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        session.sql(f"CREATE QUERY late START FRESH AS {TOTAL}")
        session.sql("STOP QUERY q0")
        write(tmp_path / "in", 60, 120)
        session.await_idle()
        session.sql(f"CREATE QUERY waits START FRESH AS {TOTAL}")
        write(tmp_path / "in", 120, 180)
        session.await_idle()
        session.sql("PAUSE QUERY waits")
        write(tmp_path / "in", 180, 220)
        session.await_idle()
        for one in (session, looking(tmp_path)):
            stopped = one.sql("SELECT * FROM QUERY q0 AS OF 150")
            assert isinstance(stopped, pl.DataFrame)
            assert stopped.is_empty()
            refused(lambda: one.ask("SELECT * FROM QUERY late", at=30), "answers from 60 on")  # noqa: B023
            refused(lambda: one.ask("SELECT * FROM QUERY waits", at=200), "is paused")  # noqa: B023
            assert one.ask("SELECT * FROM QUERY late", at=70).frame["n"].sum() == 11


# Read-only


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """All files, with what would change if one was written."""
    found = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in found}


def test_a_read_only_session_writes_nothing_and_refuses_what_would(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.run()
    with (tmp_path / "state" / "statements.jsonl").open("ab") as log:
        log.write(b'{"number": 99, "crea')  # as it is while a line is written
    (tmp_path / "state" / "lock").unlink()
    before = listing(tmp_path)
    with looking(tmp_path) as look:
        look.ask(TOTAL)
        for text in ("SHOW QUERIES", "DESCRIBE s", "EXPLAIN q0", f"EXPLAIN {TOTAL} AS OF NOW"):
            look.sql(text)
        statements = ("SELECT k FROM s", "DROP QUERY q0", "STOP QUERY q0", "EXPLAIN STOP QUERY q0")
        for text in statements:
            refused(lambda: look.sql(text), "read-only")  # noqa: B023
        for act in (look.run, look.start, look.await_idle, look.progress, look.find("q0").results):
            refused(act, "read-only")
        assert look.find("q0").snapshot(30).equals(snapshot(tmp_path, TOTAL, 30))
    assert listing(tmp_path) == before


def test_a_read_only_session_needs_a_checkpoint(tmp_path: Path) -> None:
    refused(lambda: looking(tmp_path), "there is no checkpoint")
    with pytest.raises(tidemill.PlanError, match="none is given"):
        tidemill.connect(read_only=True)


def test_a_read_only_session_sees_what_is_created_later(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        look = looking(tmp_path)
        session.sql("CREATE QUERY more START WITH HISTORY AS SELECT k, v FROM s [RANGE 5]")
        write(tmp_path / "in", 40, 60)
        session.await_idle()
        assert look.ask("SELECT * FROM QUERY more").frame.height == 5
        session.sql("DROP QUERY more")
        with pytest.raises(tidemill.BindError, match='no query "more"'):
            look.ask("SELECT * FROM QUERY more")


def test_a_batch_that_is_not_done_is_not_seen(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.run()
        write(tmp_path / "in", 40, 60)
    session = connected(tmp_path, TOTAL)
    with crashing(0, len(stepping.STAGES) - 2), pytest.raises(CrashError):
        session.run()  # killed when all is saved but the commit
    listed = (tmp_path / "state" / "kept" / "s" / "kept.jsonl").read_text().splitlines()
    assert len(listed) == 3
    past = past_in(tmp_path / "state", kept_streams(session.catalog).values())
    seen = pl.concat(past.streams["s"].rows(Time(0), END_OF_TIME))
    assert (past.batch, past.watermarks["s"]) == (0, 39)
    assert seen["t"].to_list() == list(range(40))
    session.stop()


def test_another_process_asks_while_rows_come_and_are_forgotten(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 30)
    end = tmp_path / "end"
    command = [sys.executable, str(Path(asker.__file__)), str(tmp_path / "state"), str(end)]
    with in_small_steps(3, 3), connected(tmp_path, TOTAL, keep="KEEP 45") as session:
        session.start()
        session.await_idle()
        said = tmp_path / "said"
        with said.open("w") as out:
            process = subprocess.Popen(command, stdout=out)  # noqa: S603
        began, first = monotonic(), 30
        while monotonic() - began < 6 or answered(said) <= 10:
            assert monotonic() - began < 90
            write(tmp_path / "in", first, first + 30)
            first += 30
            sleep(0.05)
        end.touch()
        assert process.wait(60) == 0
    told = [json.loads(line) for line in said.read_text().splitlines()]
    answers = [one for one in told if "rows" in one]
    errors = [one["error"] for one in told if "rows" not in one]
    assert all("it can be asked from" in error for error in errors), errors[:3]
    for one in answers:
        inside = rows(max(one["at"] - 19, 0), one["at"] + 1)
        total = inside.group_by("k").agg(pl.col("v").sum(), pl.len()).sort("k")
        assert [tuple(row) for row in one["rows"]] == total.rows()


# Spark's boundary, without Spark


def test_the_boundary_on_spark_is_the_last_batch_that_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "batches.jsonl"
    assert last_end(tmp_path).done == 0
    marks = {"watermarks": {"s": 7}, "files": {}, "known": {}}
    log.write_text(
        json.dumps({"begin": 0, "now": 1, "watermarks": {}, "files": {}})
        + "\n"
        + json.dumps({"end": 0, **marks, "latest": {"s": 9}})
        + "\n"
        + json.dumps({"begin": 1, "now": 2, "watermarks": {"s": 7}, "files": {}})
        + '\n{"end": 1, "watermarks": {"s": 99'
    )
    found = last_end(tmp_path)
    assert (found.done, found.watermarks, found.latest) == (1, {"s": 7}, {"s": 9})
    log.write_text('{"what": 1}\n')
    refused(lambda: last_end(tmp_path), "is no line of it")


# Callbacks


def test_a_callback_cannot_ask_the_session_that_calls_it(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    said: list[str] = []
    with connected(tmp_path) as session:

        def taken(_rows: pl.DataFrame, _number: int) -> None:
            try:
                session.ask(TOTAL)
            except tidemill.RunError as error:
                said.append(error.message)

        session.callback("taken", taken)
        session.sql(f"CREATE QUERY called INTO callback('taken') AS {TOTAL}")
        session.start()
        session.await_idle()
    assert Counter(said).keys() == {"a callback cannot ask the session that calls it"}


def test_kept_rows_that_are_damaged_are_told_though_the_answer_is_in_memory(
    tmp_path: Path,
) -> None:
    write(tmp_path / "in", 0, 40)
    with connected(tmp_path, TOTAL) as session:
        session.start()
        session.await_idle()
        for path in (tmp_path / "state" / "kept" / "s").glob("*.parquet"):
            path.write_bytes(b"no parquet")
        refused(lambda: session.ask("SELECT * FROM QUERY q0", at=30), "is damaged")
        refused(lambda: looking(tmp_path).ask(TOTAL, at=30), "is damaged")


def test_all_that_is_asked_is_answered_as_the_reference_does(tmp_path: Path) -> None:
    asked_throughout(Pipeline(partial(tidemill.connect, checkpoint=tmp_path / "state"), tmp_path))
