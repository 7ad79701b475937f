"""The times of an answer in their declared type, for people; inside they are microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import polars_type
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from tidemill.model.types import DataType

__all__ = ["with_typed_times"]

_SIGN = pl.Int32()


def with_typed_times(frame: pl.DataFrame, time: DataType) -> pl.DataFrame:
    """An answer, whose last columns are two times or a time and a sign, with times of a type.

    As a TIMESTAMP, the end of a row that never ends is NULL: no calendar has it. As a BIGINT it
    stays the largest one.

    >>> from tidemill.model.types import TIMESTAMP
    >>> frame = pl.DataFrame({"n": [1], "start": [1_500_000], "end": [END_OF_TIME]})
    >>> with_typed_times(frame, TIMESTAMP).rows()
    [(1, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000), None)]
    """
    if time == BIGINT:
        return frame
    *_, first, last = frame.columns
    # A sign is a small number, and no time.
    times = pl.col([first] if frame.schema[last] == _SIGN else [first, last])
    return frame.with_columns(pl.when(times < END_OF_TIME).then(times).cast(polars_type(time)))
