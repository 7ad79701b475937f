"""Sinks on Spark: all of them get the same rows, and what fails is delivered again."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tidemill
from spark.deployments import deployed_with
from spark.on_spark import MASTER, write_files
from tidemill.catalog.entries import QueryEntry
from tidemill.lang.statements import ObjectKind
from tidemill.model.batch import END, START, Form
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT
from tidemill.runtime.answers import Answer
from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.quarantine import Quarantine
from tidemill.runtime.sinks import FormatSink
from tidemill.runtime.spark.driver.cluster import open_cluster
from tidemill.runtime.spark.driver.delivery import Delivery
from tidemill.runtime.spark.driver.replaying import SparkArchives
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.io.formats import append_to_format
from tidemill.runtime.spark.state.batch_log import BatchLog
from tidemill.runtime.spark.state.deployments import Deployments
from tidemill.runtime.spark.state.flush import SparkFiles
from tidemill.runtime.spark.worker.wire import COLUMNS, Kind, Message, to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from tidemill.runtime.sinks import Sink

pytestmark = pytest.mark.spark

TIMES = list(range(30))
ROWS = pl.DataFrame({"k": [t % 3 for t in TIMES], "v": [t * 7 % 10 for t in TIMES], "t": TIMES})
TOTAL = """
    SELECT k, SUM(v) AS total, CAST(SUM(v) AS DECIMAL(12, 2)) AS exact, AVG(v) AS mean, k > 1 AS b,
      CAST(k AS VARCHAR) AS name, CAST(k AS INTEGER) AS i, NULL AS nothing,
      DATE '2026-03-01' AS day, TIMESTAMP '2026-03-01 12:00:00.000001' AS moment
    FROM s [RANGE 15] GROUP BY k
"""


class Calls:
    """A callback that keeps what it gets, and fails where it is told to."""

    def __init__(self, failing: int | None = None) -> None:
        self.batches: list[tuple[int, pl.DataFrame]] = []
        self.failing = failing

    def __call__(self, frame: pl.DataFrame, batch: int) -> None:
        self.batches.append((batch, frame))
        if batch == self.failing:
            raise ValueError("the shop is closed")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_files(tmp_path / "in", ROWS, 10)


def stream(source: Path) -> str:
    return f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{source}') ORDERED BY t"


def on_spark(source: Path, checkpoint: Path | None = None) -> tidemill.Session:
    session = tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint)
    session.sql(stream(source))
    return session


def expected(source: Path) -> pl.DataFrame:
    with tidemill.connect() as session:
        session.sql(stream(source))
        total = session.sql(TOTAL)
        assert isinstance(total, tidemill.Query)
        session.run()
        return total.results()


def whole(
    query: tidemill.Query, frames: Iterable[pl.DataFrame], form: Form = Form.INTERVAL
) -> pl.DataFrame:
    """An answer that came in parts."""
    answer = Answer(query.schema)
    answer.read(frames, form)
    return answer.results()


def orc_rows(directory: Path) -> pl.DataFrame:
    rows = pl.from_arrow(SparkSession.active().read.orc(str(directory)).toArrow())
    assert isinstance(rows, pl.DataFrame)
    return rows


def registered(session: tidemill.Session, name: str, sink: str) -> tidemill.Query:
    query = session.sql(f"CREATE QUERY {name} {sink} AS {TOTAL}")
    assert isinstance(query, tidemill.Query)
    return query


def failure(session: tidemill.Session, sink: str) -> str:
    registered(session, "q", f"INTO {sink}")
    with pytest.raises(tidemill.RunError) as caught:
        session.run()
    return str(caught.value)


def test_all_sinks_of_a_pipeline_get_the_same_rows(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, calls, refused = on_spark(source), Calls(), set[str]()

    def stop(_frame: pl.DataFrame, _batch: int) -> None:
        with pytest.raises(tidemill.RunError) as caught:
            session.stop()
        refused.add(caught.value.message)

    session.callback("calls", calls)
    session.callback("stop", stop)
    memory = registered(session, "kept", "")
    files = registered(session, "files", f"INTO parquet('{tmp_path / 'files'}')")
    registered(session, "lines", f"INTO csv('{tmp_path / 'csv'}')")
    registered(session, "columns", f"INTO orc('{tmp_path / 'orc'}', compression => 'zlib')")
    registered(session, "called", "INTO callback('calls')")
    registered(session, "stopped", "INTO callback('stop')")
    shown = registered(session, "shown", "INTO console(rows => 3)")
    session.run()

    rows = expected(source)
    assert memory.results().equals(rows)
    assert files.results().equals(rows)
    assert whole(memory, [orc_rows(tmp_path / "orc")]).equals(rows)
    assert whole(memory, [frame for _, frame in calls.batches]).equals(rows)
    assert sorted({batch for batch, _ in calls.batches}) == [batch for batch, _ in calls.batches]
    lines = pl.read_csv(tmp_path / "csv/**/*.csv", schema=rows.schema)
    assert whole(memory, [lines]).equals(rows)

    counts = {query.name: query.rows for query in session.progress().queries}
    assert counts.pop(memory.name) == memory.changes().height, "it is computed in signed form"
    assert set(counts.values()) == {sum(frame.height for _, frame in calls.batches)}
    assert refused == {"a callback cannot stop the session that calls it"}
    printed = capsys.readouterr().out
    for batch, frame in calls.batches:
        assert f"shown, batch {batch}\n" in printed
        assert frame.height <= 3 or f"… and {frame.height - 3} more row" in printed
    with pytest.raises(tidemill.RunError, match="goes to its sink and is not kept"):
        shown.results()


def test_sinks_of_a_pipeline_get_changes(source: Path, tmp_path: Path) -> None:
    session, calls = on_spark(source), Calls()
    session.callback("calls", calls)
    changes = "form => 'changes'"
    files = registered(session, "files", f"INTO parquet('{tmp_path / 'files'}', {changes})")
    registered(session, "columns", f"INTO orc('{tmp_path / 'orc'}', {changes})")
    # These know their ends, and are not withdrawn ahead of time.
    session.sql(
        f"CREATE QUERY called INTO callback('calls', {changes}) AS SELECT k, v FROM s [RANGE 12]"
    )
    last = session.sql(
        f"CREATE QUERY last INTO parquet('{tmp_path / 'last'}', {changes}) AS"
        " SELECT v FROM s [ROWS 2]"
    )
    assert isinstance(last, tidemill.Query)
    session.run()

    rows = expected(source)
    assert files.results().equals(rows)
    assert whole(files, [orc_rows(tmp_path / "orc")], Form.SIGNED).equals(rows)
    assert orc_rows(tmp_path / "orc").schema["sign"] == pl.Int32
    came = [row for _, frame in calls.batches for row in frame.rows()]
    begun = [(t % 3, t * 7 % 10, t, 1) for t in TIMES]
    ended = [(k, v, t + 12, -1) for k, v, t, _ in begun]
    assert sorted(came) == sorted(begun + ended)
    assert came == sorted(came, key=lambda row: (row[2], row[3])), "from batch to batch"
    assert [batch for batch, _ in calls.batches] == sorted({batch for batch, _ in calls.batches})
    assert len(calls.batches) > 1, "there is more than one batch"
    # What has not been withdrawn stays for ever, now that the stream has ended.
    assert last.results().filter(pl.col("end") == END_OF_TIME)["v"].to_list() == [
        28 * 7 % 10,
        29 * 7 % 10,
    ]


def test_what_fails_in_a_batch_is_delivered_again_and_nothing_is_doubled(
    source: Path, tmp_path: Path
) -> None:
    def session_with(calls: Calls) -> tuple[tidemill.Session, tidemill.Query]:
        session = on_spark(source, tmp_path / "state")
        session.callback("calls", calls)
        registered(session, "called", "INTO callback('calls')")
        registered(session, "columns", f"INTO orc('{tmp_path / 'orc'}')")
        return session, registered(session, "files", f"INTO parquet('{tmp_path / 'files'}')")

    before = Calls(failing=1)
    session, _ = session_with(before)
    with pytest.raises(tidemill.RunError) as caught:
        session.run()
    assert caught.value.message == (
        'callback "calls" of query "called" failed in batch 1: ValueError: the shop is closed'
    )
    assert isinstance(caught.value.__cause__, ValueError)

    # The files of the batch that failed are there already; now one of them is in the way.
    broken = tmp_path / "files" / "batch=00000002"
    broken.write_text("in the way")
    between = Calls()
    session, _ = session_with(between)
    with pytest.raises(tidemill.RunError, match='the sink of "files" cannot be written'):
        session.run()
    broken.unlink()

    after = Calls()
    session, files = session_with(after)
    session.run(end=True)
    (failed, frame), (number, again) = before.batches[-1], between.batches[0]
    assert (failed, number) == (1, 1)
    assert frame.equals(again)
    rows = expected(source)
    assert files.results().equals(rows)
    seen = [frame for _, frame in [*before.batches[:-1], *between.batches, *after.batches]]
    assert whole(files, seen).equals(rows)
    assert whole(files, [orc_rows(tmp_path / "orc")]).equals(rows)


def test_a_sink_that_cannot_be_is_found_before_anything_runs(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    text = failure(on_spark(source), f"parquet('{tmp_path / 'file' / 'out'}')")
    assert 'the sink of "q" cannot be written' in text
    text = failure(on_spark(source), "spark('parqet', 'x')")
    assert 'there is no format "parqet", to which "q" is to write' in text
    assert 'did you mean "parquet"?' in text
    text = failure(on_spark(source), "callback('nobody')")
    assert 'there is no callback "nobody", which query "q" is to call' in text


SCHEMA = Schema((Field("x", BIGINT),))


def batch_with_one_row() -> DataFrame:
    """The results of a batch as Spark has them, on the channel ``answer``."""
    rows = pl.DataFrame({"x": [1], START: [1], END: [2]})
    messages = to_arrow([Message.of_rows(0, Kind.ANSWER, "answer", rows)])
    spark = open_cluster(MASTER, "2g").spark
    return spark.createDataFrame(pa.Table.from_batches([messages])).coalesce(1)


def test_what_spark_says_about_a_sink_is_told() -> None:
    sink = FormatSink("q", SCHEMA, "jdbc", "", {"dbtable": "t"})
    with pytest.raises(tidemill.RunError, match=r"cannot be written as jdbc: .*Option 'url' is"):
        append_to_format(batch_with_one_row(), "answer", sink)


def test_what_spark_says_about_a_sink_has_no_secrets() -> None:
    url = "jdbc:nothing://ann:moonlight@host/x?password=sunlight"
    sink = FormatSink("q", SCHEMA, "jdbc", "", {"dbtable": "t", "url": url, "driver": "starlight",
                                                "api_token": "starlight"})  # fmt: skip
    with pytest.raises(tidemill.RunError, match="cannot be written as jdbc") as caught:
        append_to_format(batch_with_one_row(), "answer", sink)
    told = "".join(traceback.format_exception(caught.value, chain=True))
    assert not any(secret in told for secret in ("moonlight", "sunlight", "starlight"))
    assert "moonlight" not in repr(sink)


@pytest.mark.parametrize("formats", [0, 2])
def test_results_are_computed_once_and_persisted_only_for_formats(
    formats: int, tmp_path: Path
) -> None:
    path = str(tmp_path / "passes")

    def noting(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with open(path, "a") as passes:  # noqa: PTH123 — workers know no more than this function
            passes.write("computed\n")
        yield from batches

    results = batch_with_one_row().mapInArrow(noting, COLUMNS)
    cached: list[bool] = []
    called = CallbackSink("c", SCHEMA, "f", lambda _frame, _batch: cached.append(results.is_cached))
    sinks: dict[str, Sink] = {
        str(number): FormatSink(str(number), SCHEMA, "noop", "", {}) for number in range(formats)
    }
    sinks["c"] = called
    report = RunReport()
    with tidemill.connect() as session:
        session.sql("CREATE STREAM s (x BIGINT) SOURCE memory('s')")
        for name in sinks:
            session.sql(f'CREATE QUERY "{name}" AS SELECT x FROM s')
        entries = list(session.catalog.entries(ObjectKind.QUERY))
    report.begin([entry for entry in entries if isinstance(entry, QueryEntry)], sinks)
    batch_log = BatchLog(tmp_path / "batches.jsonl")
    spark_files = SparkFiles(tmp_path / "spark")
    deliver = Delivery(
        deployed_with(dict.fromkeys(sinks, "answer"), sinks),
        Deployments(str(tmp_path / "deployments"), str(tmp_path)),
        report,
        batch_log,
        spark_files=spark_files,
        archives=SparkArchives(),
        quarantine=Quarantine(tmp_path / "quarantine"),
        forget=lambda _: None,
    )
    deliver(results, 0)
    assert Path(path).read_text(encoding="utf-8") == "computed\n"
    assert cached == [formats > 0]
    assert not results.is_cached
    assert {query.rows for query in report.progress({}, None).queries} == {1}
