"""What a checkpoint of the local engine takes up, what it refuses, and what is damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.kept import CrashError, connected, crashing
from running.living_body import NEW, OLD, exercised
from running.shop import LAST, NAMED, TOTAL, define, expected, rows, write
from tidemill.runtime.local import pack_files
from tidemill.runtime.lock import take_lock
from tidemill.runtime.opening import open_directory
from tidemill.runtime.record import Facts
from tidemill.runtime.statement_log import STATEMENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = 1_000_000


def reopened(root: Path, text: str = TOTAL, **settings: object) -> tidemill.Session:
    """A session with one query, whose answer is in memory."""
    session = tidemill.connect(checkpoint=root / "state", **settings)  # type: ignore[arg-type]
    define(session, root / "in")
    session.sql(f"CREATE QUERY q AS {text}")
    return session


def changes(session: tidemill.Session) -> pl.DataFrame:
    return session.answer("q").changes()


def refused(act: Callable[[], object], match: str) -> None:
    with pytest.raises(tidemill.RunError, match=match):
        act()


# Going on


@pytest.mark.parametrize("partitions", [1, 3])
def test_answers_in_memory_are_those_of_the_session(tmp_path: Path, partitions: int) -> None:
    found: list[pl.DataFrame] = []
    for first in (0, 20, 40):
        write(tmp_path / "in", first, first + 20)
        with reopened(tmp_path, partitions=partitions) as session:
            session.start()
            session.await_idle()
            found.append(changes(session))
            assert session.answer("q").is_whole is (first == 0)
            assert session.answer("q").known == first + 19
            assert session.progress().batches == 1
    wanted = expected(tmp_path / "in", TOTAL).filter(pl.col("time") < 59)
    assert sorted(pl.concat(found).rows()) == sorted(wanted.rows())


def test_a_session_that_runs_again_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with connected(tmp_path, [TOTAL]) as session:
        session.run()
        write(tmp_path / "in", 20, 40)
        session.start()
        session.await_idle()
        session.stop()
        session.run(end=True)
        assert session.answer("q0").changes().equals(expected(tmp_path / "in", TOTAL))


def test_a_query_that_comes_later_begins_then_and_one_that_goes_is_forgotten(
    tmp_path: Path,
) -> None:
    write(tmp_path / "in", 0, 20)
    with connected(tmp_path, [TOTAL]) as session:
        session.start()
        session.await_idle()
        session.sql(f"CREATE QUERY late INTO parquet('{tmp_path / 'late'}') AS SELECT t FROM s")
        session.sql("DROP QUERY q0")
        write(tmp_path / "in", 20, 30)
        session.await_idle()
    with tidemill.connect(checkpoint=tmp_path / "state") as again:
        define(again, tmp_path / "in")
        late = again.query(
            f"CREATE QUERY late INTO parquet('{tmp_path / 'late'}') AS SELECT t FROM s"
        )
        write(tmp_path / "in", 30, 40)
        again.run(end=True)
        assert late.results()["t"].to_list() == list(range(20, 40))


def test_files_that_were_there_when_a_stream_was_opened_stay_skipped(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    write(tmp_path / "other", 0, 5)
    with reopened(tmp_path) as session:
        session.start()
        session.await_idle()
        define(session, tmp_path / "other", "o")
        session.sql("CREATE QUERY late AS SELECT t FROM o")
    write(tmp_path / "other", 5, 8)
    with reopened(tmp_path) as again:
        define(again, tmp_path / "other", "o")
        again.sql("CREATE QUERY late AS SELECT t FROM o")
        again.start()
        again.await_idle()
        assert again.answer("late").results()["t"].to_list() == [5, 6, 7]
        assert any("a file that came before" in w for w in again.progress().streams[0].warnings)


def test_a_frame_in_memory_is_read_once(tmp_path: Path) -> None:
    def session(frame: pl.DataFrame | None) -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state")
        if frame is not None:
            made.put("s", frame)
        made.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory() ORDERED BY t")
        made.sql("CREATE QUERY q AS SELECT t FROM s")
        return made

    for number, frame in enumerate([rows(0, 5), rows(0, 5), None]):
        with session(frame) as one:
            one.run()
            found = one.answer("q").results()["t"].to_list()
            assert found == ([] if number else list(range(5)))
    refused(session(rows(0, 6)).run, 'frame "s" is not the one that this checkpoint has read')


def test_a_relation_is_as_it_was_when_it_was_read(tmp_path: Path) -> None:
    def session(names: str) -> tidemill.Session:
        (tmp_path / "r.csv").write_text(names)
        made = tidemill.connect(checkpoint=tmp_path / "state")
        made.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) "
            f"SOURCE parquet('{tmp_path / 'in'}') ORDERED BY t;"
            "CREATE RELATION r (id BIGINT, name VARCHAR) "
            f"SOURCE csv('{tmp_path / 'r.csv'}', settle => 0);"
            f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS {NAMED}"
        )
        return made

    write(tmp_path / "in", 0, 10)
    with session("id,name\n0,zero\n1,one\n") as first:
        first.run()
    refused(session("id,name\n0,nought\n").run, 'relation "r" has other rows')
    last = session("id,name\n1,one\n0,zero\n")
    (tmp_path / "r.csv").unlink()
    write(tmp_path / "in", 10, 20)
    with last:
        last.run(end=True)
        assert last.answer("q").changes().equals(expected(tmp_path / "in", NAMED))


def test_what_was_refused_is_counted_over_sessions(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state")
        made.sql(
            "CREATE STREAM s (k BIGINT, t BIGINT) "
            f"SOURCE csv('{tmp_path / 'in'}', settle => 0) ORDERED BY t "
            "LATE QUARANTINE MALFORMED QUARANTINE; CREATE QUERY q AS SELECT k FROM s"
        )
        return made

    texts = ["k,t\n1,5\nx,6\n", "k,t\n2,4\n3,9\n", "k,t\ny,1\n"]
    stages = [("save", 4), ("deliver", 3), None]
    for number, (text, crash) in enumerate(zip(texts, stages, strict=True)):
        (tmp_path / "in" / f"{number}.csv").write_text(text)
        with session() as one:
            if crash is not None:
                with crashing(0, crash[1]), pytest.raises(CrashError):
                    one.run()
            else:
                one.run()
    with session() as last:
        last.run()
        assert last.refused().rows() == [("s", "late", 1), ("s", "malformed", 2)]
        kept = last.quarantine("s")
        assert kept.select("k", "reason").rows() == [
            (None, "malformed"),
            (2, "late"),
            (None, "malformed"),
        ]


def test_a_file_that_was_fixed_is_read_as_it_is_then(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate(["1,1\n", "2,2\nx,3\n", "4,4\n"]):
        (tmp_path / "in" / f"{number}.csv").write_text(f"k,t\n{text}")

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state")
        made.sql(
            "CREATE STREAM s (k BIGINT, t BIGINT) "
            f"SOURCE csv('{tmp_path / 'in'}', settle => 0) ORDERED BY t;"
            f"CREATE QUERY q INTO csv('{tmp_path / 'out'}') AS SELECT k FROM s"
        )
        return made

    for _ in range(2):
        with session() as broken:
            refused(broken.run, "line 3 of file")
    (tmp_path / "in" / "1.csv").write_text("k,t\n2,2\n3,3\n")
    with session() as fixed:
        fixed.run()
    parts = sorted((tmp_path / "out").glob("batch=*/*.csv"))
    assert pl.concat(pl.read_csv(part) for part in parts)["k"].to_list() == [1, 2, 3, 4]


# Time


def test_time_of_arrival_goes_on_after_a_restart(tmp_path: Path) -> None:
    clock = [100 * SECOND]

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state", clock=lambda: clock[0])
        made.sql(
            f"CREATE STREAM s (k BIGINT) SOURCE csv('{tmp_path / 'in'}', settle => 0);"
            f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS "
            "SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS]"
        )
        return made

    (tmp_path / "in").mkdir()
    for number, now in enumerate([100, 50, 105]):  # the clock of the host is set back
        (tmp_path / "in" / f"{number}.csv").write_text("k\n1\n")
        clock[0] = now * SECOND
        with session() as one:
            one.run()
    clock[0] = 200 * SECOND
    with session() as last:
        last.run(end=True)
        found = last.answer("q").results().rows()
    first = 100 * SECOND
    (n1, s1, e1), (n2, s2, e2), (n3, s3, e3) = found[:3]
    assert (n1, s1) == (1, first)
    assert (n2, s2) == (2, e1)
    assert first < e1 < first + 100, "it is later, whatever the clock says"
    assert (n3, s3, e2) == (3, 105 * SECOND, 105 * SECOND)
    assert e3 == first + 10 * SECOND


def test_a_stream_is_silent_while_nothing_runs(tmp_path: Path) -> None:
    clock = [1000 * SECOND]

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state", clock=lambda: clock[0])
        for name, clause in {"a": "", "b": "IDLE AFTER 20 SECONDS"}.items():
            made.sql(
                f"CREATE STREAM {name} (k BIGINT, at BIGINT) "
                f"SOURCE csv('{tmp_path / name}', settle => 0) ORDERED BY at {clause}"
            )
        made.sql("CREATE QUERY q AS SELECT k FROM a INTERSECT SELECT k FROM b")
        return made

    for name, text in {"a": "1,10\n1,30\n", "b": "1,10\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.csv").write_text(f"k,at\n{text}")
    found: list[list[tuple[object, ...]]] = []
    for seconds in (0, 15, 10):
        clock[0] += seconds * SECOND
        with session() as one:
            one.run()
            found.append(one.answer("q").results().rows())
    assert found == [[], [], [(1, 10, 11)]], "it has been silent for 25 seconds"


# Queries that live


def test_statements_on_a_running_session(tmp_path: Path) -> None:
    exercised(tidemill.connect(checkpoint=tmp_path / "state", partitions=2), tmp_path / "in")


def test_a_changed_query_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The script that created it, and one that creates it as it is now, take it up again."""
    source = tmp_path / "in"
    write(source, 0, 50)
    with reopened(tmp_path, OLD, partitions=2) as session:
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q AS {NEW}")
        write(source, 50, 55)
        session.await_idle()
    given: list[pl.DataFrame] = []
    for number, text in enumerate([OLD, NEW]):
        with reopened(tmp_path, text) as session:
            session.start()
            first = 55 + 45 * number
            write(source, first, first + 45)
            session.await_idle()
            parts = session.versions("q").select("version", "fresh", "since").rows()
            assert parts == [(1, 0, 0), (2, 50, 59)]
            given.append(changes(session))
    with pytest.raises(tidemill.BindError, match="is another one in this checkpoint"):
        reopened(tmp_path, "SELECT k, v AS total FROM s")
    wanted = expected(source, NEW)
    for frame, since, until in ((given[0], 60, 99), (given[1], 101, 144)):
        due = (pl.col("time") >= since) & (pl.col("time") < until)
        order = ["time", "sign", "k", "total"]
        assert frame.filter(due).sort(order).equals(wanted.filter(due).sort(order))


# What is refused


def test_one_session_at_a_time_has_it(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with reopened(tmp_path) as one, reopened(tmp_path) as other:
        one.start()
        refused(other.start, "is in use by process")
        refused(other.run, "is in use by process")
        one.stop()
        other.start()
        other.stop()
    take_lock(tmp_path / "state").release()


def test_a_checkpoint_is_for_one_engine(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with reopened(tmp_path) as session:
        session.run()
    place = str(tmp_path / "state")
    on_spark = Facts((1, 2), 1, {})
    refused(lambda: open_directory(place, on_spark), 'is one of the engine "local"')
    directory, facts, lock = open_directory(str(tmp_path / "spark"), on_spark)
    (directory / "tidemill.json").write_text(
        (tmp_path / "state" / "tidemill.json")
        .read_text()
        .replace('"local"', '"spark"')
        .replace(place, str(directory))
    )
    lock.release()
    assert facts.engine == "spark"
    session = tidemill.connect(checkpoint=directory)
    refused(session.run, 'is one of the engine "spark", and this session has the engine "local"')
    refused(lambda: session.sql("DROP QUERY q"), 'is one of the engine "spark"')


def test_what_does_not_fit_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with connected(tmp_path, [TOTAL], partitions=2) as session:
        session.run()
    before = _files(tmp_path)

    def attempt(text: str, match: str, **settings: object) -> None:
        # As one that was made before there was a log of statements.
        (tmp_path / "state" / STATEMENTS_FILE).unlink()
        made = tidemill.connect(checkpoint=tmp_path / "state", **settings)  # type: ignore[arg-type]
        define(made, tmp_path / "in")
        made.sql(text)
        refused(made.run, match)
        refused(made.start, match)

    q0 = f"CREATE QUERY q0 INTO parquet('{tmp_path / 'out0'}') AS {TOTAL}"
    attempt(q0, "has 2 partitions, not 3", partitions=3)
    attempt(q0.replace(TOTAL, LAST), "is not the one that this checkpoint runs")
    attempt(q0.replace("out0", "out1"), "it writes to parquet")
    attempt(f"CREATE QUERY q1 AS {TOTAL}", 'runs query "q0", which this session does not create')
    attempt(f"{q0};CREATE QUERY q1 INTO csv('{tmp_path / 'in'}') AS {LAST}", "files of others")
    inside = tmp_path / "state" / "out"
    attempt(f"{q0};CREATE QUERY q1 INTO csv('{inside}') AS {LAST}", "is inside the checkpoint")
    attempt(f"{q0};CREATE QUERY q1 INTO callback('nobody') AS {LAST}", "no callback")
    assert _files(tmp_path) == before


def _files(root: Path) -> dict[Path, bytes]:
    """All files but the lock and the log of statements."""
    others = ("lock", STATEMENTS_FILE)
    paths = (path for path in root.rglob("*") if path.is_file() and path.name not in others)
    return {path: path.read_bytes() for path in paths}


def test_a_query_of_an_idle_checkpoint_can_be_dropped(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with connected(tmp_path, [TOTAL, LAST]) as session:
        session.run()
    with tidemill.connect(checkpoint=tmp_path / "state") as again:
        again.sql("DROP QUERY q1")
        again.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        again.run()
        shown = again.sql("SHOW QUERIES")
        assert isinstance(shown, pl.DataFrame)
        assert shown["name"].to_list() == ["q0"]
    assert list((tmp_path / "out1").glob("batch=*")), "its files stay"


def test_a_sink_that_is_ahead_of_the_checkpoint_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    with connected(tmp_path, [TOTAL]) as session:
        session.run()
    (tmp_path / "out0" / "batch=00000007").mkdir()
    with connected(tmp_path, [TOTAL]) as again:
        refused(again.run, "has batch 7, and the checkpoint has finished none after 0")


def test_a_function_cannot_stop_the_session_that_calls_it(tmp_path: Path) -> None:
    told: list[str] = []
    write(tmp_path / "in", 0, 10)
    session = tidemill.connect(checkpoint=tmp_path / "state")
    define(session, tmp_path / "in")

    def stop(*_: object) -> None:
        try:
            session.stop()
        except tidemill.RunError as error:
            told.append(str(error))
        try:
            take_lock(tmp_path / "state").release()
        except tidemill.RunError as error:
            told.append(str(error))

    session.callback("stop", stop)
    session.sql("CREATE QUERY q INTO callback('stop') AS SELECT t FROM s")
    with session:
        session.start()
        session.await_idle()
    assert "a callback cannot stop" in told[0]
    assert "is in use" in told[1]
    take_lock(tmp_path / "state").release()


def test_a_function_that_fails_gets_the_batch_again(tmp_path: Path) -> None:
    given: list[tuple[int, list[int]]] = []
    write(tmp_path / "in", 0, 5)

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state")
        define(made, tmp_path / "in")

        def take(rows: pl.DataFrame, number: int) -> None:
            given.append((number, rows["t"].to_list()))
            if len(given) < 3:
                raise OSError("the other end is gone")

        made.callback("take", take)
        made.sql("CREATE QUERY q INTO callback('take') AS SELECT t FROM s")
        return made

    for first in (5, 10):
        with session() as failing:
            refused(failing.run, "the other end is gone")
        write(tmp_path / "in", first, first + 5)
    with session() as last:
        last.start()
        last.await_idle()
    assert given[:3] == [(0, [0, 1, 2, 3, 4])] * 3
    assert [t for _, rows in given[3:] for t in rows] == list(range(5, 15))


def test_a_disk_that_fails_stops_it_and_nothing_is_lost(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with connected(tmp_path, [TOTAL]) as session, pytest.MonkeyPatch.context() as patch:
        session.start()
        session.await_idle()
        patch.setattr(pack_files, "write_durably", full)
        write(tmp_path / "in", 20, 40)
        refused(session.await_idle, "cannot be read or written: .*No space left")
        assert "No space left" in (session.progress().failure or "")
        refused(lambda: session.sql("CREATE QUERY more AS SELECT k FROM s"), "No space left")
    with connected(tmp_path, [TOTAL]) as again:
        again.run(end=True)
        assert again.answer("q0").changes().equals(expected(tmp_path / "in", TOTAL))


# Damage


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [cut, flip, lambda path: path.unlink()])
@pytest.mark.parametrize("part", ["commit.json", "packs/*.pack", "input.jsonl", "plans/*.json"])
def test_damage_is_an_error_that_names_the_file(
    tmp_path: Path, part: str, harm: Callable[[Path], None]
) -> None:
    for first in (0, 10):
        write(tmp_path / "in", first, first + 10)
        with connected(tmp_path, [TOTAL, LAST]) as session:
            session.run()
    files = list((tmp_path / "state").glob(part))
    assert files
    for path in files:
        if part == "input.jsonl" and harm is not cut:
            path.write_text(path.read_text().split("\n", 1)[1] if harm is flip else "")
        elif part == "input.jsonl":
            path.write_text(path.read_text().replace("[", "", 1))
        else:
            harm(path)
    write(tmp_path / "in", 20, 30)
    with (
        connected(tmp_path, [TOTAL, LAST]) as again,
        pytest.raises(tidemill.RunError) as caught,
    ):
        again.run()
    assert any(path.stem in str(caught.value) for path in files), str(caught.value)
    assert not list((tmp_path / "out0").glob("batch=00000002")), "nothing was delivered"
