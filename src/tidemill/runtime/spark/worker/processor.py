"""The adapter between Spark's stateful processor and a stage.

Each partition of a stage has one state variable: blobs by name.

This module imports next to nothing: at every start Spark asks a new Python process what the state
of each stage looks like, and the start waits for its imports.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from tidemill.runtime.spark.worker.stepping import Task

__all__ = ["StageProcessor"]

# Not as text: for each, Spark would be asked twice in every task what it means.
_NAME = StructType([StructField("name", StringType())])
_BLOB = StructType([StructField("blob", BinaryType())])


class StageProcessor(StatefulProcessor):
    """A stage of the pipeline.

    Args:
        task: What it does; pickled here, so that this module need not import it.
    """

    def __init__(self, task: Task) -> None:
        self._packed = pickle.dumps(task)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state of the partitions."""
        self._blobs = handle.getMapState("blobs", _NAME, _BLOB)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 — Spark's name, frames only
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Step one partition."""
        from tidemill.runtime.spark.worker.stepping import step  # noqa: PLC0415 — see above

        return step(self._packed, int(key[0]), rows, self._blobs)

    def close(self) -> None:
        """Nothing is held open."""
