"""What rows are made of, kept with queries of the local engine: sessions, kills and refusals."""

from __future__ import annotations

import signal
from random import Random
from time import sleep
from typing import TYPE_CHECKING

import pytest

import tidemill
from running.kept import in_small_steps
from running.recorded_body import MORE, Judge, they_are_kept
from running.shop import LAST, NAMED, PAIRS, TOTAL, define, write
from running.test_local_kill import started
from tidemill.catalog.records import is_recording

if TYPE_CHECKING:
    from pathlib import Path

PAST = 120
CUT = "SELECT COUNT(*) AS n FROM (SELECT k, SUM(v) AS v FROM s [RANGE 5] GROUP BY k) [RANGE 3]"


def test_it_is_what_streams_would_have_kept(tmp_path: Path) -> None:
    with in_small_steps(7, 5):
        they_are_kept(
            tmp_path, lambda: tidemill.connect(checkpoint=tmp_path / "state", partitions=2), MORE
        )


def test_after_kills_nothing_is_lost_or_there_twice(tmp_path: Path) -> None:
    source, random = tmp_path / "in", Random(2)  # noqa: S311 — the same moments every time
    for first in range(0, PAST, 10):
        write(source, first, first + 10)
    judge = Judge(tmp_path, {"total": TOTAL})
    for number, stage in enumerate(("note", "deliver", "save", "commit", "")):
        words = (stage, str(number)) if stage else ()
        process = started(tmp_path, *words, program="running.killed_recorded")
        if not stage:
            sleep(random.uniform(0, 0.2))
            process.kill()
        assert process.wait(60) == -signal.SIGKILL
        with tidemill.connect(checkpoint=tmp_path / "state") as reader:
            try:
                known = reader.why("WHY total").known
            except tidemill.RunError as error:
                assert "yet" in error.message  # noqa: PT017 — nothing had been done
                continue
            judge.require(reader, {0, min(known, PAST) // 2, min(known, PAST) - 1}, ("total",))
    assert started(tmp_path, "end", program="running.killed_recorded").wait(60) == 0
    with tidemill.connect(checkpoint=tmp_path / "state") as reader:
        judge.require(reader, (0, 31, 77, PAST - 1), ("total",))


def test_a_query_without_it_runs_as_before(tmp_path: Path) -> None:
    """The same plans, under the same fingerprints, and the same figures."""
    write(tmp_path / "in", 0, 60)
    texts = {"total": TOTAL, "pair": PAIRS, "named": NAMED, "last": LAST}

    def run(recorded: str) -> tuple[dict[str, str], set[tuple[object, ...]]]:
        with tidemill.connect(partitions=2) as session:
            define(session, tmp_path / "in")
            for name, text in texts.items():
                clause = "WITH PROVENANCE KEEP ALL " if name == recorded else ""
                session.sql(f"CREATE QUERY {name} {clause}AS {text}")
            session.run()
            plans = {name: str(session.sql(f"EXPLAIN PHYSICAL {name}")) for name in texts}
            told = session.metrics().select("fingerprint", "operator", "rows_in", "rows_out")
            return plans, set(told.rows())

    plans, figures = run("")
    assert not any("Identify" in one for one in plans.values())
    other, more = run("pair")
    assert other == plans
    assert figures <= more, "what runs for others does what it did, and is shared"
    assert not any("Identify" in str(row) for row in figures)


def test_what_is_kept_has_no_name_that_people_see(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 30)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total WITH PROVENANCE AS {TOTAL}")
        session.start()
        session.await_idle()
        seen = [session.sql("SHOW QUERIES"), session.sql("SHOW TABLES"), session.metrics()]
        assert not any("@@" in str(one.rows()) for one in seen)  # type: ignore[union-attr]
        assert not any(is_recording(one.name) for one in session.progress().queries)
        assert session.why("WHY total").at == 28, "the last instant, as nothing else is kept"
        with pytest.raises(tidemill.RunError, match="is not kept; it is kept from 28 on"):
            session.why("WHY total AT 20")
        with pytest.raises(tidemill.RunError, match="does not keep its past"):
            session.why("WHY NOT total WHERE total > 1000")


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 30)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        with pytest.raises(tidemill.TidemillError, match="a window stands over rows that an"):
            session.sql(f"CREATE QUERY cut WITH PROVENANCE AS {CUT}")
        session.sql(f"CREATE QUERY cut AS {CUT}; CREATE QUERY last AS {LAST}")
        session.sql(f"CREATE QUERY kept WITH PROVENANCE KEEP ALL AS {LAST}")
        session.start()
        session.await_idle()
        with pytest.raises(tidemill.TidemillError, match="a window stands over rows that an"):
            session.sql("ALTER QUERY cut WITH PROVENANCE")
        with pytest.raises(tidemill.RunError, match='"last" are made of cannot be kept from now'):
            session.sql("ALTER QUERY last WITH PROVENANCE")
        with pytest.raises(tidemill.TidemillError, match="a window stands over rows that an"):
            session.sql(f"ALTER QUERY kept AS {CUT} USING IMMEDIATE")
        found = session.why("WHY ALL kept AT 20")
        assert found.rows("s")["t"].to_list() == [16, 17, 18, 19, 20]


def test_what_was_not_kept_from_the_beginning_is_altered(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    into = f"INTO parquet('{tmp_path / 'out'}')"
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY pair {into} AS {PAIRS}")
        session.sql(f"CREATE QUERY other INTO callback('f') WITH PROVENANCE AS {PAIRS}")
        session.callback("f", lambda _rows, _batch: None)
        session.run()
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        with pytest.raises(tidemill.BindError, match='"pair" is another one in this checkpoint'):
            session.sql(f"CREATE QUERY pair {into} WITH PROVENANCE KEEP 9 AS {PAIRS}")
        session.sql(f"CREATE QUERY other INTO callback('f') WITH PROVENANCE KEEP 9 AS {PAIRS}")
        session.callback("f", lambda _rows, _batch: None)
        session.start()
        session.sql("ALTER QUERY pair WITH PROVENANCE KEEP 9")
        write(tmp_path / "in", 60, 90)
        session.await_idle()
        Judge(tmp_path, {"pair": PAIRS, "other": PAIRS}).require(session, (80, 88))
        with pytest.raises(tidemill.RunError, match="is not kept; it is kept from 79 on"):
            session.why("WHY pair AT 78")


def test_a_query_that_is_paused_keeps_it_as_well(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total WITH PROVENANCE KEEP ALL AS {TOTAL}")
        session.start()
        session.await_idle()
        session.sql("PAUSE QUERY total")
        write(tmp_path / "in", 20, 40)
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="is paused"):
            session.why("WHY total AT 30")
        session.sql("RESUME QUERY total; ALTER QUERY total REPLAN")
        write(tmp_path / "in", 40, 120)
        session.await_idle()
        Judge(tmp_path, {"total": TOTAL}).require(session, (5, 30, 39, 60, 100, 118), ("total",))


def test_now_is_not_the_last_instant_of_what_was_kept_once(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total WITH PROVENANCE KEEP ALL AS {TOTAL}")
        session.start()
        session.await_idle()
        session.sql("ALTER QUERY total WITHOUT PROVENANCE")
        write(tmp_path / "in", 20, 40)
        session.await_idle()
        assert session.why("WHY total AT 10").answers.height
        with pytest.raises(tidemill.RunError, match="is not kept any more, but up to"):
            session.why("WHY total AT NOW")


def test_of_a_query_that_has_stopped_it_is_said_so(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total WITH PROVENANCE KEEP ALL AS {TOTAL}")
        session.start()
        session.await_idle()
        session.sql("STOP QUERY total")
        write(tmp_path / "in", 20, 40)
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="answers nothing at 30: it was stopped"):
            session.why("WHY total AT 30")
