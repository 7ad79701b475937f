"""What the live view shows of answers is what they are, and costs a small part of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.cli import present as present_module
from tidemill.cli.present import Glimpses, place_text, present, present_excerpt, queries_of
from tidemill.model.batch import Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.physical.techniques import Technique
from tidemill.runtime.answers import Answer
from tidemill.runtime.local import job as local_job
from tidemill.runtime.progress import Progress, QueryProgress, StreamProgress

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = {
    "highest": "SELECT k, MAX(v) AS m FROM s [RANGE 100] GROUP BY k",
    "number": "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]",
    "now": "SELECT k, v FROM s [RANGE 10]",
    "pairs": "SELECT x.k FROM s [RANGE 10] x, s [ROWS 1] y WHERE x.k = y.k",
    "different": "SELECT DISTINCT k FROM s [RANGE 30]",
}
ROWS = pl.DataFrame(
    {"k": [i * i % 7 for i in range(300)], "v": [i * 31 % 97 for i in range(300)],
     "t": [3 * i + i % 3 for i in range(300)]}
)  # fmt: skip


def session_of(directory: Path, technique: Technique) -> tidemill.Session:
    directory.mkdir()
    for first in range(0, ROWS.height, 20):
        ROWS[first : first + 20].write_parquet(directory / f"{first:04d}.parquet")
    session = tidemill.connect(technique=technique.value, unbounded_state=True)
    session.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{directory}')"
                " ORDERED BY t")  # fmt: skip
    for name, text in QUERIES.items():
        session.sql(f"CREATE QUERY {name} AS {text}")
    return session


@pytest.mark.parametrize("technique", list(Technique))
def test_the_present_is_what_the_answer_turns_out_to_be(
    technique: Technique, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(tmp_path / "in", technique)
    seen: list[tuple[str, str, pl.DataFrame]] = []

    def look(_: local_job.Job, __: object) -> None:
        for name in QUERIES:
            answer = session.current_answer(name)
            assert answer is not None
            if (found := present(answer)) is not None:
                seen.append((name, *found))

    monkeypatch.setattr("tidemill.runtime.local.intake._STEP_ROWS", 1)
    monkeypatch.setattr(local_job, "_MEASURE_EVERY", -1)
    monkeypatch.setattr(local_job.Job, "_measure", look)
    session.run()
    running = [(name, int(when.removeprefix("at ")), rows) for name, when, rows in seen]
    assert len(running) >= 10 * len(QUERIES)
    for name, time, rows in running:
        assert rows.equals(session.answer(name).snapshot(time)), (name, time)


def answer(*elements: tuple[int, int, int]) -> Answer:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    query = session.sql("SELECT k FROM s [RANGE 5]")
    assert isinstance(query, tidemill.Query)
    given = Answer(query.schema)
    given.read([pl.DataFrame(elements, schema=["k", "start", "end"], orient="row")])
    return given


def progress(*marks: int | None, batches: int = 1) -> Progress:
    streams = tuple(StreamProgress(f"s{n}", 1, 0, mark) for n, mark in enumerate(marks))
    return Progress(batches, streams, (QueryProgress("q", 1),), 0, 0)


def test_the_first_rows_are_shown_with_the_instant_at_which_they_are_valid() -> None:
    given = answer((3, 0, 9), (1, 2, 9), (2, 0, 4))
    given.known = Time(5)
    found = present_excerpt("q", given, 1)
    assert found is not None
    assert (found.title, found.rows, found.more) == ("q at 4: 2 rows", (("1",),), 1)


def test_the_last_rows_are_shown_where_none_is_valid() -> None:
    given = answer((3, 0, 1), (1, 2, 3), (2, 4, 5))
    given.known = Time(9)
    found = present_excerpt("q", given, 2)
    assert found is not None
    assert found.title == "q: the last rows; none at 8"
    assert found.rows == (("1", "2"), ("2", "4"))


def test_nothing_is_known_before_the_answer_says_so() -> None:
    assert present(answer((3, 0, 9))) is None


def test_a_run_that_goes_on_from_a_checkpoint_does_not_know_all_that_is_valid() -> None:
    given = answer((3, 0, 9), (1, 2, 9))
    given.known, given.is_whole = Time(9), False
    found = present_excerpt("q", given, 2)
    assert found is not None
    assert (found.title, found.rows) == ("q: the last rows", (("3", "0"), ("1", "2")))


def test_in_the_end_the_present_is_that_of_the_latest_row() -> None:
    given = answer((3, 0, 9), (4, 2, END_OF_TIME))
    given.known, given.last_read = END_OF_TIME, Time(2)
    found = present(given)
    assert found is not None
    assert (found[0], found[1].rows()) == ("at 2", [(3,), (4,)])


def test_looking_takes_a_small_part_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = [0.0], []

    def slow(*_: object) -> None:
        looks.append(now[0])
        now[0] += 2  # seconds for each answer

    monkeypatch.setattr(present_module, "present_excerpt", slow)
    session = session_of(tmp_path / "in", Technique.PATTERN)
    session.run()
    glimpses = Glimpses(session, 10, clock=lambda: now[0])
    batches = 0
    while now[0] < 2000:
        batches += 1
        glimpses.look(progress(5, batches=batches))
        now[0] += 0.25
    assert len(looks) == 2000 / (2 * 20)
    once = len(looks)
    now[0] += 1000
    for _ in range(10):
        glimpses.look(progress(5, batches=batches + 1))
        now[0] += 1000
    assert len(looks) == once + len(QUERIES), "nothing new is not looked at"


def test_where_an_answer_goes_tells_no_secret() -> None:
    session = tidemill.connect(engine="spark")
    session.sql("""
        CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t;
        CREATE QUERY a AS SELECT k FROM s;
        CREATE QUERY b INTO parquet('out/b') AS SELECT k FROM s;
        CREATE QUERY c INTO csv(path => 'out/c') AS SELECT k FROM s;
        CREATE QUERY d INTO jdbc(url => 'jdbc:x?password=hidden') AS SELECT k FROM s;
        CREATE QUERY e INTO memory() AS SELECT k FROM s;
    """)
    places = [place_text(query) for query in queries_of(session)]
    assert places == ["memory", "parquet out/b", "csv out/c", "jdbc", "memory"]


def test_what_came_last_is_found_in_either_form() -> None:
    given = answer((3, 0, 9), (1, 2, 9))
    changes = pl.DataFrame(
        {"k": [8, 3], "time": [5, 6], "sign": [1, -1]}, schema_overrides={"sign": pl.Int32}
    )
    given.read([changes], Form.SIGNED)
    assert given.latest(2).rows() == [(1, 2), (8, 5)]
    assert given.latest(0).rows() == []
    assert given.latest(9).columns == ["k", "start"]
