"""Watching a job: it is polled while it runs, Ctrl-C stops it, and its error is raised here."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, ClassVar

import pytest
from rich.console import Console

from tidemill.cli.excerpt import Excerpt
from tidemill.cli.watch import watch
from tidemill.errors import RunError
from tidemill.runtime.progress import Progress, QueryProgress, StreamProgress

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Job:
    """A session that runs until it has been looked at, or stopped, often enough."""

    looks: int = 2
    on_look: Callable[[int], None] = lambda _: None
    error: Exception | None = None
    begun: bool = True
    starting: int = 0
    calls: list[str] = field(default_factory=list)
    seen: int = 0
    done: Event = field(default_factory=Event)

    def run(self, *, end: bool | None = None) -> None:
        self.calls.append("run" if end is None else f"run {end=}")
        assert self.done.wait(20)
        if self.error is not None:
            raise self.error

    def start(self) -> None:
        self.calls.append("start")

    def await_idle(self) -> None:
        self.calls.append("await_idle")
        if self.error is not None:
            raise self.error

    def progress(self) -> Progress:
        self.seen += 1
        if self.seen >= self.looks:
            self.done.set()
        if not self.begun:
            raise RunError("nothing has been run yet")
        self.on_look(self.seen)
        stream = StreamProgress("bid", 100 * self.seen, 0, self.seen)
        starting = self.seen <= self.starting
        queries = (QueryProgress("q", self.seen),)
        return Progress(self.seen, (stream,), queries, 3, 4, starting=starting)

    def stop(self) -> None:
        self.calls.append("stop")
        self.error = RuntimeError("stopped under it")
        self.done.set()


def interrupt(look: int) -> None:
    if look == 2:
        raise KeyboardInterrupt


def plain() -> Console:
    return Console(file=StringIO(), width=200)


def written(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_job_is_looked_at_until_it_ends() -> None:
    job = Job(looks=3)
    outcome = watch(job, plain())
    assert not outcome.stopped
    assert outcome.reading is not None
    assert outcome.reading.progress.streams[0].rows >= 300
    assert job.calls == ["run"]


def test_without_a_terminal_there_is_a_line_every_few_seconds() -> None:
    console, seconds = plain(), count()
    watch(Job(looks=5), console, clock=lambda: float(next(seconds)))
    lines = written(console).splitlines()
    assert 1 <= len(lines) <= 5
    assert all("in: bid" in line and "out: q" in line for line in lines)


def test_a_terminal_shows_tables() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100, _environ={})
    watch(Job(), console)
    assert "watermark" in written(console)
    assert "rows out" in written(console)


class Answers:
    """Knows one answer."""

    places: ClassVar = {"q": "memory"}

    def look(self, progress: Progress) -> list[Excerpt]:
        return [Excerpt(f"q at {progress.batches}: 1 row", ("item",), (("pen",),))]


def test_a_terminal_shows_answers() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80, height=24, _environ={})
    watch(Job(), console, answers=Answers())
    shown = re.sub(r"\x1b\[[\d;]*m", "", written(console))
    assert re.search(r"q at \d+: 1 row\s+item\s+pen", shown)
    assert "memory" in shown


def test_a_terminal_says_that_spark_starts_until_it_has_started() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80, _environ={})
    watch(Job(looks=2, starting=1), console)
    before, _, after = written(console).partition("watermark")
    assert "starting Spark …" in before
    assert "starting Spark …" not in after


def test_a_file_is_not_told_that_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    console = plain()
    watch(Job(looks=2, starting=9), console)
    assert written(console) == ""
    assert capsys.readouterr() == ("", "")


def test_without_colours_there_are_none() -> None:
    console = Console(
        file=StringIO(), force_terminal=True, width=80, _environ={"NO_COLOR": "1", "TERM": "xterm"}
    )
    watch(Job(), console, answers=Answers())
    assert not re.search(r"\x1b\[[\d;]*[349]\d", written(console))


def test_a_terminal_that_cannot_redraw_gets_lines() -> None:
    seconds = count()
    console = Console(file=StringIO(), force_terminal=True, width=80, _environ={"TERM": "dumb"})
    watch(Job(looks=4), console, answers=Answers(), clock=lambda: float(next(seconds)))
    lines = written(console).splitlines()
    assert lines
    assert all("in: bid" in line and "\x1b" not in line for line in lines)


def test_ctrl_c_stops_the_job_and_hides_what_breaks_by_that() -> None:
    job, console = Job(looks=10_000, on_look=interrupt), plain()
    outcome = watch(job, console)
    assert outcome.stopped
    assert job.calls == ["run", "stop"]
    assert outcome.reading is not None
    assert "stopping at the end of the batch" in written(console)


def test_a_job_that_does_not_stop_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.cli.watch._PATIENCE", 0.01)
    job = Job(looks=10_000, on_look=interrupt)
    really, asked = job.stop, count(1)
    monkeypatch.setattr(job, "stop", lambda: really() if next(asked) == 3 else None)
    assert watch(job, plain()).stopped
    assert job.done.is_set()


def test_a_job_that_runs_for_ever_is_started_and_ends_with_ctrl_c() -> None:
    job = Job(looks=10_000, on_look=lambda look: interrupt(look - 1))
    assert watch(job, plain(), forever=True).stopped
    assert job.calls[0] == "start"
    assert "run" not in job.calls
    assert job.calls.count("stop") == 1


def test_whether_the_streams_end_is_handed_on() -> None:
    job = Job()
    watch(job, plain(), end=False)
    assert job.calls == ["run end=False"]


def test_warnings_about_files_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    warned = StreamProgress("bid", 1, 0, 1, warnings=('file "x" has changed',))
    for console in (plain(), Console(file=StringIO(), force_terminal=True, width=100, _environ={})):
        job, seconds = Job(looks=5), count()
        monkeypatch.setattr(job, "progress", _after(job.progress, warned))
        watch(job, console, clock=lambda: float(next(seconds)))  # noqa: B023 — called in the loop
        assert 'file "x" has changed' in written(console)


def _after(progress: Callable[[], Progress], stream: StreamProgress) -> Callable[[], Progress]:
    return lambda: replace(progress(), streams=(stream,))


def test_an_error_of_the_job_is_raised() -> None:
    with pytest.raises(RunError, match="broken"):
        watch(Job(error=RunError("broken")), plain())


def test_a_job_that_breaks_while_it_runs_for_ever_ends() -> None:
    with pytest.raises(RunError, match="broken"):
        watch(Job(error=RunError("broken")), plain(), forever=True)


def test_a_job_that_has_not_begun_shows_nothing() -> None:
    job, console = Job(begun=False), plain()
    assert watch(job, console).reading is None
    assert written(console) == ""


INTERRUPTED = """
import os, signal, threading, time
from io import StringIO
import polars as pl
from rich.console import Console
from tidemill.cli.watch import watch
from tidemill.engine.pool import in_pool
from tidemill.errors import RunError

rows, seen = pl.DataFrame({"a": range(500)}), []

class Job:
    @in_pool
    def run(self, end):
        seen.append(threading.get_ident())
        until = time.monotonic() + 1
        soon = time.monotonic() + 0.3
        while time.monotonic() < until:
            rows.join(rows, on="a")
            if time.monotonic() > soon and len(seen) == 1:
                seen.append("interrupted")
                os.kill(os.getpid(), signal.SIGINT)
        seen.append("the batch is done")

    def progress(self):
        raise RunError("it has not begun")

    def stop(self):
        seen.append("stop")

outcome = watch(Job(), Console(file=StringIO()))
assert outcome.stopped
assert seen[1:] == ["interrupted", "stop", "the batch is done"], seen
"""


def test_ctrl_c_does_not_break_the_batch() -> None:
    run = subprocess.run(  # noqa: S603 — a text of this file
        [sys.executable, "-c", INTERRUPTED],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
