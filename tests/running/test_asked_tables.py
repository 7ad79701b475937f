"""Tables in what is asked once: of streams that keep nothing, here, elsewhere and after changes."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import tidemill
from running.kept import in_small_steps
from running.shop import PAIRS, TOTAL, bags, expected, rows, write
from tidemill.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from running.shop import Bag

PAST = 120
JOINED = "SELECT k, total, v FROM q0 JOIN (SELECT k AS one, v FROM s [RANGE 3]) x ON k = one"


def connect(
    root: Path, *texts: str, keep: str = "KEEP 10", stream: str = "", checkpoint: bool = True
) -> tidemill.Session:
    """A session in which each text is a table, over a stream that keeps what is said."""
    session = tidemill.connect(checkpoint=root / "state") if checkpoint else tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{root / 'in'}')"
        f" ORDERED BY t {stream}"
    )
    for number, text in enumerate(texts):
        session.sql(f"CREATE TABLE q{number} {keep} AS {text}")
    return session


def looking(root: Path) -> tidemill.Session:
    return tidemill.connect(checkpoint=root / "state", read_only=True)


def answers(root: Path, text: str) -> list[Bag]:
    """What a query that runs undisturbed answers at every instant."""
    return bags(expected(root / "in", text), PAST)


def asked(session: tidemill.Session, text: str, at: int) -> Bag:
    return Counter(session.ask(text, at=at).frame.rows())


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_table_is_asked_once_though_its_streams_keep_nothing(
    tmp_path: Path, *, checkpoint: bool
) -> None:
    write(tmp_path / "in", 0, 60)
    there = answers(tmp_path, TOTAL)
    with connect(tmp_path, TOTAL, checkpoint=checkpoint) as session:
        session.start()
        session.await_idle()
        sessions = [session, looking(tmp_path)] if checkpoint else [session]
        for one in sessions:
            for time in range(48, 59):
                assert asked(one, "SELECT * FROM q0", time) == there[time]
                assert asked(one, "SELECT * FROM QUERY q0", time) == there[time]
            answer = one.ask("SELECT * FROM Q0")
            assert (answer.at, answer.known) == (58, 59)
            with pytest.raises(tidemill.RunError, match='known up to 59, as far as table "q0"'):
                one.ask("SELECT * FROM q0", at=59)
            with pytest.raises(tidemill.RunError, match="kept from 48 on, and not at 47"):
                one.ask("SELECT * FROM q0", at=47)
        write(tmp_path / "in", 60, 80)
        assert asked(session, "SELECT * FROM q0", 58) == there[58]
        assert session.ask("SELECT * FROM q0", at=70, wait=30).at == 70


def test_a_run_that_has_ended_is_asked_at_its_latest_row(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connect(tmp_path, TOTAL) as session:
        session.run(end=True)
    there = answers(tmp_path, TOTAL)
    assert looking(tmp_path).ask("SELECT * FROM q0").at == 39
    assert asked(looking(tmp_path), "SELECT * FROM q0", 39) == there[39]


def test_an_instant_that_a_table_does_not_keep_is_computed_from_streams_that_do(
    tmp_path: Path,
) -> None:
    for first in range(0, 400, 5):
        write(tmp_path / "in", first, first + 5)
    there = bags(expected(tmp_path / "in", TOTAL), 400)
    with connect(tmp_path, TOTAL, keep="", stream="KEEP 60") as session:
        with in_small_steps(2, 2):
            session.run()
        for one in (session, looking(tmp_path)):
            for time in range(370, 399):
                assert asked(one, "SELECT * FROM q0", time) == there[time]
            with pytest.raises(tidemill.RunError, match="kept from 398 on, and not at 100"):
                one.ask("SELECT * FROM q0", at=100)


def test_tables_are_joined_with_windows_and_with_one_another(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    totals, pairs = answers(tmp_path, TOTAL), answers(tmp_path, PAIRS)
    with connect(tmp_path, TOTAL, PAIRS, keep="KEEP ALL", stream="KEEP ALL") as session:
        session.start()
        session.await_idle()
        for one in (session, looking(tmp_path)):
            for time in (5, 30, 58):
                found = asked(one, "SELECT k, n, x FROM q0, q1 WHERE x = total", time)
                assert found == Counter(
                    (k, n, x)
                    for k, total, n in totals[time].elements()
                    for x, _ in pairs[time].elements()
                    if x == total
                )
                recent = rows(max(time - 2, 0), time + 1).rows()
                assert asked(one, JOINED, time) == Counter(
                    (k, total, v)
                    for k, total, _ in totals[time].elements()
                    for one_k, v, _ in recent
                    if one_k == k
                )


def test_rows_of_a_table_are_put_in_order_and_cut(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connect(tmp_path, TOTAL) as session:
        session.run()
    ((_, most, _), *_) = sorted(answers(tmp_path, TOTAL)[50], key=lambda row: -int(str(row[1])))
    text = "SELECT total FROM q0 ORDER BY total DESC LIMIT 1"
    assert looking(tmp_path).ask(text, at=50).frame.rows() == [(most,)]


def test_what_looks_at_other_instants_of_a_table_is_computed_from_streams(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    texts = (
        "SELECT k, MAX(total) AS most FROM q0 [RANGE 5] GROUP BY k",
        "ISTREAM(SELECT k, total FROM q0)",
        "WITH w AS (SELECT k, total FROM q0) SELECT k, MAX(total) AS m FROM w [RANGE 5] GROUP BY k",
        "SELECT k, v FROM (SELECT q0.k, v FROM q0, s WHERE q0.k = s.k) [RANGE 3]",
    )
    with connect(tmp_path, TOTAL, stream="KEEP ALL") as session:
        for number, text in enumerate(texts):
            session.sql(f"CREATE QUERY c{number} AS {text}")
        session.run(end=True)
        for number, text in enumerate(texts):
            wanted = session.find(f"c{number}").snapshot(25)
            assert wanted.height
            assert session.ask(text, at=25).frame.equals(wanted), text
            assert looking(tmp_path).ask(text, at=25).frame.equals(wanted), text


def test_a_name_of_with_that_hides_another_is_what_it_says(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    text = (
        "WITH w AS (SELECT k FROM q0) SELECT n FROM"
        " (WITH w AS (SELECT v AS n FROM s) SELECT n FROM w) x [RANGE 2]"
    )
    with connect(tmp_path, TOTAL, stream="KEEP ALL") as session:
        session.run()
        assert asked(session, text, 20) == Counter((v,) for _, v, _ in rows(19, 21).rows())


def test_a_table_that_was_changed_and_stopped_has_what_it_answered(tmp_path: Path) -> None:
    other = TOTAL.replace("RANGE 30", "RANGE 5")
    write(tmp_path / "in", 0, 20)
    with connect(tmp_path, TOTAL, keep="KEEP ALL") as session:
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q0 AS {other} USING IMMEDIATE")
        write(tmp_path / "in", 20, 80)
        session.await_idle()
        session.sql("STOP QUERY q0")
        write(tmp_path / "in", 80, 100)
        session.await_idle()
        table = session.table("q0")
        known = table.bag().known
        for one in (session, looking(tmp_path)):
            for time in (0, 10, 19, 20, 40, int(known) - 1):
                assert asked(one, "SELECT * FROM q0", time) == Counter(table.snapshot(time).rows())
            with pytest.raises(tidemill.RunError, match=f"known up to {known}"):
                one.ask("SELECT * FROM q0", at=int(known))
            with pytest.raises(tidemill.BindError, match="was changed or stopped"):
                one.ask("SELECT * FROM q0 [RANGE 5]", at=40)


def test_a_table_that_begins_late_has_no_answer_before(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connect(tmp_path, "SELECT k, v FROM s [RANGE 3]", keep="KEEP ALL") as session:
        session.start()
        session.await_idle()
        session.sql(f"CREATE TABLE late KEEP ALL START FRESH AS {TOTAL}")
        write(tmp_path / "in", 40, 60)
        session.await_idle()
        for one in (session, looking(tmp_path)):
            with pytest.raises(tidemill.RunError, match='"late" answers from 40 on'):
                one.ask("SELECT * FROM late", at=30)
            assert asked(one, "SELECT * FROM late", 45) == Counter(
                session.table("late").snapshot(45).rows()
            )


def test_a_table_that_nothing_is_known_of_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with connect(tmp_path, TOTAL, keep="KEEP ALL") as session:
        with pytest.raises(tidemill.RunError, match="nothing is known yet"):
            session.ask("SELECT * FROM q0")
        with pytest.raises(tidemill.RunError, match="nothing is known yet"):
            looking(tmp_path).ask("SELECT * FROM q0", at=3)
        session.start()
        write(tmp_path / "in", 0, 40)
        assert asked_when_known(session) == answers(tmp_path, TOTAL)[20]


def asked_when_known(session: tidemill.Session) -> Bag:
    return Counter(session.ask("SELECT * FROM q0", at=20, wait=30).frame.rows())


def test_explain_says_that_a_table_is_read(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 60)
    with connect(tmp_path, TOTAL) as session:
        session.run()
        text = "SELECT * FROM q0 AS OF 50"
        assert str(session.sql(f"EXPLAIN {text}")).splitlines() == [
            'Relation "@q0"',
            "at 50; known up to 59, after batch 0",
            '  table "q0": its rows at the instant; kept from 48 on',
        ]
        told = json.loads(str(session.sql(f"EXPLAIN FORMAT JSON {text}")))
        assert told["reads"]["tables"] == {"q0": {"since": 48}}
        assert told["reads"]["queries"] == []


def test_a_damaged_table_is_told(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connect(tmp_path, TOTAL) as session:
        session.run()
    for piece in (tmp_path / "state" / "tables" / "q0").glob("*.parquet"):
        piece.unlink()
    with pytest.raises(tidemill.RunError, match='damaged: table "q0"'):
        looking(tmp_path).ask("SELECT * FROM q0", at=38)


def test_the_command_asks_of_a_table(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with connect(tmp_path, TOTAL) as session:
        session.run()
    command = ["ask", str(tmp_path / "state"), "SELECT * FROM q0", "--at", "35", "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert Counter(tuple(row.values()) for row in told["rows"]) == answers(tmp_path, TOTAL)[35]


def test_another_session_asks_while_a_table_is_written(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 10)
    write(tmp_path / "all", 0, PAST)
    there = bags(expected(tmp_path / "all", TOTAL), PAST)
    seen: set[int] = set()
    with (
        in_small_steps(1, 1),
        connect(tmp_path, TOTAL, keep="KEEP 3", stream="KEEP 60") as session,
        looking(tmp_path) as look,
    ):
        session.start()
        session.await_idle()
        for first in range(10, PAST, 10):
            write(tmp_path / "in", first, first + 10)
            for at in _instants(look):
                answer = look.ask("SELECT * FROM q0", at=at)
                seen.add(answer.at)
                assert Counter(answer.frame.rows()) == there[answer.at], f"at {answer.at}"
            session.await_idle()
    assert len(seen) > 3, "it was asked at several instants"


def _instants(session: tidemill.Session) -> Iterator[int | None]:
    """The last instant that is known, and some before it, which the table does not keep."""
    for _ in range(10):
        yield None
        yield max(session.ask("SELECT * FROM q0").at - 8, 0)
