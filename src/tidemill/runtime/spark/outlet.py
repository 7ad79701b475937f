"""The outlet: where the last stage lets answers out.

Files are written by the tasks that have the rows, so that these do not travel any further. What
others are to have leaves as messages, with what was kept aside and the reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.runtime.spark.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from tidemill.runtime.file_sink import FileSink

__all__ = ["Outlet"]


class Outlet:
    """Where answers go, by their channels.

    Args:
        files: The files a channel goes to.
        driver: The channels that the driver is to have; of others it hears how many rows there are.
        leaving: The channels that somebody reads from the results of the last stage.
    """

    def __init__(
        self,
        files: Mapping[str, tuple[FileSink, ...]],
        driver: Iterable[str],
        leaving: Iterable[str],
    ) -> None:
        self._files = dict(files)
        self._driver = frozenset(driver)
        self._leaving = self._driver | frozenset(leaving)

    def clear(self, batch: int) -> None:
        """Remove what was written for a batch, which is computed again.

        Raises:
            RunError: It cannot be removed.
        """
        for sink in (sink for sinks in self._files.values() for sink in sinks):
            sink.clear(batch)

    def let_out(self, messages: Iterable[Message], batch: int, pid: int) -> Iterator[Message]:
        """Write the answers of a partition that go to files; the messages that leave.

        Args:
            messages: What the last stage gives.
            batch: The number of the batch.
            pid: The partition.

        Raises:
            RunError: A file cannot be written.
        """
        written: dict[str, list[pl.DataFrame]] = {}
        rows: dict[str, int] = {}
        for message in messages:
            if message.kind is not Kind.ANSWER:
                yield message
                continue
            frame, channel = message.rows(), message.channel
            if channel in self._files:
                written.setdefault(channel, []).append(frame)
            if channel in self._leaving:
                yield message
            if channel not in self._driver:
                rows[channel] = rows.get(channel, 0) + frame.height
        for channel, frames in written.items():
            if any(frame.height for frame in frames):
                for sink in self._files[channel]:
                    sink.write(batch, pid, frames)
        for channel, count in rows.items():
            if count:
                yield Message.of_facts(pid, Kind.REPORT, f"written {channel}", {"rows": count})
