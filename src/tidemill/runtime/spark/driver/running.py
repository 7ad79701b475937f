"""A pipeline that runs: Spark's query, and what works beside it in the driver.

The poller looks for files, the ticker lets time pass, and both say something in the control stream
or in the logs of files; the delivery takes each batch. When a batch has begun, what Spark never
reads again is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.runtime.spark.io.places import source_name
from tidemill.runtime.spark.io.source_log import shorten
from tidemill.runtime.spark.worker.stage import CONTROL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.errors import RunError
    from tidemill.runtime.quarantine import Quarantine
    from tidemill.runtime.spark.driver.control import Control
    from tidemill.runtime.spark.driver.delivery import Delivery
    from tidemill.runtime.spark.driver.polling import SourcePoller
    from tidemill.runtime.spark.driver.ticker import Ticker

__all__ = ["Running", "Tidying"]

_TIDY_EVERY = 10
"""After how many batches Spark's notes on files are shortened, which would grow for ever."""


@dataclass(slots=True)
class Tidying:
    """Removes the notes on files and words that Spark never reads again.

    Attributes:
        spark: Where Spark keeps its own.
        poller: The files of the streams.
        control: The control stream.
    """

    spark: Path
    poller: SourcePoller
    control: Control
    _batches: int = 0

    def __call__(self, committed: Mapping[str, int]) -> None:
        """Tidy up, given how many files of each stream Spark never reads again."""
        self.poller.forget(committed)
        self.control.forget(committed.get(CONTROL, 0))
        self._batches += 1
        if self._batches % _TIDY_EVERY == 0:
            sources = ["control", *map(source_name, self.poller.file_logs)]
            shorten(self.spark / "sources", sources)


@dataclass(slots=True)
class Running:
    """A pipeline, and what works beside it.

    Attributes:
        delivery: What is done with each batch.
        poller: What looks for files.
        control: The control stream.
        ticker: What lets time pass.
        quarantine: Where rows are kept that were refused.
        query: Spark's query; ``None`` before it was started, and when it was stopped.
    """

    delivery: Delivery
    poller: SourcePoller
    control: Control
    ticker: Ticker
    quarantine: Quarantine
    query: StreamingQuery | None = None

    def follow(self, every: float) -> None:
        """Look for files, and let time pass, until it is stopped.

        Args:
            every: How often to look, in seconds.
        """
        assert self.query is not None, "it runs"
        self.poller.start(every, self.query.stop)
        self.ticker.start(self.query.stop)

    @property
    def error(self) -> RunError | None:
        """What was wrong in a thread beside the pipeline."""
        return self.poller.error or self.ticker.error

    def end(self) -> StreamingQuery | None:
        """Stop all that works beside the pipeline; Spark's query, which is still to be stopped."""
        query, self.query = self.query, None
        if query is not None:
            self.poller.close()
            self.ticker.close()
            self.delivery.close()
        return query
