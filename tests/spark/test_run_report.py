"""The report counts a batch once, however often it is delivered. No Spark is needed."""

from __future__ import annotations

import polars as pl

import tidemill
from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.engine.engine import Metrics
from tidemill.engine.ingest import Gate
from tidemill.lang.statements import ObjectKind
from tidemill.model.batch import END, START
from tidemill.model.time import END_OF_TIME
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.worker.wire import Facts, Kind, Message, figures_of, read_figures


def queries(*texts: str) -> list[QueryEntry]:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (x BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    for text in texts:
        session.sql(text)
    found = session.catalog.entries(ObjectKind.QUERY)
    return [entry for entry in found if isinstance(entry, QueryEntry)]


def gate() -> Gate:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (x BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    stream = session.catalog.find("s")
    assert isinstance(stream, StreamEntry)
    return Gate(stream)


FIRST, SECOND = "CREATE QUERY a AS SELECT x FROM s", "CREATE QUERY b AS SELECT t FROM s"
ROWS = pl.DataFrame({"x": [7], START: [1], END: [2]})
TIMES = pl.DataFrame({"t": [1], START: [1], END: [2]})
COUNTS: Facts = {"rows": 3, "files": 2, "notes": 1, "latest": 5, "refused": {"late": 1}}
MESSAGES = [
    Message.of_facts(0, Kind.REPORT, "stream s", COUNTS),
    Message.of_facts(0, Kind.REPORT, "written two", {"rows": 1}),
    Message.of_facts(0, Kind.REPORT, "written two", {"rows": 2}),
]


def test_a_batch_that_is_delivered_again_is_counted_once() -> None:
    report = RunReport()
    report.gates["s"] = gate()
    report.begin(queries(FIRST, SECOND), elsewhere=["b"])
    for batch in (0, 1, 1):
        report.take(batch, MESSAGES, {"one": [ROWS]}, {"a": "one", "b": "two"})
    progress = report.progress({}, None)
    assert progress.batches == 2
    assert [(query.name, query.rows) for query in progress.queries] == [("a", 2), ("b", 6)]
    report.refuse("s", {"late": 2}, removed=1)
    (stream,) = report.progress({}, None).streams
    assert (stream.rows, stream.refused) == (6, 2)
    assert stream.warnings == ("1 of the rows that were kept aside have gone, to make room",)
    answer = report.answer("a")
    assert answer is not None
    assert answer.rows() == 2
    assert report.answer("b") is None, "it is where its sink has put it"


def test_an_answer_is_known_as_far_as_in_all_partitions() -> None:
    report = RunReport()
    report.gates["s"] = gate()
    report.begin(queries(FIRST, SECOND), ["b"], {"a": 3, "c": 9}, resumed=["a"])
    assert [report.known(name) for name in "abc"] == [3, 0, 0]
    reports: list[Facts] = [{"one": 8, "two": 7}, {"one": 6, "two": 9}]
    known = [Message.of_facts(0, Kind.REPORT, "known", facts) for facts in reports]
    report.take(0, [*known, *MESSAGES], {}, {"a": "one", "b": "two"})
    answer = report.answer("a")
    assert answer is not None
    assert (answer.known, answer.last_read, answer.is_whole) == (6, 5, False)
    assert report.known("b") == 7


def test_a_query_that_comes_later_counts_the_batch_for_itself() -> None:
    report = RunReport()
    report.begin(queries(FIRST), elsewhere=())
    report.take(0, (), {"one": [ROWS]}, {"a": "one"})
    report.begin(queries(FIRST, SECOND), elsewhere=())
    report.take(0, (), {"one": [ROWS], "two": [TIMES]}, {"a": "one", "b": "two"})
    assert [query.rows for query in report.progress({}, None).queries] == [1, 1]


def test_a_name_that_means_another_query_begins_anew() -> None:
    report = RunReport()
    report.begin(queries(FIRST), elsewhere=())
    report.take(0, (), {"one": [ROWS]}, {"a": "one"})
    report.begin(queries(SECOND.replace("QUERY b", "QUERY a")), elsewhere=())
    answer = report.answer("a")
    assert answer is not None
    assert answer.rows() == 0


def test_figures_travel_as_they_are() -> None:
    figures = {"a": Metrics(3, 2, 0.1234567, 10, 100, END_OF_TIME), "b": Metrics()}
    message = Message.of_facts(2, Kind.REPORT, "metrics 1 2", figures_of(figures))
    assert read_figures(message.facts()) == figures
