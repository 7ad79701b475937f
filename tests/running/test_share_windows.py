"""Queries that share a join of larger windows: over restarts, drops, and changes of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import bags, define, expected, write

if TYPE_CHECKING:
    from pathlib import Path

SIZES = (5, 12, 8)
LARGEST = 1
SHARE = "share windows"
RATE = "HINT (rate => 1000000, distinct(k) => 3)"


def text(size: int) -> str:
    return (
        f"SELECT a.v AS x, b.v AS y FROM s a [RANGE {size}] JOIN s b [RANGE {size}] "
        "ON a.k = b.k AND a.v < b.v"
    )


def opened(root: Path, sizes: tuple[int, ...] = SIZES, hint: str = RATE) -> tidemill.Session:
    session = tidemill.connect(checkpoint=root / "state", partitions=2)
    define(session, root / "in", keep=hint)
    for size in sizes:
        into = f"parquet('{root / f'out{size}'}')"
        session.sql(f"CREATE QUERY q{size} INTO {into} AS {text(size)}")
    return session


def plan_text(session: tidemill.Session, size: int) -> str:
    return str(session.sql(f"EXPLAIN PHYSICAL q{size}"))


def decisions(session: tidemill.Session) -> pl.DataFrame:
    listed = session.sql("SHOW DECISIONS")
    assert isinstance(listed, pl.DataFrame)
    return listed.filter(listed["subject"] == SHARE).select("query", "chosen", "cpu", "why")


def joins(session: tidemill.Session) -> dict[str, tuple[str, ...]]:
    """The queries that each join works for."""
    metrics = session.metrics()
    found = metrics.filter(metrics["operator"].str.contains("Join")).select("operator", "queries")
    return {f"{i}": tuple(queries) for i, (_, queries) in enumerate(found.unique().rows())}


def assert_answers(root: Path, session: tidemill.Session, *sizes: int) -> None:
    for size in sizes:
        given = session.answer(f"q{size}").changes()
        wanted = expected(root / "in", text(size))
        assert bags(given, 80) == bags(wanted, 80), f"the windows of {size}"


def test_queries_share_a_join_over_restarts_and_drops(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path) as session:
        session.start()
        session.await_idle()
        assert list(joins(session).values()) == [("q12", "q5", "q8")]
        first = [plan_text(session, size) for size in SIZES], decisions(session)
        assert "Shorten(by=7)" in first[0][0]
        assert "Shorten(by=4)" in first[0][2]
        assert "Shorten" not in first[0][LARGEST]
        assert first[1]["query"].to_list() == ["q5", "q8"]
    write(tmp_path / "in", 20, 40)
    with opened(tmp_path) as session:
        session.start()
        session.await_idle()
        again = [plan_text(session, size) for size in SIZES], decisions(session)
        assert again[0] == first[0]
        assert again[1].equals(first[1])
        session.sql("DROP QUERY q12")
        assert list(joins(session).values()) == [("q5", "q8")]
        assert plan_text(session, 5) == first[0][0]
        write(tmp_path / "in", 40, 50)
        session.await_idle()
        session.sql("DROP QUERY q8")
        write(tmp_path / "in", 50, 55)
        session.await_idle()
    with opened(tmp_path, (5,)) as session:
        write(tmp_path / "in", 55, 60)
        session.run(end=True)
        assert_answers(tmp_path, session, 5)


def test_dropping_the_smaller_ones_frees_nothing_that_the_larger_needs(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 30)
    with opened(tmp_path) as session:
        session.start()
        session.await_idle()
        session.sql("DROP QUERY q5; DROP QUERY q8")
        assert list(joins(session).values()) == [("q12",)]
        session.sql("CREATE QUERY other AS SELECT v FROM s [RANGE 3]; DROP QUERY q12")
        assert joins(session) == {}


def test_a_query_that_begins_later_has_windows_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path, (12,)) as session:
        session.start()
        session.await_idle()
        session.sql(f"CREATE QUERY q5 AS {text(5)}")
        assert "Shorten" not in plan_text(session, 5)
        assert len(joins(session)) == 2


def test_without_knowledge_nothing_is_shared(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path, hint="") as session:
        session.start()
        session.await_idle()
        assert len(joins(session)) == len(SIZES)


@pytest.mark.parametrize("size", SIZES)
def test_one_of_them_is_changed(tmp_path: Path, size: int) -> None:
    """The others go on as they are, and the one that is changed begins anew."""
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path) as session:
        session.start()
        session.await_idle()
        before = {one: plan_text(session, one) for one in SIZES if one != size}
        session.sql(f"ALTER QUERY q{size} AS {text(3)}")
        write(tmp_path / "in", 20, 40)
        session.await_idle()
        assert {one: plan_text(session, one) for one in before} == before
        write(tmp_path / "in", 40, 60)
        session.stop()
        session.run(end=True)
        assert_answers(tmp_path, session, *before)


@pytest.mark.parametrize("size", SIZES)
def test_one_of_them_is_planned_again(tmp_path: Path, size: int) -> None:
    """It gets windows of its own, since it begins later, and its answer has no gap."""
    write(tmp_path / "in", 0, 20)
    with opened(tmp_path) as session:
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q{size} REPLAN")
        write(tmp_path / "in", 20, 60)
        session.await_idle()
        assert "Shorten" not in plan_text(session, size)
        session.stop()
        session.run(end=True)
        assert_answers(tmp_path, session, *SIZES)


@pytest.mark.parametrize("sizes", [SIZES, (12, 5, 8), (8, 5, 12)])
def test_without_a_checkpoint_it_is_the_same(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    write(tmp_path / "in", 0, 60)
    with tidemill.connect() as session:
        define(session, tmp_path / "in", keep=RATE)
        for size in sizes:
            session.sql(f"CREATE QUERY q{size} AS {text(size)}")
        session.run()
        assert len(joins(session)) == 1
        assert_answers(tmp_path, session, *sizes)
