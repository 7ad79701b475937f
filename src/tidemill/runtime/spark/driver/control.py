"""The control stream: words of the driver to every partition, each in a batch.

    end    all streams have ended
    tick   time has passed, although nothing has come

A word is a tiny file with a number, which goes when Spark has read it. What time it is in the batch
of a word is what the batch log says, so that a replayed batch sees the same.
"""

from __future__ import annotations

import json
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING

from tidemill.runtime.damage import damaged, telling_where
from tidemill.runtime.durable import make_directory, rename_durably, sync_file
from tidemill.runtime.spark.io.file_log import NUMBERED, literal, set_number
from tidemill.runtime.spark.state.batch_log import batch_beginning
from tidemill.runtime.spark.worker.stage import CONTROL
from tidemill.runtime.spark.worker.wire import COLUMNS, Kind, Message, to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["Control", "Word", "control_messages", "said"]


class Word(StrEnum):
    """What the driver has to say."""

    END = "end"
    TICK = "tick"


class Control:
    """The control stream; several threads may say something.

    Args:
        directory: Where it is.
        committed: How many words Spark has read for good.
    """

    def __init__(self, directory: Path, *, committed: int = 0) -> None:
        make_directory(directory)
        self._directory = directory
        self._turn = Lock()
        found = {int(path.stem): path for path in directory.glob("*.json")}
        for number, path in found.items():
            set_number(path, number)  # a copy of a checkpoint may have lost it
        self._numbers = sorted(found)
        self._next = max([committed, *(number + 1 for number in found)])

    def say(self, word: Word) -> None:
        """Put a word into the stream.

        Raises:
            RunError: It cannot be written.
        """
        with self._turn, telling_where(self._directory.parent):
            path = self._path(self._next)
            unfinished = path.with_name(f".{path.name}")
            text = json.dumps({"number": self._next, "word": word}) + "\n"
            unfinished.write_text(text, encoding="utf-8")
            set_number(unfinished, self._next)
            sync_file(unfinished)
            rename_durably(unfinished, path)
            self._numbers.append(self._next)
            self._next += 1

    def forget(self, committed: int) -> None:
        """Remove what Spark does not read again: it has read so many words for good."""
        while self._numbers and self._numbers[0] < committed:
            self._path(self._numbers.pop(0)).unlink()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:012d}.json"


def control_messages(spark: SparkSession, deployment: Deployment, directory: Path) -> DataFrame:
    """The messages of the control stream."""
    make_directory(directory)
    reader = spark.readStream.name("control").schema("number long, word string").format("json")
    rows = reader.options(**NUMBERED).load(literal(directory))
    pids = deployment.pids

    def on_control(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        words = [row for batch in batches for row in batch.to_pylist()]
        if words:
            yield to_arrow(said(words, pids, batch_beginning().now))

    return rows.mapInArrow(on_control, COLUMNS)


def said(words: list[dict[str, object]], pids: tuple[int, ...], now: int) -> Iterator[Message]:
    """What partitions hear of the words of a batch.

    Raises:
        RunError: A word means nothing.
    """
    last, ended = -1, False
    for row in words:
        number, word = row["number"], row["word"]
        if not isinstance(number, int) or word not in list(Word):
            raise damaged("the control stream", f"there is no word {word!r}")
        last, ended = max(last, number), ended or word == Word.END
    for pid in pids:
        facts = {"latest": None, "now": now, "ended": int(ended)}
        yield Message.of_facts(pid, Kind.PULSE, CONTROL, facts)
    yield Message.of_facts(pids[0], Kind.REPORT, CONTROL, {"files": last + 1})
