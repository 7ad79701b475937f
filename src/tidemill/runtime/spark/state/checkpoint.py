"""The checkpoint of a pipeline on Spark: a directory that a run can be taken up from.

What all engines keep is in ``runtime/checkpoint.py``. Besides, there are here:

spark/          Spark's own: offsets, commits, the state store
control/        the control stream
batches.jsonl   what time it was, and how far streams had come, when batches began
files/          in which order the files of each stream are read
deployments/    what all queries together run with, and what the last batch ran with
replay/         kept rows on their way to the partitions, in the batch that is being computed
java.json       the Java process that works on it

Nothing is written before nothing is refused any more (``job.py`` has the order).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.runtime.batch_ends import BATCH_LOG
from tidemill.runtime.checkpoint import CheckpointDirectory
from tidemill.runtime.durable import make_directory
from tidemill.runtime.spark.state.cache import cache_directory, forget_cache
from tidemill.runtime.spark.state.deployments import Deployments

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Checkpoint"]


class Checkpoint(CheckpointDirectory):
    """A directory with the state of a pipeline."""

    @property
    def is_temporary(self) -> bool:
        """Whether it is removed when it is closed."""
        return self._lock is None

    @property
    def spark(self) -> Path:
        """Where Spark keeps its own."""
        return self.directory / "spark"

    @property
    def control(self) -> Path:
        """Where the control stream is."""
        return self.directory / "control"

    @property
    def batch_log(self) -> Path:
        """Where it is kept what is known when a batch begins."""
        return self.directory / BATCH_LOG

    def file_log(self, word: str) -> Path:
        """Where the order of the files of a stream is kept."""
        return self.directory / "files" / word

    @property
    def deployments(self) -> Deployments:
        """Where it is kept what runs."""
        return Deployments(
            str(self.directory / "deployments"),
            str(self.relations),
            str(self.kept),
            str(self.directory / "replay"),
        )

    @cached_property
    def cache(self) -> Path:
        """Where each host keeps copies of state."""
        return cache_directory(self.directory)

    def begin(self) -> None:
        """Note that the pipeline is started; from now on what it writes must be there."""
        if not self.facts.begun:
            make_directory(self.spark)
            self.know(replace(self.facts, begun=True))

    def close(self) -> None:
        """Let others have it; remove it, if no later session is to go on with it."""
        if "cache" in vars(self):
            forget_cache(self.cache, is_over=self.is_temporary)
        if self._lock is None:
            shutil.rmtree(self.directory, ignore_errors=True)  # links are not followed
        else:
            self._lock.release()
