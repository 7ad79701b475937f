"""The loop: a thread that takes the steps of a pipeline, until it is stopped.

Others have their turn between two steps: who asks is next. What goes wrong in a step ends the loop,
and is kept for those who wait for it.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Condition, Thread, get_ident
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.runtime.local.pipeline import Pipeline

__all__ = ["Loop"]

_LEAST_REST, _MOST_REST = 0.02, 0.5
"""How long it rests at least and at most, in seconds, before it looks again."""

_SHARE = 10
"""It rests so many times as long as it takes to find that there is nothing to do."""


class Loop:
    """A pipeline that takes its steps in a thread of its own.

    Args:
        pipeline: What runs.
        between: Is called after each step; says whether it has changed what runs.

    Attributes:
        error: What has ended it, if something was wrong.
    """

    def __init__(self, pipeline: Pipeline, between: Callable[[], bool]) -> None:
        self.error: BaseException | None = None
        self._pipeline = pipeline
        self._between = between
        self._turn = Condition()
        self._is_stepping = False
        self._asking = 0
        self._wanted = self._idle = 0
        self._is_stopped = False
        self._thread = Thread(target=self._run, name="tidemill-local", daemon=True)

    def start(self) -> None:
        """Take steps from now on."""
        self._thread.start()

    def refuse_callbacks(self, what: str) -> None:
        """Refuse what would wait for the end of a step from within the step.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        if self.is_in_callback():
            raise RunError(
                f"a callback cannot {what} the session that calls it",
                hint="leave a mark, and do it elsewhere",
            )

    def is_in_callback(self) -> bool:
        """Whether a function asks that gets rows."""
        return self._thread.ident == get_ident()

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Keep the loop from taking a step meanwhile.

        Raises:
            RunError: It has ended because something was wrong.
        """
        with self._turn:
            self._asking += 1
            try:
                self._turn.wait_for(lambda: not self._is_stepping)
                self.require_sound()
                yield
            finally:
                self._asking -= 1
                self._turn.notify_all()

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Files that may still be written are waited for, a little longer than they have to settle.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        began = monotonic()
        while True:
            with self._turn:
                self._await_look()
                self.require_sound()
                seconds = self._pipeline.unsettled()
                if not seconds or self._has_ended() or monotonic() - began >= 2 * seconds:
                    return
                self._turn.wait_for(self._has_ended, min(max(seconds / 4, 0.01), _MOST_REST))

    def _await_look(self) -> None:
        """Wait until it was looked for more, from now on, and there was nothing."""
        self._wanted += 1
        wanted = self._wanted
        self._turn.notify_all()
        self._turn.wait_for(lambda: self._idle >= wanted or self._has_ended())

    def require_sound(self) -> None:
        """Raise what was wrong, if something was."""
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """End at the end of a step."""
        with self._turn:
            self._is_stopped = True
            self._turn.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _has_ended(self) -> bool:
        return self._is_stopped or self.error is not None

    def _run(self) -> None:
        try:
            while (wanted := self._begin_step()) is not None:
                began = monotonic()
                has_stepped = self._pipeline.step()
                has_stepped |= self._between()
                self._end_step(None if has_stepped else wanted, monotonic() - began)
        except BaseException as error:  # noqa: BLE001 — those who wait for it are told
            with self._turn:
                self.error, self._is_stepping = error, False
                self._turn.notify_all()

    def _begin_step(self) -> int | None:
        """Let others have their turn; how often it was asked to look, ``None`` to end."""
        with self._turn:
            self._turn.wait_for(lambda: self._is_stopped or not self._asking)
            if self._is_stopped:
                return None
            self._is_stepping = True
            return self._wanted

    def _end_step(self, idle: int | None, seconds: float) -> None:
        """Note what was found, and rest if there was nothing to do.

        Args:
            idle: Up to which question all has been processed; ``None`` if there may be more.
            seconds: How long it took.
        """
        with self._turn:
            self._is_stepping = False
            self._idle = self._idle if idle is None else idle
            self._turn.notify_all()
            if idle is not None:
                rest = min(max(_SHARE * seconds, _LEAST_REST), _MOST_REST)
                self._turn.wait_for(lambda: self._is_stopped or self._wanted > self._idle, rest)
