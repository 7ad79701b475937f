"""Rates are means over the last seconds; lags are measured from the stream that is furthest."""

from __future__ import annotations

from tidemill.cli.meter import Meter, averaged, lags
from tidemill.cli.view import line
from tidemill.model.time import END_OF_TIME
from tidemill.runtime.progress import Progress, QueryProgress, StreamProgress


def progress(rows: int, *, state: int = 0) -> Progress:
    stream = StreamProgress("bid", rows, 0, 7)
    return Progress(1, (stream,), (QueryProgress("q", rows // 2),), state, 10 * state)


def test_there_is_no_rate_at_first() -> None:
    assert Meter().read(progress(10), 0.5).stream_rates == {"bid": 0.0}


def test_a_rate_is_rows_in_a_second() -> None:
    meter = Meter()
    meter.read(progress(0), 0)
    reading = meter.read(progress(100), 2)
    assert reading.stream_rates == {"bid": 50.0}
    assert reading.query_rates == {"q": 25.0}


def test_what_is_long_ago_does_not_count() -> None:
    meter = Meter()
    for second in range(20):
        meter.read(progress(1000), second)
    assert meter.read(progress(1000), 20).stream_rates == {"bid": 0.0}
    assert averaged(meter.read(progress(1050), 21)).stream_rates == {"bid": 50.0}


def test_a_job_that_begins_again_has_no_negative_rate() -> None:
    meter = Meter()
    meter.read(progress(100), 0)
    assert meter.read(progress(0), 1).stream_rates == {"bid": 0.0}


def test_the_most_state_is_kept() -> None:
    meter = Meter()
    meter.read(progress(0, state=5), 0)
    assert meter.read(progress(0, state=2), 1).most_state == (5, 50)


def test_a_stream_lags_behind_the_one_that_is_furthest() -> None:
    found = Progress(
        1,
        (
            StreamProgress("a", 1, 0, 100),
            StreamProgress("b", 1, 0, 40),
            StreamProgress("over", 1, 0, END_OF_TIME),
            StreamProgress("silent", 0, 0, None),
        ),
        (),
        0,
        0,
    )
    assert lags(found) == {"a": 0, "b": 60, "over": None, "silent": None}


def test_a_line_has_everything() -> None:
    late = Progress(2, (StreamProgress("bid", 1500, 3, 9),), (QueryProgress("q", 7),), 12, 3400)
    assert line(Meter().read(late, 1.0)) == (
        "2 batches · state 12 rows, 3.4 kB (at most 12 rows, 3.4 kB) · 1.0 s"
        " | in: bid 1,500 (0/s) up to 9, 3 late | out: q 7"
    )
