"""Watching: the feeds of all streams that are read from files here, looked after while they run."""

from __future__ import annotations

from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.runtime.spark.feed import Feed

__all__ = ["Watch"]

_LEAST_WAIT = 0.5
"""A directory is not listed more often than this, in seconds, unless somebody waits for it."""


class Watch:
    """The feeds of the streams.

    Args:
        feeds: The feeds, by stream.

    Attributes:
        error: Why watching has ended, if something was wrong.
    """

    def __init__(self, feeds: Mapping[str, Feed]) -> None:
        self.feeds = feeds
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
                for feed in self.feeds.values():
                    feed.look()

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
                except Exception as error:  # noqa: BLE001 — whoever waits is told
                    other = RunError(f"looking for files failed: {error}", hint="start again")
                    self.error = error if isinstance(error, RunError) else other
                    failed()
                    return

        if self.feeds:
            Thread(target=run, name="tidemill-watch", daemon=True).start()

    def close(self) -> None:
        """Take in nothing more."""
        self._ended.set()
        with self._turn:
            pass  # whoever is looking has finished
