"""Tables in sessions: what can be read while they run, after a restart and after a kill."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from time import sleep

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from laws.test_local_checkpoint import Life, lives
from running.kept import CrashError, crashing, in_small_steps
from running.shop import TOTAL, Bag, bags, define, expected, write
from running.test_local_kill import started
from tidemill.catalog.entries import QueryEntry
from tidemill.control import tables
from tidemill.history.table_list import GoneError
from tidemill.model.time import END_OF_TIME

PAST = 120


def connect(root: Path, texts: tuple[str, ...], keep: str, **given: int) -> tidemill.Session:
    """A session on a checkpoint in which each text is a table."""
    session = tidemill.connect(checkpoint=root / "state", **given)  # type: ignore[arg-type]
    define(session, root / "in")
    for number, text in enumerate(texts):
        session.sql(f"CREATE TABLE q{number} {keep} AS {text}")
    return session


def bag(rows: pl.DataFrame) -> Bag:
    return Counter(rows.rows())


class Bags:
    """What queries answer at every instant, by runs that nothing disturbs."""

    def __init__(self, source: Path, texts: tuple[str, ...]) -> None:
        self.of = {f"q{i}": bags(expected(source, text), PAST) for i, text in enumerate(texts)}

    def require(self, session: tidemill.Session) -> None:
        """Refuse a table that has other rows at an instant that is known and kept."""
        for name, there in self.of.items():
            table = session.table(name)
            try:
                now = table.bag()
            except tidemill.RunError as error:
                assert "yet" in error.message  # noqa: PT017 — no batch is done
                continue
            for time in range(now.since, min(now.known, PAST)):
                assert bag(table.snapshot(time)) == there[time], f"{name} at {time}"


@settings(max_examples=max(settings().max_examples // 6, 5), deadline=None)
@given(life=lives(), keep=st.sampled_from(["", "KEEP 7", "KEEP ALL"]))
def test_a_table_is_that_of_an_undisturbed_run(life: Life, keep: str) -> None:
    with TemporaryDirectory() as folder, in_small_steps(life.step_rows, life.piece_rows):
        root = Path(folder)
        everything = root / "all"
        for first, past in zip(life.cuts, life.cuts[1:], strict=False):
            write(everything, first, past)
        answers = Bags(everything, life.texts)
        files = list(zip(life.cuts, life.cuts[1:], strict=False))
        (root / "in").mkdir()
        for one in life.sessions:
            for first, past in files[: one.files]:
                write(root / "in", first, past)
            files = files[one.files :]
            session = connect(root, life.texts, keep, partitions=life.partitions)
            try:
                with crashing(*one.crash) if one.crash else crashing(10**6, 0), session:
                    session.start()
                    session.await_idle()
                    answers.require(session)
            except CrashError:
                pass
            with connect(root, life.texts, keep) as reader:
                answers.require(reader)
        for first, past in files:
            write(root / "in", first, past)
        with connect(root, life.texts, keep) as last:
            last.run(end=True)
            answers.require(last)
        with connect(root, life.texts, keep) as reader:
            answers.require(reader)
            assert all(reader.table(name).bag().known == END_OF_TIME for name in answers.of)


def test_what_is_not_kept_or_not_known_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connect(tmp_path, (TOTAL,), "KEEP 10") as session:
        session.start()
        session.await_idle()
        table = session.table("q0")
        assert (table.bag().known, table.bag().since, table.key) == (39, 28, ("k",))
        with pytest.raises(tidemill.RunError, match='"q0" is known up to 39, and at 39'):
            table.snapshot(39)
        with pytest.raises(tidemill.RunError, match='"q0" is kept from 28 on, and not at 27'):
            table.snapshot(27)
        with pytest.raises(tidemill.RunError, match='no column "kk"'):
            table.lookup({"kk": 1})
        with pytest.raises(tidemill.RunError, match='"k" of table "q0" is BIGINT'):
            table.lookup({"k": "one"})
        with pytest.raises(tidemill.RunError, match='"k" of table "q0" is BIGINT'):
            table.lookup({"k": 1.5})
        assert bag(table.lookup({"K": 1}, 30)) == bag(table.snapshot(30).filter(pl.col("k") == 1))
        assert session.find("q0").lookup({"k": None}).is_empty()
        with pytest.raises(tidemill.BindError, match='"s" is not a table'):
            session.table("s")


def test_a_table_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    write(tmp_path / "all", 0, PAST)
    answers = Bags(tmp_path / "all", (TOTAL,))
    failed: list[BaseException] = []
    seen: set[int] = set()

    def read(over: list[bool], session: tidemill.Session) -> None:
        entry = session.catalog.find("q0")
        assert isinstance(entry, QueryEntry)
        try:
            while not over:
                view = tables.stored_table(tmp_path / "state", entry)
                for bag_ in (session.table("q0").bag(), None if view is None else view.at()):
                    if bag_ is None:
                        continue
                    seen.add(bag_.at)
                    assert bag(bag_.rows) == answers.of["q0"][bag_.at], f"at {bag_.at}"
        except GoneError:
            read(over, session)
        except BaseException as error:  # noqa: BLE001 — it is raised below
            failed.append(error)

    with in_small_steps(1, 1), connect(tmp_path, (TOTAL,), "KEEP 3") as session:
        session.start()
        session.await_idle()
        over: list[bool] = []
        reader = Thread(target=read, args=(over, session))
        reader.start()
        for first in range(10, PAST, 10):
            write(tmp_path / "in", first, first + 10)
            session.await_idle()
        over.append(True)
        reader.join()
    assert not failed, failed[0]
    assert len(seen) > 3, "it was read at several instants"


def test_others_read_a_table_as_they_read_its_query(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    reads = "SELECT k, MAX(total) AS most FROM q0 [RANGE 5] GROUP BY k"
    with connect(tmp_path, (TOTAL,), "KEEP 5") as session:
        found = session.query(f"CREATE QUERY most AS {reads}")
        session.run(end=True)
        with tidemill.connect() as plain:
            define(plain, tmp_path / "in")
            plain.sql(f"CREATE STREAM q0 AS {TOTAL}")
            same = plain.query(reads)
            plain.run()
            assert found.changes().equals(same.changes())
        with pytest.raises(tidemill.BindError, match='table "q0" is used by query "most"'):
            session.sql("DROP TABLE q0")
        for refused in ("STOP QUERY q0", "PAUSE QUERY q0", f"ALTER QUERY q0 AS {TOTAL}"):
            with pytest.raises(tidemill.RunError, match='"q0" is read by query "most"'):
                session.sql(refused)


def test_a_changed_table_is_read_by_nobody_and_has_its_rows_after_a_restart(
    tmp_path: Path,
) -> None:
    other = TOTAL.replace("RANGE 30", "RANGE 5")
    write(tmp_path / "in", 0, 20)
    with connect(tmp_path, (TOTAL,), "KEEP ALL") as session:
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q0 AS {other} USING IMMEDIATE")
        with pytest.raises(tidemill.BindError, match='table "q0" was changed or stopped'):
            session.query("SELECT k FROM q0")
        write(tmp_path / "in", 20, 80)
        session.await_idle()
        first, _, second = session.versions("q0").rows(named=True)
    old, new = (bags(expected(tmp_path / "in", text), PAST) for text in (TOTAL, other))
    with tidemill.connect(checkpoint=tmp_path / "state") as reader:
        table = reader.table("q0")
        for time in range(table.bag().since, table.bag().known):
            there = old[time] if time <= first["until"] else Counter()
            wanted = new[time] if time >= second["since"] else there
            assert bag(table.snapshot(time)) == wanted
        assert second["since"] < table.bag().known - 1
        reader.start()
        reader.sql("STOP QUERY q0")
        reader.await_idle()
        write(tmp_path / "in", 80, 100)
        reader.await_idle()
        known = table.bag().known
    with tidemill.connect(checkpoint=tmp_path / "state") as reader:
        assert reader.table("q0").bag().known == known
        assert bag(reader.table("q0").snapshot(30)) == old[30]
        reader.sql("DROP TABLE q0")
        assert not list((tmp_path / "state" / "tables").iterdir())
        reader.sql(f"CREATE TABLE q0 AS {TOTAL}")
        with pytest.raises(tidemill.RunError, match='"q0" has not been run yet'):
            reader.table("q0").snapshot()


def test_a_paused_table_is_known_up_to_the_pause(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with connect(tmp_path, (TOTAL,), "KEEP 5") as session:
        session.start()
        session.await_idle()
        session.sql("PAUSE QUERY q0")
        write(tmp_path / "in", 20, 60)
        session.await_idle()
        there = bags(expected(tmp_path / "in", TOTAL), PAST)
        table = session.table("q0")
        assert (table.bag().known, table.bag().since) == (51, 45), "it is paused at 51"
        assert bag(table.snapshot(45)) == there[45]
        session.sql("RESUME QUERY q0")
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        now = session.table("q0").bag()
        assert now.known > 60
        there = bags(expected(tmp_path / "in", TOTAL), PAST)
        for time in range(now.since, now.known):
            assert bag(table.snapshot(time)) == there[time]


def test_a_table_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    source, random = tmp_path / "in", Random(1)  # noqa: S311 — the same moments every time
    for first in range(0, PAST, 10):
        write(source, first, first + 10)
    there = bags(expected(source, TOTAL), PAST)
    for number, stage in enumerate(("note", "deliver", "save", "commit", "")):
        words = (stage, str(number)) if stage else ()
        process = started(tmp_path, *words, program="running.killed_table")
        if not stage:
            sleep(random.uniform(0, 0.2))
            process.kill()
        assert process.wait(60) == -signal.SIGKILL
        with tidemill.connect(checkpoint=tmp_path / "state") as reader:
            table = reader.table("t")
            try:
                now = table.bag()
            except tidemill.RunError as error:
                assert "yet" in error.message  # noqa: PT017 — nothing had been done
                continue
            for time in range(now.since, min(now.known, PAST)):
                assert bag(table.snapshot(time)) == there[time], f"{stage} at {time}"
    assert started(tmp_path, "end", program="running.killed_table").wait(60) == 0
    with tidemill.connect(checkpoint=tmp_path / "state") as reader:
        assert reader.table("t").bag().known == END_OF_TIME
        for time in range(PAST):
            assert bag(reader.table("t").snapshot(time)) == there[time]


def test_a_table_that_is_created_late_with_history_has_full_windows(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        source = f"SOURCE parquet('{tmp_path / 'in'}') ORDERED BY t KEEP ALL"
        session.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) {source}")
        session.sql("CREATE TABLE first KEEP ALL AS SELECT k, v FROM s [RANGE 3]")
        session.start()
        session.await_idle()
        session.sql(f"CREATE TABLE q0 KEEP ALL START WITH HISTORY AS {TOTAL}")
        session.sql(f"CREATE TABLE fresh KEEP ALL START FRESH AS {TOTAL}")
        late = session.query("CREATE QUERY late START WITH HISTORY AS SELECT k, n FROM q0")
        write(tmp_path / "in", 40, 60)
        session.await_idle()
        there = bags(expected(tmp_path / "in", TOTAL), PAST)
        assert session.table("q0").bag().known == 59
        for time in range(39, 59):
            found = bag(session.table("q0").snapshot(time))
            assert found == there[time]
            assert bag(late.snapshot(time)) == Counter((k, n) for k, _, n in found.elements())
            assert bag(session.table("q0").snapshot(time - 39)) == Counter()
        assert session.table("fresh").snapshot(45)["n"].to_list() == [2, 2, 2], "from 40 on"


def test_keep_can_be_changed_from_session_to_session(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with in_small_steps(5, 5):
        with connect(tmp_path, (TOTAL,), "KEEP 10") as session:
            session.run()
            assert session.table("q0").bag().since == 48
        with connect(tmp_path, (TOTAL,), "KEEP 40") as session:
            # What has gone before, and is not removed yet, can be had again.
            assert session.table("q0").bag().since == 18
            Bags(tmp_path / "in", (TOTAL,)).require(session)
            write(tmp_path / "in", 60, 100)
            session.run()
            assert session.table("q0").bag().since == 58
            Bags(tmp_path / "in", (TOTAL,)).require(session)
        with connect(tmp_path, (TOTAL,), "") as session:
            session.run()
            assert session.table("q0").bag().since == 98


def test_a_damaged_table_is_an_error_and_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with connect(tmp_path, (TOTAL,), "KEEP ALL") as session:
        session.run()
    place = tmp_path / "state" / "tables" / "q0"
    (piece,) = place.glob("*.parquet")
    content = piece.read_bytes()
    with connect(tmp_path, (TOTAL,), "KEEP ALL") as session:
        piece.write_bytes(content[: len(content) // 2])
        with pytest.raises(tidemill.RunError, match='damaged: table "q0"'):
            session.table("q0").snapshot()
        piece.unlink()
        with pytest.raises(tidemill.RunError, match='damaged: table "q0"'):
            session.table("q0").snapshot()
        with pytest.raises(tidemill.RunError, match='damaged: table "q0": its rows'):
            session.run()
        piece.write_bytes(content)
        session.run()
        written = (place / "table.jsonl").read_bytes()
        (place / "table.jsonl").unlink()
        with pytest.raises(tidemill.RunError, match='damaged: table "q0": its files are missing'):
            session.run()
        (place / "table.jsonl").write_bytes(written)
        session.run()
        Bags(tmp_path / "in", (TOTAL,)).require(session)
