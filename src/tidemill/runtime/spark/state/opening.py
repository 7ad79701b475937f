"""Opening the checkpoint of a session on Spark, which the session has alone until it closes it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.runtime.opening import open_directory
from tidemill.runtime.spark.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from tidemill.runtime.record import Facts
    from tidemill.runtime.spark.driver.settings import SparkSettings

__all__ = ["open_checkpoint"]


def open_checkpoint(settings: SparkSettings, facts: Facts) -> Checkpoint:
    """The checkpoint of a session, which no other process can open until it is closed.

    A new one is not written down before ``create``.

    Raises:
        RunError: There is something else, a checkpoint that does not fit the settings or is not
            where it was made, or it is in use.
    """
    if settings.checkpoint is None:
        directory = Path(tempfile.mkdtemp(prefix="tidemill-"))
        return Checkpoint(directory, replace(facts, place=str(directory)))
    facts = replace(facts, planning=settings.planning.facts())
    opened = open_directory(
        settings.checkpoint,
        facts,
        partitions=settings.partitions,
        stages=settings.stages,
        take=settings.take_lock,
    )
    return Checkpoint(*opened)
