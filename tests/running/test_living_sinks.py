"""Queries with sinks that live, on the local engine: what is refused, what happens by itself."""

from __future__ import annotations

import json
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import define, expected, write
from running.sink_body import NEW, OLD, altered, kept_through, stopped_and_started
from tidemill.lang.statements import Change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize("using", Change)
@pytest.mark.parametrize("is_kept", [False, True])
def test_sinks_get_the_formula_of_a_change(tmp_path: Path, using: Change, is_kept: bool) -> None:  # noqa: FBT001 — as pytest gives it
    altered(tidemill.connect(checkpoint=tmp_path / "state" if is_kept else None), tmp_path, using)


def test_what_sinks_are_to_get_is_kept_while_queries_are_paused(tmp_path: Path) -> None:
    kept_through(tidemill.connect(partitions=2), tmp_path)


def test_they_are_kept_in_a_checkpoint(tmp_path: Path) -> None:
    kept_through(tidemill.connect(checkpoint=tmp_path / "state"), tmp_path)


def test_sinks_of_queries_that_are_stopped_and_started(tmp_path: Path) -> None:
    stopped_and_started(tidemill.connect(), tmp_path)


def test_sinks_of_a_checkpoint_when_queries_are_stopped_and_started(tmp_path: Path) -> None:
    stopped_and_started(tidemill.connect(checkpoint=tmp_path / "state", partitions=2), tmp_path)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tidemill.Session]:
    """A session over fifty rows, before it is started."""
    write(tmp_path / "in", 0, 50)
    with tidemill.connect() as session:
        define(session, tmp_path / "in")
        yield session


def begun(session: tidemill.Session, sink: str, text: str = OLD) -> list[pl.DataFrame]:
    """Start a query with a sink; what a function is given that is called "taken"."""
    taken: list[pl.DataFrame] = []
    session.callback("taken", lambda rows, _batch: taken.append(rows))
    session.sql(f"CREATE QUERY q INTO {sink} AS {text}")
    session.start()
    session.await_idle()
    return taken


CHANGES, UPSERTS = "callback('taken', form => 'changes')", "callback('taken', form => 'upserts')"


def test_what_has_waited_leaves_by_itself(session: tidemill.Session, tmp_path: Path) -> None:
    """Nobody waits for the engine, and the rows of the new version come after the old ones."""
    taken = begun(session, CHANGES)
    session.sql(f"ALTER QUERY q AS {NEW} USING QUERY ORDER")
    write(tmp_path / "in", 50, 150)
    last, by = 0, monotonic() + 30
    while last < 140 and monotonic() < by:
        sleep(0.02)
        last = max(row[-2] for frame in list(taken) for row in frame.rows())
    assert last >= 140
    times = [row[-2] for frame in taken for row in frame.rows()]
    back = [n for n in range(1, len(times)) if times[n] < times[n - 1]]
    assert [(times[n - 1], times[n]) for n in back] == [(81, 61)]


@pytest.mark.parametrize("form", ["results", "changes"])
def test_another_plan_keeps_to_the_order_of_versions(
    session: tidemill.Session, tmp_path: Path, form: str
) -> None:
    """QUERY ORDER, and REPLAN while the new version waits for the old one to end."""
    old, new = (f"SELECT {n} AS x, MAX(t) AS n FROM s [RANGE {w}]" for n, w in ((1, 40), (2, 5)))
    taken = begun(session, f"callback('taken', form => '{form}')", old)
    session.sql(f"ALTER QUERY q AS {new} USING QUERY ORDER")
    session.sql("ALTER QUERY q REPLAN")
    for first in range(50, 140, 10):
        write(tmp_path / "in", first, first + 10)
        session.await_idle()
    versions = pl.concat(taken)["x"].to_list()
    assert versions == sorted(versions)
    assert set(versions) == {1, 2}


def test_rows_of_both_versions_at_an_instant_are_one_call(
    session: tidemill.Session, tmp_path: Path
) -> None:
    """In STREAM ORDER both answer: what they give in a step comes together, in order."""
    taken = begun(session, CHANGES)
    session.sql(f"ALTER QUERY q AS {NEW} USING STREAM ORDER")
    before = len(taken)
    write(tmp_path / "in", 50, 150)
    session.await_idle()
    for frame in taken[before:]:
        assert frame["time"].is_sorted()
    assert len(taken) - before <= 2, "the last withdrawals may need a step of their own"


@pytest.mark.parametrize(
    ("sink", "text", "told"),
    [
        (CHANGES, "SELECT k, COUNT(*) AS total FROM s [ROWS 5] GROUP BY k", "counts rows"),
        ("callback('taken')", "SELECT k, v FROM s [ROWS 5]", "go on for ever"),
        (
            "callback('taken')",
            "SELECT k FROM s [RANGE 5] UNION ALL SELECT id AS k FROM r",
            "go on for ever",
        ),
    ],
)
def test_what_cannot_end_exactly_is_refused(
    session: tidemill.Session, sink: str, text: str, told: str
) -> None:
    begun(session, sink, text)
    for statement in ("STOP QUERY q", "PAUSE QUERY q", f"ALTER QUERY q AS {text} USING IMMEDIATE"):
        with pytest.raises(tidemill.RunError, match=told):
            session.sql(statement)


def test_other_columns_and_other_keys_are_refused(session: tidemill.Session) -> None:
    begun(session, UPSERTS)
    with pytest.raises(tidemill.RunError, match="has others"):
        session.sql("ALTER QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k")
    with pytest.raises(tidemill.RunError, match=r"gets upserts by k, and .* by k, total"):
        session.sql("ALTER QUERY q AS SELECT DISTINCT k, v + 0 AS total FROM s [RANGE 5]")


def test_the_verdict_says_what_the_sink_gets(session: tidemill.Session) -> None:
    begun(session, UPSERTS)
    told = str(session.sql(f"EXPLAIN ALTER QUERY q AS {NEW}"))
    assert "upserts: at 81 each key that stands is deleted (sign -1); at 81 each row" in told
    assert "at 80 another instance goes on with what stands" in told
    assert "QUERY ORDER     exact from not possible; rows of two versions" in told


def test_an_instant_too_early_is_refused_with_the_first_that_is_not(
    session: tidemill.Session,
) -> None:
    begun(session, CHANGES)
    with pytest.raises(tidemill.RunError, match="exact is 81") as caught:
        session.sql(f"ALTER QUERY q AS {NEW} USING IMMEDIATE AT 80")
    assert caught.value.hint == "write AT 81 or later, or leave AT out"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_other_files(session: tidemill.Session, tmp_path: Path, kind: str) -> None:
    begun(session, f"{kind}('{tmp_path / 'out'}')")
    session.sql(f"ALTER QUERY q AS {NEW}")
    write(tmp_path / "in", 50, 120)
    session.await_idle()
    found: dict[tuple[int, int], int] = {}
    for path in sorted((tmp_path / "out").glob("batch=*/*")):
        rows = (
            pl.read_csv(path).to_dicts()
            if kind == "csv"
            else [json.loads(line) for line in path.read_text().splitlines()]
        )
        for row in rows:
            for time in range(row["start"], row["end"]):
                found[time, row["k"]] = row["total"]
    for text, times in ((OLD, range(79)), (NEW, range(79, 110))):
        changes = expected(tmp_path / "in", text)
        for time in times:
            there = changes.filter(pl.col("time") <= time)
            wanted = (
                there.group_by("k", "total").agg(pl.col("sign").sum()).filter(pl.col("sign") > 0)
            )
            assert {(time, k): n for k, n, _ in wanted.rows()} == {
                (t, k): n for (t, k), n in found.items() if t == time
            }


def test_a_console(
    session: tidemill.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(session, "console(form => 'changes')")
    session.sql("STOP QUERY q")
    write(tmp_path / "in", 50, 120)
    session.await_idle()
    printed = capsys.readouterr().out
    assert {line.split(",")[0] for line in printed.splitlines() if ", batch " in line} == {"q"}
    assert "    81    -1" in printed


def test_a_run_from_the_beginning_gives_the_same(session: tidemill.Session, tmp_path: Path) -> None:
    """The parts are instants of the streams: a bounded run gives what the running one has given."""
    taken = begun(session, CHANGES)
    session.sql(f"ALTER QUERY q AS {NEW} USING QUERY ORDER")
    write(tmp_path / "in", 50, 120)
    session.await_idle()
    session.stop()
    first = _net(taken, 110)
    taken.clear()
    session.run()
    assert _net(taken, 110) == first
    old = [n for n, frame in enumerate(taken) if 81 in frame["time"]]
    assert old, "the old version withdraws"
    assert session.answer("q").snapshot(100).height == 3


def test_a_query_that_drains_is_dropped_and_another_one_takes_its_name(
    session: tidemill.Session, tmp_path: Path
) -> None:
    begun(session, f"parquet('{tmp_path / 'one'}')")
    session.sql("STOP QUERY q DRAIN")
    session.sql("DROP QUERY q")
    session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'two'}') AS {NEW}")
    write(tmp_path / "in", 50, 120)
    session.await_idle()
    assert session.answer("q").snapshot(100).height == 3
    assert list((tmp_path / "one").glob("batch=*/*.parquet"))


def test_a_late_query_gets_nothing_from_before(session: tidemill.Session, tmp_path: Path) -> None:
    """Rows of relations are there from 0 on, and its sink gets them from its beginning on."""
    text = "SELECT k FROM s [RANGE 5] UNION ALL SELECT id AS k FROM r"
    session.query("SELECT k FROM s")
    session.start()
    session.await_idle()
    taken: dict[str, list[pl.DataFrame]] = {"results": [], "changes": []}
    for form, frames in taken.items():
        session.callback(form, lambda rows, _batch, to=frames: to.append(rows))  # type: ignore[misc]
        session.sql(f"CREATE QUERY {form} INTO callback('{form}', form => '{form}') AS {text}")
    write(tmp_path / "in", 50, 80)
    session.await_idle()
    assert min(frame["start"].min() for frame in taken["results"]) == 50  # type: ignore[type-var]
    assert min(frame["time"].min() for frame in taken["changes"]) == 50  # type: ignore[type-var]
    first = taken["changes"][0].filter(pl.col("time") == 50)
    assert sorted(first["k"]) == [0, 1, 2]


def _net(frames: list[pl.DataFrame], past: int) -> dict[tuple[object, ...], int]:
    """What changes before an instant add up to, by row and time."""
    found: dict[tuple[object, ...], int] = {}
    for frame in frames:
        for *row, time, sign in frame.rows():
            if time < past:
                found[*row, time] = found.get((*row, time), 0) + sign
    return {row: n for row, n in found.items() if n}
