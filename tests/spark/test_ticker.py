"""Ticks: time passes in silence when it matters, and not for ever. No Spark is needed for it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import tidemill
from tidemill.catalog.entries import StreamEntry
from tidemill.errors import RunError
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.runtime.spark.driver.control import Control, Word, said
from tidemill.runtime.spark.driver.ticker import Moment, Ticker, time_matters
from tidemill.runtime.spark.state.batch_log import BatchLog, Ending

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000
SCHEMA = Schema((Field("t", BIGINT),))
SOURCE = ConnectorCall(Name("memory"))
TIMELESS = StreamEntry("u", SCHEMA, SOURCE)
ORDERED = StreamEntry("s", SCHEMA, SOURCE, time_column="t")
QUIET = StreamEntry("q", SCHEMA, SOURCE, time_column="t", idle_after=5 * SECOND)


def ticks(streams: list[StreamEntry], seconds: int, *, remembers: bool = True) -> list[float]:
    """When there are ticks, if everything came at 0."""
    found, last = [], 0
    together = frozenset({frozenset(stream.name for stream in streams)})
    for now in range(0, seconds * SECOND, SECOND // 4):
        came = dict.fromkeys((stream.name for stream in streams), 0)
        moment = Moment(now, last, came, remembers)
        if time_matters({stream.name: stream for stream in streams}, together, moment):
            found.append(now / SECOND)
            last = now
    return found


def test_while_something_is_remembered_time_passes_more_and_more_slowly() -> None:
    found = ticks([TIMELESS, ORDERED], 100)
    assert found[:4] == [1, 2, 3, 4]
    pauses = [after - before for before, after in pairwise(found)]
    assert pauses == sorted(pauses)
    assert max(pauses) == 10


def test_where_time_does_not_matter_it_does_not_pass() -> None:
    assert ticks([TIMELESS, ORDERED], 100, remembers=False) == []
    assert ticks([ORDERED], 100) == []
    assert ticks([QUIET], 100) == []


def test_a_stream_that_falls_silent_is_worth_one_tick() -> None:
    assert ticks([QUIET, ORDERED], 100) == [5]
    assert ticks([QUIET, ORDERED], 100, remembers=False) == [5]


def test_the_end_of_a_window_is_worth_a_tick_at_once() -> None:
    streams, together = {"u": TIMELESS}, frozenset({frozenset({"u"})})
    half = SECOND // 2
    for batch, now, end, is_time in [
        (1, 2, 2, True),
        (0, 1, 2, False),
        (2, 3, 2, False),
        (3, 4, 4, True),
    ]:
        moment = Moment(now * half, batch * half, {"u": 0}, remembers=True, ends={end * half})
        assert time_matters(streams, together, moment) is is_time
    nothing = Moment(SECOND // 2, 0, {"u": 0}, remembers=False, ends={SECOND // 4})
    assert not time_matters(streams, together, nothing)


def test_the_last_row_of_a_stream_leaves_each_window_of_a_plan(
    tmp_path: Path, control: Path
) -> None:
    now = [10 * SECOND]
    batch_log = BatchLog(tmp_path / "batches.jsonl", lambda: now[0])
    with tidemill.connect() as session:
        session.sql("CREATE STREAM u (t BIGINT) SOURCE memory('u')")
        queries = [
            session.query(f"SELECT COUNT(*) AS n FROM u [RANGE {size} SECONDS]") for size in (2, 5)
        ]
    ticker = Ticker(
        {"u": TIMELESS},
        frozenset({frozenset({"u"})}),
        Control(control),
        batch_log,
        clock=lambda: now[0],
        seen=lambda: ({"u": 10 * SECOND}, 1),
        plans=[query.plan for query in queries],
    )
    batch_log.begin(0)
    batch_log.end(0, Ending({}, latest={"u": 10 * SECOND}))
    ticks: list[float] = []
    while now[0] < 16 * SECOND:
        now[0] += SECOND // 10
        ticker.look()
        if len(words(control)) > len(ticks):
            ticks.append(now[0] / SECOND)
            batch_log.begin(len(ticks))
    assert {12.0, 15.0} <= set(ticks)


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "control"


def words(directory: Path) -> list[tuple[int, str]]:
    found = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    return [(word["number"], word["word"]) for word in found]


def test_a_tick_is_heard_before_there_is_another(tmp_path: Path, control: Path) -> None:
    now = [0]

    def clock() -> int:
        return now[0]

    batch_log = BatchLog(tmp_path / "batches.jsonl", clock)
    remembered: list[int | None] = [None]
    ticker = Ticker(
        {"u": TIMELESS},
        frozenset({frozenset({"u"})}),
        Control(control),
        batch_log,
        clock=clock,
        seen=lambda: ({"u": 0}, remembered[0]),
    )
    now[0] = 2 * SECOND
    ticker.look()
    assert words(control) == [], "nothing has ever come"
    batch_log.begin(0)
    remembered[0] = 3
    for seconds in (3, 4, 5):
        now[0] = seconds * SECOND
        ticker.look()
        assert words(control) == [(0, "tick")]
    batch_log.begin(1)
    now[0] = 7 * SECOND
    ticker.look()
    assert words(control) == [(0, "tick"), (1, "tick")]
    batch_log.begin(2)
    remembered[0] = 0
    now[0] = 70 * SECOND
    ticker.look()
    assert len(words(control)) == 2, "everything is settled"


def test_what_was_left_by_an_earlier_session_may_change(tmp_path: Path, control: Path) -> None:
    BatchLog(tmp_path / "batches.jsonl", lambda: SECOND).begin(0)
    now = [50 * SECOND]
    batch_log = BatchLog(tmp_path / "batches.jsonl", lambda: now[0])
    groups = frozenset({frozenset({"u"})})
    ticker = Ticker(
        {"u": TIMELESS},
        groups,
        Control(control),
        batch_log,
        clock=lambda: now[0],
        seen=lambda: ({}, None),
    )
    ticker.look()
    assert words(control) == []
    now[0] += SECOND
    ticker.look()
    assert words(control) == [(0, "tick")]


def test_a_stream_that_never_has_a_row_is_found_idle(tmp_path: Path, control: Path) -> None:
    now, came = [0], dict[str, int]()
    batch_log = BatchLog(tmp_path / "batches.jsonl", lambda: now[0])
    ticker = Ticker(
        {"s": ORDERED, "q": QUIET},
        frozenset({frozenset({"s", "q"})}),
        Control(control),
        batch_log,
        clock=lambda: now[0],
        seen=lambda: (came, 1),
    )
    now[0] = first = 3 * SECOND
    batch_log.begin(0)
    came["s"] = first
    ticks: list[int] = []
    while now[0] < 100 * SECOND:
        now[0] += SECOND // 4
        ticker.look()
        if len(words(control)) > len(ticks):
            ticks.append(now[0])
            batch_log.begin(len(ticks))
    # A partition hears of the stream in the first batch, and counts its silence from there.
    assert ticks == [first + 5 * SECOND]


def test_words_are_numbered_and_go_when_they_have_been_read(control: Path) -> None:
    stream = Control(control)
    for word in (Word.TICK, Word.TICK, Word.END):
        stream.say(word)
    stream.forget(2)
    assert words(control) == [(2, "end")]
    again = Control(control, committed=2)
    again.say(Word.TICK)
    again.forget(4)
    assert words(control) == []
    last = Control(control, committed=4)
    last.say(Word.TICK)
    assert words(control) == [(4, "tick")]
    assert [path.stat().st_mtime_ns for path in control.iterdir()] == [4_000_000]


def test_threads_that_speak_at_once_are_all_heard(control: Path) -> None:
    stream = Control(control)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(stream.say, [Word.TICK] * 80))
    assert words(control) == [(number, "tick") for number in range(80)]
    stream.forget(80)
    assert words(control) == []


def test_a_word_that_means_nothing_is_an_error() -> None:
    for word in ("stop", None):
        with pytest.raises(RunError, match="damaged: the control stream: there is no word"):
            list(said([{"number": 0, "word": word}], (2,), 1))
