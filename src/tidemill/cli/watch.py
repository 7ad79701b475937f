"""Watching a job: it runs in a thread of its own, this one has the terminal and Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass
from signal import SIGINT, getsignal, signal
from threading import Event, Thread, current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rich.live import Live
from rich.text import Text

from tidemill.cli.meter import Meter
from tidemill.cli.terminal import can_redraw, error_console
from tidemill.cli.view import line, starting_text, whole_view
from tidemill.engine.pool import looking_on
from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from tidemill.cli.excerpt import Excerpt
    from tidemill.cli.meter import Reading
    from tidemill.runtime.progress import Progress

__all__ = ["Answers", "Outcome", "Runnable", "watch"]

_POLL = 0.25
"""How often to look, in seconds."""

_LINE_EVERY = 3.0
"""How often a line is written where there is no terminal, in seconds."""

_PATIENCE = 5.0
"""How long to wait for the end of a batch after Ctrl-C, in seconds, before asking again."""

_ATTEMPTS = 6
"""How often to ask a job to stop."""


class Runnable(Protocol):
    """What can be run and watched: a session."""

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold."""
        ...

    def start(self) -> None:
        """Process what comes."""
        ...

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed."""
        ...

    def progress(self) -> Progress:
        """How far it has come."""
        ...

    def stop(self) -> None:
        """Stop at the end of a batch."""
        ...


class Answers(Protocol):
    """What has the answers of the queries that run."""

    @property
    def places(self) -> Mapping[str, str]:
        """Where the answer of each query goes."""
        ...

    def look(self, progress: Progress) -> list[Excerpt]:
        """What is known of the answers."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    Attributes:
        reading: How far it had come; ``None`` if it never began.
        stopped: Whether Ctrl-C ended it.
    """

    reading: Reading | None
    stopped: bool


def watch(  # noqa: PLR0913 — what is watched, where, and for how long
    session: Runnable,
    console: Console,
    *,
    answers: Answers | None = None,
    forever: bool = False,
    end: bool | None = None,
    clock: Callable[[], float] = monotonic,
) -> Outcome:
    """Run all queries of a session and show how far they come, until they end or Ctrl-C.

    Args:
        session: What is run.
        console: Where it is shown.
        answers: What is shown of the answers, where the terminal can be redrawn.
        forever: Whether to go on until Ctrl-C.
        end: Whether the streams end when everything has been read.
        clock: What time it is, in seconds.

    Raises:
        TidemillError: The run failed.
    """
    worker = _Worker(session, forever=forever, end=end)
    display = _Display(session, console, answers, clock)
    _take_interrupts()
    with looking_on():
        worker.start()
        try:
            with display.live:
                while not worker.has_ended.is_set():
                    worker.has_ended.wait(_POLL)
                    display.show()
        except KeyboardInterrupt:
            worker.is_stopping.set()
            console.print("stopping at the end of the batch …")
            _stop(session, worker)
            return Outcome(display.read(), stopped=True)
    if worker.error is not None:
        raise worker.error
    return Outcome(display.read(), stopped=False)


def _take_interrupts() -> None:
    """Let Ctrl-C come here: Polars would take it, and break off what it computes."""
    handler = getsignal(SIGINT)
    if current_thread() is main_thread() and handler is not None:
        signal(SIGINT, handler)


def _stop(session: Runnable, worker: _Worker) -> None:
    """Stop the session; what was only about to begin is asked again when it may have begun."""
    for _ in range(_ATTEMPTS):
        session.stop()
        if worker.has_ended.wait(_PATIENCE):
            return


class _Worker(Thread):
    """Runs the session. Spark leaves Ctrl-C alone if it is started in a thread like this.

    To wait for its end, wait for ``has_ended``: a thread whose ``join`` is interrupted passes for
    ended.
    """

    def __init__(self, session: Runnable, *, forever: bool, end: bool | None) -> None:
        super().__init__(name="tidemill-run", daemon=True)
        self.session = session
        self.forever = forever
        self.end = end
        self.is_stopping = Event()
        self.has_ended = Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            if not self.forever:
                self.session.run(end=self.end)
                return
            self.session.start()
            while not self.is_stopping.wait(_POLL):
                self.session.await_idle()
        except BaseException as error:  # noqa: BLE001 — the main thread raises it
            # What breaks because the session was stopped under it is no news.
            if not self.is_stopping.is_set():
                self.error = error
        finally:
            self.has_ended.set()


class _Display:
    """Shows how far a session has come, as a terminal or a file can."""

    def __init__(
        self,
        session: Runnable,
        console: Console,
        answers: Answers | None,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._console = console
        self._answers = answers
        self._clock = clock
        self._begin = self._written = clock()
        self._meter = Meter()
        self._is_said = False
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def read(self) -> Reading | None:
        """How far it has come, if it has begun."""
        try:
            progress = self._session.progress()
        except RunError:
            return None
        return self._meter.read(progress, self._clock() - self._begin)

    def show(self) -> None:
        """Show it, now or when it is time for a line."""
        if (reading := self.read()) is None:
            return
        if can_redraw(self._console):
            self._redraw(reading)
        elif reading.progress.starting:
            self._say_that_it_starts()
        elif self._clock() - self._written >= _LINE_EVERY:
            self._written = self._clock()
            self._console.print(line(reading), soft_wrap=True)

    def _redraw(self, reading: Reading) -> None:
        if reading.progress.starting:
            self.live.update(Text(starting_text(reading.seconds), style="dim"), refresh=True)
            return
        looked = [] if self._answers is None else self._answers.look(reading.progress)
        places = {} if self._answers is None else self._answers.places
        view = whole_view(reading, looked, places, size=self._console.options)
        self.live.update(view, refresh=True)

    def _say_that_it_starts(self) -> None:
        """Say it once, to people only: what they have asked for goes elsewhere."""
        errors = error_console()
        if errors.is_terminal and not self._is_said:
            errors.print("starting Spark …", style="dim")
        self._is_said = True
