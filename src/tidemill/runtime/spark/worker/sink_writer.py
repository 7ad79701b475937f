"""The sink writer: writes answers to files, in the task that has them.

Files are written by the tasks that have the rows, so that these do not travel any further: answers
that need nothing but the rows of a stream, one by one, where these come in, and all others by the
last stage. What others are to have leaves as messages, with what was kept aside and the reports.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidemill.runtime.spark.worker.sink_codec import read_sink, write_sink
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from tidemill.algebra.codec.values import Json
    from tidemill.runtime.file_sink import FileSink

__all__ = ["SinkWriter"]


class SinkWriter:
    """Where answers go, by their channels.

    Args:
        files: The files a channel goes to.
        driver: The channels that the driver is to have; of others it hears how many rows there are.
        leaving: The channels that are read from the results of the last stage.
        passing: The channels that have been let out before, and are only handed on.
    """

    def __init__(
        self,
        files: Mapping[str, tuple[FileSink, ...]],
        driver: Iterable[str],
        leaving: Iterable[str],
        passing: Iterable[str] = (),
    ) -> None:
        self._files = dict(files)
        self._passing = frozenset(passing)
        self._driver = frozenset(driver)
        self._leaving = self._driver | frozenset(leaving)

    def write(self) -> Json:
        """It as JSON, but for the channels that are handed on."""
        files = {name: [write_sink(sink) for sink in sinks] for name, sinks in self._files.items()}
        return {"files": files, "driver": sorted(self._driver), "leaving": sorted(self._leaving)}

    @classmethod
    def read(cls, written: Json) -> SinkWriter:
        """The one that was written."""
        files = written["files"].items()
        return cls(
            {name: tuple(map(read_sink, sinks)) for name, sinks in files},
            written["driver"],
            written["leaving"],
        )

    def clear(self, batch: int) -> None:
        """Remove what an unfinished attempt wrote for a batch, which is computed again.

        Raises:
            RunError: It cannot be removed.
        """
        for sink in self._sinks():
            sink.clear(batch)

    def settle(self, batch: int) -> None:
        """Keep the files of a batch that all tasks have written, where they belong.

        Raises:
            RunError: They cannot be kept, or a directory is gone or is not that of its query.
        """
        for sink in self._sinks():
            sink.settle(batch)

    def after(self, channels: Iterable[str]) -> SinkWriter:
        """The sink writer of the last stage, if some channels are let out before."""
        return SinkWriter(self._files, self._driver, self._leaving, channels)

    def let_out(self, messages: Iterable[Message], batch: int, part: int) -> Iterator[Message]:
        """Write the answers that go to files; the messages that leave.

        Args:
            messages: What a task gives.
            batch: The number of the batch.
            part: A number for the task, which no other one has that writes the same answer.

        Raises:
            RunError: A file cannot be written.
        """
        written: dict[str, list[pl.DataFrame]] = {}
        counts: dict[tuple[int, str], int] = {}
        for message in messages:
            channel = message.channel
            if message.kind is not Kind.ANSWER or channel in self._passing:
                yield message
                continue
            frame = message.rows()
            if channel in self._files and frame.height:
                written.setdefault(channel, []).append(frame)
            if channel in self._leaving:
                yield message
            if channel not in self._driver:
                place = message.pid, channel
                counts[place] = counts.get(place, 0) + frame.height
        self._write(written, batch, part)
        for (pid, channel), rows in counts.items():
            if rows:
                yield Message.of_facts(pid, Kind.REPORT, f"written {channel}", {"rows": rows})

    def _sinks(self) -> Iterator[FileSink]:
        """Each sink once; several instances of a query have the same."""
        return iter(dict.fromkeys(sink for sinks in self._files.values() for sink in sinks))

    def _write(self, written: Mapping[str, list[pl.DataFrame]], batch: int, part: int) -> None:
        """Write files, two at a time: one encodes while the other waits for the disk."""
        by_sink: dict[FileSink, list[pl.DataFrame]] = {}
        for channel, rows in written.items():
            for sink in self._files[channel]:
                by_sink.setdefault(sink, []).extend(rows)
        with ThreadPoolExecutor(2) as pool:
            writing = [pool.submit(s.write, batch, part, rows) for s, rows in by_sink.items()]
            for done in writing:
                done.result()
