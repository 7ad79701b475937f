"""Limits of a session: what is refused, what is admitted, and what is planned otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.optimizer.cost import cost_of
from tidemill.optimizer.statistics import Statistics

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
        assert shown(session, "SHOW DECISIONS").equals(before), "before anything runs, too"
        assert session.planned("q").version == plan
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
        ({"over_limit": None}, 'there is no over_limit "None"'),
        ({"memory_limit": -5}, "memory_limit must be a number of bytes, more than 0"),
        ({"memory_limit": "many"}, "memory_limit must be a number of bytes, more than 0"),
        ({"memory_limit": True}, "memory_limit must be a number of bytes, more than 0"),
        ({"over_limit": "kill"}, 'there is no over_limit "kill"'),
    ],
)
def test_limits_that_are_none_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(tidemill.PlanError, match=message):
        tidemill.connect(**settings)  # type: ignore[arg-type]


# What is left of the limits


def kept_in(place: Path) -> str:
    """The streams, with rows in files, so that queries on them can go on."""
    for name, frame in ROWS.items():
        (place / name).mkdir()
        frame.write_parquet(place / name / "0.parquet")
    return "".join(
        f"CREATE STREAM s{i} (a BIGINT, at BIGINT) SOURCE parquet(path => '{place / f's{i}'}')"
        " ORDERED BY at HINT (rate => 1000, distinct(a) => 50);"
        for i in range(4)
    )


OTHER = STAR.replace("2 SECONDS", "3 SECONDS")
STAGES, REFUSED = "10 MB", "300 KB"
"""Limits: beside STAR there is room for OTHER without intermediate results; or for none."""


def is_one_stage(session: tidemill.Session, query: str) -> bool:
    return "MultiJoin" in session.find(query).explain("physical")


def remembered(session: tidemill.Session) -> float:
    """How many bytes the queries that there are take together, as it is expected."""
    plans = {name: session.planned(name) for name in shown(session, "SHOW QUERIES")["name"]}
    known = Statistics(
        {n: edge for one in plans.values() for n, edge in one.statistics.inputs.items()}
    )
    return cost_of({name: one.physical for name, one in plans.items()}, known).memory


def test_a_query_is_planned_for_what_others_leave() -> None:
    with connected(memory_limit=STAGES) as session:
        session.sql(f"CREATE QUERY alone AS {OTHER}")
        assert not is_one_stage(session, "alone")
    with connected(memory_limit=STAGES) as session:
        session.sql(f"CREATE QUERY p AS {STAR}")
        assert "MultiJoin" in str(session.sql(f"EXPLAIN PHYSICAL {OTHER}"))
        session.sql(f"CREATE QUERY q AS {OTHER}")
        assert (is_one_stage(session, "p"), is_one_stage(session, "q")) == (False, True)
        assert remembered(session) <= 10_000_000
        session.run()
        assert (is_one_stage(session, "p"), is_one_stage(session, "q")) == (False, True)
        assert sorted(session.find("q").snapshot(9).rows()) == [(1,), (2,)]


def test_what_is_dropped_leaves_its_room() -> None:
    with connected(memory_limit=REFUSED) as session:
        session.sql(f"CREATE QUERY p AS {STAR}")
        with pytest.raises(tidemill.PlanError) as caught:
            session.sql(f"CREATE QUERY q AS {OTHER}")
        text = str(caught.value)
        assert "it takes 288,000 bytes of state, and 108,000 of 300,000 are left" in text
        assert "memory_limit=480000 or more" in text
        assert shown(session, "SHOW QUERIES")["name"].to_list() == ["p"]
        session.sql("DROP QUERY p")
        session.sql(f"CREATE QUERY q AS {OTHER}")
    with connected(memory_limit=STAGES) as session:
        session.sql(f"CREATE QUERY p AS {STAR}; DROP QUERY p; CREATE QUERY q AS {OTHER}")
        assert not is_one_stage(session, "q")


def test_a_query_that_shares_all_it_needs_is_planned_like_the_other() -> None:
    with connected(memory_limit="5 MB") as session:
        session.sql(f"CREATE QUERY p AS {STAR}; CREATE QUERY q AS {STAR}")
        assert session.planned("p").version == session.planned("q").version
        assert not is_one_stage(session, "q")


@pytest.mark.parametrize("starts", [True, False])
def test_after_a_restart_there_is_as_much_left_as_before(tmp_path: Path, *, starts: bool) -> None:
    streams, place = kept_in(tmp_path), tmp_path / "state"
    with tidemill.connect(checkpoint=place, memory_limit=STAGES) as session:
        session.sql(f"{streams} CREATE QUERY p AS {STAR}; CREATE QUERY q AS {OTHER}")
        session.start()
        session.await_idle()
        assert (is_one_stage(session, "p"), is_one_stage(session, "q")) == (False, True)
    third = STAR.replace("2 SECONDS", "4 SECONDS")
    with tidemill.connect(checkpoint=place, memory_limit="8840 KB") as session:
        if starts:
            session.start()
            session.await_idle()
        # They began together: p has no windows of s2 and s3 of its own (96,000), but those of q.
        with pytest.raises(tidemill.PlanError, match="takes 384,000 bytes of state, and 296,000"):
            session.sql(f"CREATE QUERY r AS {third}")
        session.sql("DROP QUERY q")
        session.sql(f"CREATE QUERY r AS {third}")
        assert is_one_stage(session, "r")


def test_a_change_is_planned_for_what_others_leave() -> None:
    with connected(memory_limit=STAGES) as session:
        session.sql(f"CREATE QUERY p AS {STAR}; CREATE QUERY q AS SELECT a AS x FROM s0")
        session.sql(f"ALTER QUERY q AS {OTHER}")
        assert is_one_stage(session, "q")
