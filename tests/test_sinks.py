"""Sinks in this process: files, the console and callbacks get the new rows of each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.connectors.check import guarantee
from tidemill.connectors.connector import Guarantee
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.runtime.answers import Answer
from tidemill.runtime.file_sink import WRITERS, FileSink
from tidemill.runtime.ownership import OWNER_FILE

if TYPE_CHECKING:
    from pathlib import Path

BIDS = pl.DataFrame({"item": ["pen", "cup", "pen"], "price": [10, 5, 15], "at": [1, 2, 6]})
STREAM = "CREATE STREAM bid (item VARCHAR, price BIGINT, at BIGINT) SOURCE {} ORDERED BY at"
TOP = "SELECT item, MAX(price) AS top FROM bid [RANGE 3] GROUP BY item"


@pytest.fixture
def session() -> tidemill.Session:
    session = tidemill.connect()
    session.put("bids", BIDS)
    session.sql(STREAM.format("memory('bids')"))
    return session


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tidemill.Session:
    """The same bids in three steps."""
    monkeypatch.setattr("tidemill.runtime.local.intake._STEP_ROWS", 1)
    (tmp_path / "in").mkdir()
    for number in range(3):
        BIDS[number : number + 1].write_parquet(tmp_path / "in" / f"{number}.parquet")
    session = tidemill.connect()
    session.sql(STREAM.format(f"parquet('{tmp_path / 'in'}')"))
    return session


class Taken:
    """A callback that keeps what it gets."""

    def __init__(self) -> None:
        self.batches: dict[int, list[pl.DataFrame]] = {}

    def __call__(self, frame: pl.DataFrame, batch: int) -> None:
        self.batches.setdefault(batch, []).append(frame)

    def frames(self) -> list[pl.DataFrame]:
        return [frame for frames in self.batches.values() for frame in frames]


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def failure(session: tidemill.Session, sink: str) -> str:
    session.sql(f"CREATE QUERY q INTO {sink} AS {TOP}")
    with pytest.raises(tidemill.RunError) as caught:
        session.run()
    return str(caught.value)


def test_all_sinks_get_the_same_rows(cut: tidemill.Session, tmp_path: Path) -> None:
    top = query(cut, TOP)
    taken = Taken()
    cut.callback("taken", taken)
    cut.sql(f"CREATE QUERY called INTO callback('taken') AS {TOP}")
    for kind in WRITERS:
        cut.sql(f"CREATE QUERY {kind}_files INTO {kind}('{tmp_path / kind}') AS {TOP}")
    cut.run()
    written = pl.read_parquet(tmp_path / "parquet/**/*.parquet", hive_partitioning=False)
    lines = pl.read_csv(tmp_path / "csv/**/*.csv")
    objects = pl.concat(pl.read_ndjson(path) for path in tmp_path.glob("json/*/*.json"))
    assert len(taken.batches) > 1, "there is more than one batch"
    for frames in ([written], [lines], [objects], taken.frames()):
        answer = Answer(top.schema)
        answer.read(frames)
        assert answer.results().rows() == top.results().rows()


def test_a_callback_gets_each_batch_that_has_rows_once(cut: tidemill.Session) -> None:
    taken = Taken()
    cut.callback("taken", taken)
    cut.sql(
        "CREATE QUERY dear INTO callback(name => 'taken') AS SELECT price FROM bid WHERE at > 1"
    )
    cut.run()
    assert {batch: [f.rows() for f in frames] for batch, frames in taken.batches.items()} == {
        1: [[(5, 2, 3)]],
        2: [[(15, 6, 7)]],
    }
    assert taken.frames()[0].columns == ["price", "start", "end"]


def test_a_callback_that_fails_stops_the_run_and_is_named(cut: tidemill.Session) -> None:
    def fail(frame: pl.DataFrame, batch: int) -> None:
        raise KeyError(f"{frame.height}\nrows in {batch}")

    cut.callback("fail", fail)
    text = failure(cut, "callback('fail')")
    assert text.startswith('callback "fail" of query "q" failed in batch 2: KeyError: ')
    assert "hint: fix the function" in text
    taken = Taken()
    cut.callback("fail", taken)
    cut.run()
    assert min(taken.batches) == 2, "a run begins at the beginning, with the same numbers"


def test_a_callback_that_is_not_there_is_found_before_anything_is_read() -> None:
    session = tidemill.connect()
    session.callback("store", Taken())
    session.sql(STREAM.format("parquet('nothing')"))
    text = failure(session, "callback('stroe')")
    assert 'there is no callback "stroe", which query "q" is to call' in text
    assert 'did you mean "store"?' in text


def test_a_callback_can_stop_the_session(cut: tidemill.Session) -> None:
    cut.callback("stop", lambda _frame, _batch: cut.stop())
    all_ = query(cut, "CREATE QUERY q INTO callback('stop') AS SELECT price FROM bid")
    cut.run()
    assert all_.results()["price"].to_list() == [10]


def test_the_console_shows_the_new_rows_of_each_batch(
    cut: tidemill.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    cut.sql("CREATE QUERY all_ INTO console() AS SELECT item, price FROM bid WHERE at < 6")
    cut.run()
    assert capsys.readouterr().out == (
        "all_, batch 0\n"
        "item  price  start  end\n"
        "----  -----  -----  ---\n"
        "pen      10      1    2\n"
        "all_, batch 1\n"
        "item  price  start  end\n"
        "----  -----  -----  ---\n"
        "cup       5      2    3\n"
    )


def test_the_console_says_how_many_rows_it_leaves_out(
    session: tidemill.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.sql("CREATE QUERY q INTO console(rows => 1) AS SELECT item FROM bid")
    session.run()
    assert capsys.readouterr().out.splitlines()[3:] == ["pen       1    2", "… and 2 more rows"]


def test_a_time_column_gets_a_name_that_is_free(session: tidemill.Session) -> None:
    renamed = query(session, 'SELECT at AS "Start", at AS start_, price AS "end" FROM bid')
    session.run()
    assert renamed.results().columns == ["Start", "start_", "end", "start__", "end_"]


def test_a_callback_that_is_to_be_registered_is_named(session: tidemill.Session) -> None:
    assert "register it with session.callback('a', function)" in failure(session, "callback('a')")


def test_two_queries_do_not_write_to_one_place(session: tidemill.Session, tmp_path: Path) -> None:
    session.sql(f"CREATE QUERY p INTO csv('{tmp_path / 'out'}') AS {TOP}")
    text = failure(session, f"parquet('{tmp_path / 'in' / '..' / 'out'}')")
    assert 'queries "p" and "q" write to the same place' in text


@pytest.mark.parametrize("places", [("out", "out/batch=00000001"), ("out/more/inner", "out")])
def test_no_query_writes_into_the_place_of_another(
    session: tidemill.Session, tmp_path: Path, places: tuple[str, str]
) -> None:
    one, other = (tmp_path / place for place in places)
    session.sql(f"CREATE QUERY p INTO csv('{one}') AS {TOP}")
    text = failure(session, f"parquet('{other}')")
    assert 'queries "p" and "q" write to places of which one is inside the other' in text
    assert not (tmp_path / "out").exists(), "nothing was taken"
    session.sql(f"DROP QUERY q; CREATE QUERY q INTO csv('{tmp_path / 'outer'}') AS {TOP}")
    session.run()


def test_a_directory_that_cannot_be_written_is_named(
    session: tidemill.Session, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    text = failure(session, f"parquet('{tmp_path / 'file' / 'out'}')")
    assert 'the sink of "q" cannot be written' in text
    assert "hint: choose a directory that can be written to" in text
    session.sql("DROP QUERY q")
    assert "is a file" in failure(session, f"parquet('{tmp_path / 'file'}')")
    session.sql("DROP QUERY q")
    assert "holds files of others" in failure(session, f"parquet('{tmp_path}')")


def test_a_directory_that_breaks_meanwhile_stops_the_run(
    cut: tidemill.Session, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    cut.callback("break", lambda _frame, _batch: (out / "batch=00000002").write_text("in the way"))
    cut.sql("CREATE QUERY p INTO callback('break') AS SELECT price FROM bid WHERE at = 1")
    text = failure(cut, f"parquet('{out}')")
    assert 'the sink of "q" cannot be written' in text
    assert "nothing is lost" in text


def test_every_sink_says_what_it_guarantees() -> None:
    session = tidemill.connect(engine="spark")
    session.sql(STREAM.format("memory('bids')"))
    for number, sink in enumerate(
        ["csv('a')", "console()", "memory()", "callback('c')", "orc('b')"]
    ):
        session.sql(f"CREATE QUERY q{number} INTO {sink} AS {TOP}")
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    assert shown["guarantee"].to_list() == [
        "exactly once",
        "at least once",
        "in this session",
        "at least once",
        "at least once",
    ]


@pytest.mark.parametrize("kind", WRITERS)
def test_files_are_written_exactly_once(kind: str) -> None:
    assert guarantee(ConnectorCall(Name(kind.upper()))) is Guarantee.EXACTLY_ONCE


@pytest.mark.parametrize("trigger", [-1, float("nan"), float("inf")])
def test_a_trigger_is_a_number_of_seconds(trigger: float) -> None:
    with pytest.raises(tidemill.PlanError, match="trigger must be a number of seconds"):
        tidemill.connect(trigger=trigger)


def test_a_link_in_the_place_of_a_batch_is_not_followed(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    for place in (victim, out):
        place.mkdir()
    (victim / "part-00000.csv").write_text("of somebody else")
    sink = FileSink("q", "csv", str(out), Schema((Field("price", BIGINT),))).owned_by("p", 0)
    sink.claim()
    for target in (victim, tmp_path / "nothing"):
        (out / "batch=00000000").symlink_to(target)
        with pytest.raises(tidemill.RunError, match="cannot be written"):
            sink.clear(0)
        (out / "batch=00000000").unlink()
    (out / "batch=00000000").mkdir()
    (out / "batch=00000000" / "link").symlink_to(victim)
    sink.clear(0)
    assert [path.name for path in out.iterdir()] == [OWNER_FILE]
    assert (victim / "part-00000.csv").read_text() == "of somebody else"
