"""The times of an answer have the type in which the streams declare theirs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.model.time import END_OF_TIME, from_datetime
from tidemill.model.types import TIMESTAMP
from tidemill.runtime.typed_times import with_typed_times

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — timestamps carry no zone
SECOND = timedelta(seconds=1)
TYPED, NUMBER = pl.Datetime("us"), pl.Int64()
STREAMS = """
    CREATE STREAM t (x BIGINT, at TIMESTAMP) SOURCE memory('t') ORDERED BY at;
    CREATE STREAM n (x BIGINT, at BIGINT) SOURCE memory('n') ORDERED BY at;
    CREATE STREAM arrival (x BIGINT) SOURCE memory('arrival');
    CREATE STREAM view AS SELECT x FROM t [RANGE 1 SECOND];
    CREATE RELATION r (x BIGINT) SOURCE memory('r');
    CREATE RELATION tv (x BIGINT, since TIMESTAMP, until TIMESTAMP)
      SOURCE memory('tv') VALID FROM since TO until;
    CREATE RELATION nv (x BIGINT, since BIGINT) SOURCE memory('nv') VALID FROM since;
    CREATE RELATION mv (x BIGINT, since TIMESTAMP, until BIGINT)
      SOURCE memory('mv') VALID FROM since TO until;
"""


@pytest.fixture
def session() -> tidemill.Session:
    session = tidemill.connect(clock=lambda: from_datetime(NOON))
    session.sql(STREAMS)
    session.put("t", pl.DataFrame({"x": [1, 1], "at": [NOON, NOON + SECOND]}))
    session.put("n", pl.DataFrame({"x": [1], "at": [5]}))
    session.put("arrival", pl.DataFrame({"x": [1]}))
    session.put("r", pl.DataFrame({"x": [1]}))
    session.put("tv", pl.DataFrame({"x": [1], "since": [NOON], "until": [NOON + 2 * SECOND]}))
    session.put("nv", pl.DataFrame({"x": [1], "since": [0]}))
    session.put("mv", pl.DataFrame({"x": [1], "since": [NOON], "until": [None]}))
    return session


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT x FROM t", TYPED),
        ("SELECT x FROM arrival", TYPED),
        ("SELECT x FROM view", TYPED),
        ("SELECT t.x FROM t, r WHERE t.x = r.x", TYPED),
        ("SELECT x FROM t UNION ALL SELECT x FROM arrival", TYPED),
        ("SELECT x FROM t WHERE x IN (SELECT x FROM view)", TYPED),
        ("SELECT x FROM tv", TYPED),
        ("SELECT t.x FROM t, tv WHERE t.x = tv.x", TYPED),
        ("SELECT x FROM n", NUMBER),
        ("SELECT x FROM t UNION ALL SELECT x FROM n", NUMBER),
        ("SELECT x FROM t WHERE x NOT IN (SELECT x FROM n [RANGE 5])", NUMBER),
        ("SELECT t.x FROM t, nv WHERE t.x = nv.x", NUMBER),
        ("SELECT x FROM nv", NUMBER),
        ("SELECT x FROM mv", NUMBER),
        ("SELECT x FROM r", NUMBER),
    ],
)
def test_times_are_timestamps_if_all_that_is_read_is(
    session: tidemill.Session, text: str, expected: pl.DataType
) -> None:
    query = session.query(text)
    session.run()
    results, changes = query.results(), query.changes()
    assert (results.schema["start"], results.schema["end"]) == (expected, expected)
    assert (changes.schema["time"], changes.schema["sign"]) == (expected, pl.Int32())
    assert str(query.time) == ("TIMESTAMP" if expected == TYPED else "BIGINT")
    assert query.snapshot(NOON).columns == ["x"]


def test_times_are_those_of_the_rows(session: tidemill.Session) -> None:
    query = session.query("SELECT COUNT(*) AS n FROM t [RANGE 2 SECONDS]")
    session.run()
    assert query.results().rows() == [
        (1, NOON, NOON + SECOND),
        (2, NOON + SECOND, NOON + 2 * SECOND),
        (1, NOON + 2 * SECOND, NOON + 3 * SECOND),
    ]
    assert query.changes().rows()[:2] == [(1, NOON, 1), (1, NOON + SECOND, -1)]


def test_a_timestamp_that_never_comes_is_null(session: tidemill.Session) -> None:
    typed = session.query("SELECT COUNT(*) AS n FROM t [RANGE UNBOUNDED]")
    number = session.query("SELECT COUNT(*) AS n FROM n [RANGE UNBOUNDED]")
    session.run()
    assert typed.results().rows() == [(1, NOON, NOON + SECOND), (2, NOON + SECOND, None)]
    assert typed.changes().rows()[-1] == (2, NOON + SECOND, 1), "it does not disappear"
    assert number.results().rows() == [(1, 5, END_OF_TIME)]


def test_a_column_of_the_query_keeps_its_name_and_type(session: tidemill.Session) -> None:
    query = session.query("SELECT x AS start, x AS time, x + 0 AS sign FROM t")
    session.run()
    assert query.results().row(0) == (1, 1, 1, NOON, NOON + timedelta(microseconds=1))
    assert query.results().columns == ["start", "time", "sign", "start_", "end"]
    assert query.changes().row(0) == (1, 1, 1, NOON, 1)


@pytest.mark.parametrize("form", ["results", "changes", "upserts"])
def test_a_callback_gets_typed_times(session: tidemill.Session, form: str) -> None:
    found: list[pl.DataFrame] = []
    session.callback("f", lambda frame, _batch: found.append(frame))
    for number, stream in enumerate(("t", "n")):
        session.query(
            f"CREATE QUERY q{number} INTO callback('f', form => '{form}') AS"
            f" SELECT x, COUNT(*) AS n FROM {stream} [RANGE UNBOUNDED] GROUP BY x"
        )
    session.run()
    types = {"t": [TYPED, TYPED if form == "results" else pl.Int32()],
             "n": [NUMBER, NUMBER if form == "results" else pl.Int32()]}  # fmt: skip
    assert sorted(map(str, (frame.dtypes[-2:] for frame in found))) == sorted(
        map(str, types.values())
    )
    (typed,) = (frame for frame in found if frame.dtypes[-2] == TYPED)
    assert typed.row(0)[2] == NOON


def test_files_and_the_console_stay_as_they_are(
    session: tidemill.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT COUNT(*) AS n FROM t [RANGE UNBOUNDED]"
    files = session.query(f"CREATE QUERY f INTO parquet('{tmp_path / 'out'}') AS {text}")
    session.query(f"CREATE QUERY c INTO console() AS {text}")
    session.run()
    written = pl.read_parquet(tmp_path / "out/**/*.parquet").select("n", "start", "end")
    noon, later = from_datetime(NOON), from_datetime(NOON + SECOND)
    assert written.rows() == [(1, noon, later), (2, later, END_OF_TIME)]
    assert files.results().rows() == [(1, NOON, NOON + SECOND), (2, NOON + SECOND, None)]
    assert capsys.readouterr().out == (
        "c, batch 0\n"
        "n                start                  end\n"
        "-  -------------------  -------------------\n"
        "1  2026-03-01 12:00:00  2026-03-01 12:00:01\n"
        "2  2026-03-01 12:00:01                  end\n"
    )


@given(st.lists(st.integers(0, END_OF_TIME), min_size=1))
def test_no_time_is_lost(times: list[int]) -> None:
    frame = pl.DataFrame({"start": [0] * len(times), "end": times})
    typed = with_typed_times(frame, TIMESTAMP)
    back = typed.select(pl.all().cast(pl.Int64).fill_null(END_OF_TIME))
    assert back.equals(frame)
    assert typed["end"].is_null().to_list() == [time == END_OF_TIME for time in times]
