"""Limits of a session: what is refused, what is admitted, and what is planned otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = "".join(
    f"CREATE STREAM s{i} (a BIGINT, at BIGINT) SOURCE memory('s{i}') ORDERED BY at"
    " HINT (rate => 1000, distinct(a) => 50);"
    for i in range(4)
)
JOIN = "SELECT s0.a FROM s0 [RANGE 10 SECONDS], s1 [RANGE 10 SECONDS] WHERE s0.a = s1.a"
STAR = (
    "SELECT s0.a AS x FROM s0 [RANGE 2 SECONDS], s1 [RANGE 2 SECONDS], s2 [RANGE 2 SECONDS],"
    " s3 [RANGE 2 SECONDS] WHERE s0.a = s1.a AND s1.a = s2.a AND s2.a = s3.a"
)
ROWS = {f"s{i}": pl.DataFrame({"a": [1, 2], "at": [i, i + 5]}) for i in range(4)}


def connected(**settings: object) -> tidemill.Session:
    session = tidemill.connect(**settings)  # type: ignore[arg-type]
    for name, frame in ROWS.items():
        session.put(name, frame)
    session.sql(STREAMS)
    return session


def shown(session: tidemill.Session, text: str) -> pl.DataFrame:
    frame = session.sql(text)
    assert isinstance(frame, pl.DataFrame)
    return frame


def test_without_limits_nothing_is_refused() -> None:
    with connected() as session:
        for number in range(20):
            session.sql(f"CREATE QUERY q{number} AS {JOIN} AND s0.a > {number}")


def test_a_query_that_would_hold_too_much_is_refused_and_leaves_nothing() -> None:
    with connected(memory_limit=1_000) as session:
        with pytest.raises(tidemill.PlanError) as caught:
            session.sql(f"CREATE QUERY q AS {JOIN}")
        text = str(caught.value)
        assert 'query "q" would exceed the limit of memory' in text
        assert "of 1,000" in text
        assert "memory_limit=" in text
        assert shown(session, "SHOW QUERIES").height == 0


def test_the_limit_that_a_refusal_names_is_enough() -> None:
    with connected(memory_limit=1_000) as session, pytest.raises(tidemill.PlanError) as caught:
        session.sql(f"CREATE QUERY q AS {JOIN}")
    named = str(caught.value).partition("memory_limit=")[2].partition(" ")[0]
    with connected(memory_limit=int(named) + 1) as session:
        session.sql(f"CREATE QUERY q AS {JOIN}")


def test_a_query_that_is_there_already_takes_nothing_more() -> None:
    with connected(memory_limit=1_000) as session, pytest.raises(tidemill.PlanError) as caught:
        session.sql(f"CREATE QUERY q AS {JOIN}")
    named = int(str(caught.value).partition("memory_limit=")[2].partition(" ")[0])
    with connected(memory_limit=named + 1) as session:
        for number in range(5):
            session.sql(f"CREATE QUERY q{number} AS {JOIN}")
        with pytest.raises(tidemill.PlanError, match="with the 5 others"):
            session.sql(f"CREATE QUERY other AS {JOIN} AND s0.a > 7")
        session.sql("DROP QUERY q0")


def test_what_exceeds_a_limit_is_admitted_with_a_warning_if_that_is_set() -> None:
    with connected(cpu_limit=1e-6, over_limit="admit") as session:
        with pytest.warns(tidemill.TidemillWarning, match="would exceed the limit of CPU"):
            session.sql(f"CREATE QUERY q AS {JOIN}")
        session.run()
        assert session.find("q").snapshot(6).height == 2
        assert any("cpu_limit=" in told for told in session.warnings)


def test_a_change_is_refused_like_a_new_query() -> None:
    with connected(memory_limit=100_000) as session:
        session.sql("CREATE QUERY q AS SELECT a FROM s0")
        with pytest.raises(tidemill.PlanError, match="would exceed the limit of memory"):
            session.sql("ALTER QUERY q AS SELECT s0.a FROM s0 [RANGE 1 HOUR], s1 [RANGE 1 HOUR] "
                        "WHERE s0.a = s1.a")  # fmt: skip


def test_joins_keep_to_a_limit_by_stages_that_remember_nothing_between() -> None:
    with connected() as session:
        free = session.query(STAR).explain("physical")
    with connected(memory_limit="500 KB", over_limit="admit") as session:
        query = session.query(STAR)
        limited = query.explain("physical")
        (subject, why) = (
            shown(session, f"SHOW DECISIONS FOR {query.name}").select("subject", "why").row(0)
        )
        session.run()
        rows = query.snapshot(6)
    assert "MultiJoin" in limited
    assert "MultiJoin" not in free
    assert subject == "join order"
    assert "the cheapest of" in why
    with connected() as session:
        other = session.query(STAR)
        session.run()
        assert sorted(other.snapshot(6).rows()) == sorted(rows.rows())


def test_decisions_are_those_of_the_plan_that_runs_over_restarts(tmp_path: Path) -> None:
    for i, frame in enumerate(ROWS.values()):
        (tmp_path / f"s{i}").mkdir()
        frame.write_parquet(tmp_path / f"s{i}" / "0.parquet")
    streams = "".join(
        f"CREATE STREAM s{i} (a BIGINT, at BIGINT) SOURCE parquet(path => '{tmp_path / f's{i}'}')"
        " ORDERED BY at HINT (rate => 1000, distinct(a) => 50);"
        for i in range(4)
    )
    place = tmp_path / "state"
    with tidemill.connect(checkpoint=place, memory_limit=500_000, over_limit="admit") as session:
        session.sql(streams)
        session.sql(f"CREATE QUERY q AS {STAR}")
        session.start()
        session.await_idle()
        before = shown(session, "SHOW DECISIONS FOR q")
        plan = session.planned("q").version
    assert before.height
    with tidemill.connect(checkpoint=place) as session:  # no limit any more
        session.start()
        session.await_idle()
        assert shown(session, "SHOW DECISIONS q").equals(before)
        assert session.planned("q").version == plan
    with tidemill.connect(checkpoint=place, read_only=True) as session:
        assert shown(session, "SHOW DECISIONS").equals(before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cpu_limit": 0}, "cpu_limit must be a number of processors, more than 0"),
        ({"memory_limit": -5}, "memory_limit must be a number of bytes, more than 0"),
        ({"memory_limit": "many"}, "memory_limit must be a number of bytes, more than 0"),
        ({"memory_limit": True}, "memory_limit must be a number of bytes, more than 0"),
        ({"over_limit": "kill"}, 'there is no over_limit "kill"'),
    ],
)
def test_limits_that_are_none_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(tidemill.PlanError, match=message):
        tidemill.connect(**settings)  # type: ignore[arg-type]
