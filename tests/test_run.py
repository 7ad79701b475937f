"""Running queries in this process: sources, late rows, sinks, and the three forms of an answer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.model.time import Time
from tidemill.runtime.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.shaping import Refuse

BIDS = pl.DataFrame(
    {"auction": [7, 8, 7, 7], "price": [5.0, 4.0, None, 9.0], "at": [1, 2, 3, 5]},
    schema={"auction": pl.Int64, "price": pl.Float64, "at": pl.Int64},
)
COLUMNS = "(auction BIGINT, price DOUBLE, at BIGINT)"


def session_with(source: str, clauses: str = "ORDERED BY at") -> tidemill.Session:
    session = tidemill.connect()
    session.sql(f"CREATE STREAM bid {COLUMNS} SOURCE {source} {clauses}")
    return session


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def memory(frame: pl.DataFrame = BIDS, clauses: str = "ORDERED BY at") -> tidemill.Session:
    session = session_with("memory('bids')", clauses)
    session.put("bids", frame)
    return session


def test_results_changes_and_snapshot_describe_one_answer() -> None:
    session = memory()
    highest = query(session, "SELECT auction, MAX(price) AS m FROM bid [RANGE 3] GROUP BY auction")
    session.run()
    assert highest.results().rows() == [
        (7, 5.0, 1, 4),
        (8, 4.0, 2, 5),
        (7, None, 4, 5),
        (7, 9.0, 5, 8),
    ]
    assert highest.results().columns == ["auction", "m", "start", "end"]
    assert highest.changes().rows() == [
        (7, 5.0, 1, 1),
        (8, 4.0, 2, 1),
        (7, 5.0, 4, -1),
        (7, None, 4, 1),
        (7, None, 5, -1),
        (8, 4.0, 5, -1),
        (7, 9.0, 5, 1),
        (7, 9.0, 8, -1),
    ]
    assert highest.snapshot(4).rows() == [(7, None), (8, 4.0)]


def test_time_can_be_a_calendar_time() -> None:
    moments = BIDS.with_columns(pl.from_epoch("at", time_unit="s").cast(pl.Datetime("us")))
    session = tidemill.connect()
    session.put("bids", moments)
    session.sql(
        "CREATE STREAM bid (auction BIGINT, at TIMESTAMP) SOURCE memory('bids') ORDERED BY at"
    )
    count = query(session, "SELECT COUNT(*) AS n FROM bid [RANGE 2 SECONDS]")
    session.run()
    at = datetime(1970, 1, 1, 0, 0, 3)  # noqa: DTZ001 — timestamps carry no zone
    assert count.snapshot(at).rows() == [(2,)]
    assert count.snapshot(3_000_000).rows() == [(2,)]


WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": lambda frame, path: frame.write_csv(path),
    "json": lambda frame, path: frame.write_ndjson(path),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("files_per_batch", [1, 2])
def test_files_of_a_directory_are_read_in_order(
    tmp_path: Path, kind: str, files_per_batch: int
) -> None:
    WRITERS[kind](BIDS[:2], tmp_path / f"a.{kind}")
    WRITERS[kind](BIDS[2:3], tmp_path / f"b.{kind}")
    WRITERS[kind](BIDS[3:], tmp_path / f"c.{kind}")
    session = session_with(f"{kind}(path => '{tmp_path}', files_per_batch => {files_per_batch})")
    everything = query(session, "SELECT auction, price FROM bid")
    session.run()
    assert everything.results().rows() == [
        (7, 5.0, 1, 2),
        (8, 4.0, 2, 3),
        (7, None, 3, 4),
        (7, 9.0, 5, 6),
    ]


def test_rows_that_break_the_promise_are_counted_and_kept_aside(tmp_path: Path) -> None:
    BIDS[3:].write_parquet(tmp_path / "a.parquet")
    BIDS[:3].write_parquet(tmp_path / "b.parquet")
    clauses = "ORDERED BY at WITHIN 3 LATE QUARANTINE"
    session = session_with(f"parquet('{tmp_path}')", clauses)
    everything = query(session, "SELECT at FROM bid")
    session.run()
    assert everything.results()["at"].to_list() == [2, 3, 5]
    assert session.refused().rows() == [("bid", "late", 1)]
    assert session.quarantine("BID").rows() == [(7, 5.0, 1, "late")]


def test_rows_without_a_valid_time_are_counted_and_lose_nothing_else() -> None:
    bad = BIDS.with_columns(pl.Series("at", [1, None, -3, 5]))
    session = memory(bad)
    everything = query(session, "SELECT at FROM bid")
    session.run()
    assert everything.results()["at"].to_list() == [1, 5]
    assert session.refused().rows() == [
        ("bid", "time is NULL", 1),
        ("bid", "time is before 1970", 1),
    ]
    assert session.quarantine("bid").is_empty(), "LATE DROP keeps nothing"


def test_a_column_may_be_called_reason() -> None:
    session = tidemill.connect()
    session.sql(
        "CREATE STREAM s (reason VARCHAR, at BIGINT) SOURCE memory('s') "
        "ORDERED BY at LATE QUARANTINE"
    )
    session.put("s", pl.DataFrame({"reason": ["a", "b"], "at": [1, None]}))
    query(session, "SELECT reason FROM s")
    session.run()
    assert session.quarantine("s").columns == ["reason", "at", "reason_"]
    assert session.quarantine("s").rows() == [("b", None, "time is NULL")]


@pytest.mark.parametrize("kind", WRITERS)
def test_names_of_files_are_not_taken_for_patterns(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "a[1]"
    place.mkdir()
    WRITERS[kind](BIDS[:2], place / f"a*.{kind}")
    WRITERS[kind](BIDS[2:], place / f"ab.{kind}")
    session = session_with(f"{kind}('{place}')")
    everything = query(session, "SELECT auction FROM bid")
    session.run()
    assert everything.results().height == BIDS.height


def test_a_relation_is_joined_at_every_instant() -> None:
    session = memory()
    session.put("names", pl.DataFrame({"id": [7], "name": ["lamp"], "since": [2], "until": [4]}))
    session.sql(
        "CREATE RELATION item (id BIGINT, name VARCHAR, since BIGINT, until BIGINT) "
        "SOURCE memory('names') VALID FROM since TO until"
    )
    named = query(session, "SELECT name, at FROM bid [RANGE 10] JOIN item ON id = auction")
    session.run()
    assert named.results().rows() == [("lamp", 1, 2, 4), ("lamp", 3, 3, 4)]


def companies(frame: pl.DataFrame, clauses: str) -> tidemill.Query:
    session = memory()
    session.put("companies", frame)
    session.sql(f"""
        CREATE RELATION company (id BIGINT, name VARCHAR, since BIGINT, until BIGINT)
          SOURCE memory('companies') VALID FROM since TO until {clauses}
    """)
    text = "SELECT price, name FROM bid [RANGE 3] b, company c WHERE b.auction = c.id"
    registered = query(session, text)
    session.run()
    return registered


NAMES = pl.DataFrame(
    [(7, "old", None, 3), (7, "new", 3, None), (8, "x", 0, 1), (8, "x", 2, None)],
    schema={"id": pl.Int64, "name": pl.String, "since": pl.Int64, "until": pl.Int64},
    orient="row",
)


def test_a_non_retroactive_relation_is_looked_up_at_the_time_of_the_row() -> None:
    found = companies(NAMES, "NON RETROACTIVE").results()
    assert sorted(found.select("start", "end", "name").rows()) == [
        (1, 4, "old"),
        (2, 5, "x"),
        (3, 6, "new"),
        (5, 8, "new"),
    ]


def test_a_key_may_come_again_with_the_same_content() -> None:
    same = NAMES.filter(pl.col("id") == 8)
    assert companies(same, "KEY (id) NON RETROACTIVE").results().height == 1


def test_a_key_is_not_used_again_for_something_else() -> None:
    with pytest.raises(tidemill.RunError) as caught:
        companies(NAMES, "KEY (ID) NON RETROACTIVE")
    assert str(caught.value) == (
        "a key may not be used again in a non-retroactive relation: "
        '"company" has different rows for id = 7\n'
        "hint: give the new row a key of its own, or leave KEY out of the declaration"
    )


def test_a_parquet_sink_holds_the_answer_and_nothing_of_an_earlier_run(tmp_path: Path) -> None:
    session = memory()
    out = tmp_path / "out"
    everything = query(
        session,
        f"CREATE QUERY q INTO parquet(path => '{out}', replace => true) AS"
        " SELECT at FROM bid [RANGE 2]",
    )
    session.run()
    session.run()
    written = pl.read_parquet(out / "**/*.parquet").sort("start")
    assert written.rows() == everything.results().rows()


def test_an_empty_stream_gives_an_empty_answer() -> None:
    session = memory(BIDS.clear())
    count = query(session, "SELECT COUNT(*) AS n FROM bid [RANGE 5]")
    session.run()
    assert count.results().rows() == []
    assert count.changes().columns == ["n", "time", "sign"]


def test_a_column_may_be_called_like_a_time_column() -> None:
    session = memory()
    renamed = query(session, 'SELECT at AS "start", auction AS "end" FROM bid WHERE at = 1')
    session.run()
    assert renamed.results().rows(named=True) == [{"start": 1, "end": 7, "start_": 1, "end_": 2}]


def failure(session: tidemill.Session) -> str:
    session.sql("SELECT * FROM bid")
    with pytest.raises(tidemill.RunError) as caught:
        session.run()
    return str(caught.value)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    text = failure(session_with(f"parquet('{tmp_path / 'nothing'}')"))
    assert 'there is nothing to read for "bid"' in text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("this is no Parquet")
    text = failure(session_with(f"parquet('{tmp_path}')"))
    assert f'file "{tmp_path / "a.parquet"}" cannot be read as parquet' in text


def test_rows_before_a_file_that_cannot_be_read_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    BIDS.write_parquet(tmp_path / "in" / "a.parquet")
    (tmp_path / "in" / "b.parquet").write_text("this is no Parquet")
    session = session_with(f"parquet('{tmp_path / 'in'}')")
    session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS SELECT auction FROM bid")
    with pytest.raises(tidemill.RunError, match=r"b\.parquet"):
        session.run()
    assert pl.read_parquet(tmp_path / "out/**/*.parquet")["auction"].to_list() == [7, 8, 7, 7]


def test_that_stream_is_read_next_whose_time_has_come_least_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.runtime.local.intake._STEP_ROWS", 1)
    read = []

    def noted(
        path: Path, kind: str, schema: Schema, refuse: Refuse, **_: object
    ) -> Iterator[pl.DataFrame]:
        read.append(f"{path.parent.name}{path.stem}")
        return read_file(path, kind, schema, refuse)

    monkeypatch.setattr("tidemill.runtime.local.sources.read_file", noted)
    session = tidemill.connect()
    for name, times in {"a": [[1, 2], [3], [9]], "b": [[4], [5], [6]]}.items():
        (tmp_path / name).mkdir()
        for number, at in enumerate(times):
            pl.DataFrame({"at": at}).write_parquet(tmp_path / name / f"{number}.parquet")
        session.sql(
            f"CREATE STREAM {name} (at BIGINT) SOURCE parquet('{tmp_path / name}') ORDERED BY at"
        )
    answer = query(session, "SELECT a.at AS x, b.at AS y FROM a [RANGE 2], b [RANGE 2]")
    session.run()
    assert read == ["a0", "b0", "a1", "a2", "b1", "b2"]
    assert answer.results().rows() == [(3, 4, 4, 5)]


def test_a_stream_without_a_time_column_has_the_time_of_the_clock(tmp_path: Path) -> None:
    """Each batch has its own, and later ones later times, whatever the clock does."""
    for number in range(4):
        pl.DataFrame({"n": [number, number]}).write_parquet(tmp_path / f"{number}.parquet")
    ticks = iter([100, 200, 150, 300])
    session = tidemill.connect(clock=lambda: next(ticks))
    session.sql(f"CREATE STREAM s (n BIGINT) SOURCE parquet('{tmp_path}')")
    rows = query(session, "SELECT n FROM s")
    total = query(session, "SELECT COUNT(*) AS c FROM s [RANGE 120]")
    session.run()
    starts = rows.results()["start"].unique().sort()
    assert starts.dtype == pl.Datetime("us")
    assert starts.dt.epoch("us").to_list() == [100, 200, 201, 300]
    times = pl.col("start", "end").dt.epoch("us")
    assert total.results().with_columns(times).rows() == [
        (2, 100, 200),
        (4, 200, 201),
        (6, 201, 220),
        (4, 220, 300),
        (6, 300, 320),
        (4, 320, 321),
        (2, 321, 420),
    ]


def test_the_local_engine_has_nothing_to_go_on_from() -> None:
    session = memory(BIDS)
    query(session, "SELECT price FROM bid")
    session.run(end=True)
    with pytest.raises(
        tidemill.RunError, match="nothing is kept that a later run could go on from"
    ):
        session.run(end=False)


def test_a_missing_column_is_named() -> None:
    text = failure(memory(BIDS.rename({"price": "prize"})))
    assert 'frame "bids" has no column "price"' in text
    assert 'did you mean "prize"?' in text


def test_a_column_of_another_type_is_named() -> None:
    text = failure(memory(BIDS.with_columns(price=pl.lit(value=True))))
    assert 'column "price" of frame "bids" is Boolean and not DOUBLE' in text


def test_a_missing_frame_is_named() -> None:
    assert 'there is no frame "bids" in memory' in failure(session_with("memory('bids')"))


def test_a_frame_without_a_name_has_that_of_the_stream() -> None:
    session = session_with("memory()")
    everything = query(session, "SELECT * FROM bid")
    assert 'there is no frame "bid" in memory for "bid"' in failure(session)
    session.put("bid", BIDS)
    session.run()
    assert everything.results().height == BIDS.height


def test_nothing_can_be_read_before_it_has_run() -> None:
    session = memory()
    everything = query(session, "SELECT * FROM bid")
    with pytest.raises(tidemill.RunError, match="nothing has been run yet"):
        everything.results()
    session.run()
    later = query(session, "SELECT * FROM bid")
    with pytest.raises(tidemill.RunError, match="was not there in the last run"):
        later.results()


def test_partial_sums_meet_however_wide_their_numbers_are() -> None:
    frame = pl.DataFrame({"x": [1.0, 1e300, 2.0, 3.0], "at": [1, 1, 2, 2]})
    session = tidemill.connect(partitions=2)
    session.put("m", frame)
    session.sql("CREATE STREAM s (x DOUBLE, at BIGINT) SOURCE memory('m') ORDERED BY at")
    sums = query(session, "SELECT SUM(x) AS a FROM s [RANGE 6 SLIDE 3]")
    session.run()
    assert sums.results().rows() == [(1e300, 2, 8)]


def test_an_overflow_gives_null_and_stops_nothing() -> None:
    session = memory()
    huge = query(session, "SELECT at * 9223372036854775807 AS x, at FROM bid WHERE at < 3")
    session.run()
    assert huge.results().select("x", "at").rows() == [(9223372036854775807, 1), (None, 2)]


def test_explain_physical_shows_operators_state_and_exchanges() -> None:
    text = memory().sql("EXPLAIN PHYSICAL SELECT auction, SUM(price) FROM bid [RANGE 5] GROUP BY 1")
    assert isinstance(text, str)
    assert "Exchange by auction" in text
    assert "interval.TimeWindow(size=5" in text
    assert text.splitlines()[0].startswith("signed.Aggregate(keys=[auction]")
    assert "strict: ends depend on input still to come" in text.splitlines()[0]


def test_explain_physical_shows_what_distinct_remembers() -> None:
    text = memory().sql("EXPLAIN PHYSICAL SELECT DISTINCT auction FROM bid [RANGE 5]")
    assert isinstance(text, str)
    expected = (
        "interval.Distinct  weak: ends are known  remembers pending by arrival; covered by key"
    )
    assert text.splitlines()[0] == expected


def test_explain_trace_names_the_rules() -> None:
    text = memory().sql("EXPLAIN TRACE SELECT auction FROM bid [RANGE 5] WHERE price > 1")
    assert isinstance(text, str)
    assert "push_filter_through_window" in text


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("partitions", [1, 4])
def test_settings_do_not_show_in_the_answer(partitions: int, *, optimize: bool) -> None:
    session = tidemill.connect(partitions=partitions, optimize=optimize)
    session.sql(f"CREATE STREAM bid {COLUMNS} SOURCE memory('bids') ORDERED BY at")
    session.put("bids", BIDS)
    counts = query(session, "SELECT auction, COUNT(*) AS n FROM bid [ROWS 2] GROUP BY auction")
    session.run()
    assert counts.snapshot(2).rows() == [(7, 1), (8, 1)]
    assert counts.snapshot(5).rows() == [(7, 2)]


def test_a_query_does_not_speak_for_another_that_has_its_name() -> None:
    session = memory()
    first = query(session, "CREATE QUERY q AS SELECT auction FROM bid")
    session.run()
    session.sql("DROP QUERY q")
    assert first.results().height == BIDS.height
    query(session, "CREATE QUERY q AS SELECT price FROM bid")
    session.run()
    with pytest.raises(tidemill.RunError, match="another one has its name"):
        first.results()


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tidemill.PlanError, match='there is no engine "flink"'):
        tidemill.connect(engine="flink")
    with pytest.raises(tidemill.PlanError, match="at least one partition"):
        tidemill.connect(partitions=0)


def test_a_snapshot_is_of_an_instant_that_is_known() -> None:
    session = tidemill.connect()
    session.put("s", pl.DataFrame({"t": [1, 4, 9], "k": [1, 2, 3]}))
    session.sql("CREATE STREAM s (t BIGINT, k BIGINT) SOURCE memory('s') ORDERED BY t")
    query = session.sql("SELECT k FROM s [RANGE 6]")
    assert isinstance(query, tidemill.Query)
    session.run()
    assert query.snapshot().rows() == [(2,), (3,)], "of the latest row, since all is known"
    answer = session.answer(query.name)
    answer.known = Time(8)
    assert query.snapshot().rows() == [(2,)], "at 7"
    with pytest.raises(tidemill.RunError, match="known up to 8, and at 8 it can still change"):
        query.snapshot(8)
    answer.known = Time(0)
    with pytest.raises(tidemill.RunError, match="nothing is known yet"):
        query.snapshot()
