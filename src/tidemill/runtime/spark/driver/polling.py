"""The source poller: looks for new files of the streams, while the pipeline runs."""

from __future__ import annotations

from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.runtime.spark.io.file_log import FileLog

__all__ = ["SourcePoller"]

_LEAST_WAIT = 0.5
"""A directory is not listed more often than this, in seconds, unless a caller waits for it."""


class SourcePoller:
    """The file logs of the streams.

    Args:
        file_logs: The file logs, by stream.

    Attributes:
        error: Why watching has ended, if something was wrong.
    """

    def __init__(self, file_logs: Mapping[str, FileLog]) -> None:
        self.file_logs = file_logs
        self.error: RunError | None = None
        self._turn = Lock()
        self._ended = Event()

    def look(self) -> None:
        """Take in the files that are new.

        Raises:
            RunError: The place of a stream is not there.
        """
        with self._turn:
            if not self._ended.is_set():
                for file_log in self.file_logs.values():
                    file_log.look()

    def await_settled(self) -> tuple[str, str] | None:
        """Wait for files that are there and may still be written, a little longer than they settle.

        Returns:
            A stream and a file of it that is still being written, if there is one.

        Raises:
            RunError: The place of a stream is not there.
        """
        self.look()
        slowest = max((file_log.settle for file_log in self.file_logs.values()), default=0.0)
        end = monotonic() + 2 * slowest
        while (found := self._unsettled()) and monotonic() < end:
            if self._ended.wait(min(max(slowest / 4, _LEAST_WAIT / 50), _LEAST_WAIT)):
                return None
            self.look()
        return found

    def _unsettled(self) -> tuple[str, str] | None:
        waiting = (
            (name, file_log.waiting[0])
            for name, file_log in self.file_logs.items()
            if file_log.waiting
        )
        return next(waiting, None)

    def forget(self, committed: Mapping[str, int]) -> None:
        """Remove what Spark does not read again: it has read so many files of each stream."""
        for name, file_log in self.file_logs.items():
            file_log.forget(committed.get(name, 0))

    def start(self, every: float, failed: Callable[[], None]) -> None:
        """Look again and again, until it is closed.

        Args:
            every: How often, in seconds.
            failed: What is done if something is wrong.
        """

        def run() -> None:
            while not self._ended.wait(max(every, _LEAST_WAIT)):
                try:
                    self.look()
                except Exception as error:  # noqa: BLE001 — the waiting caller is told
                    other = RunError(f"looking for files failed: {error}", hint="start again")
                    self.error = error if isinstance(error, RunError) else other
                    failed()
                    return

        if self.file_logs:
            Thread(target=run, name="tidemill-watch", daemon=True).start()

    def close(self) -> None:
        """Take in nothing more."""
        self._ended.set()
        with self._turn:
            pass  # a look that has begun is over
