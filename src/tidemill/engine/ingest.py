"""Ingest: from the rows a source delivers to elements with time, id and progress.

Each row gets an id, its number in the stream. The watermark of a stream is the greatest time seen
so far less the disorder its source declares; a row that starts before it is late. Rows without a
valid time and late rows are counted and dropped or, if the stream says so, kept with the reason;
they never stop or change anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.engine import Flow
from tidemill.lang.statements import LatePolicy
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from tidemill.catalog.entries import RelationEntry, StreamEntry
    from tidemill.model.batch import Batch

__all__ = ["Ingest", "relation_flow"]

REASON = "reason"


@dataclass(slots=True)
class Ingest:
    """The progress of one stream.

    Attributes:
        stream: What is read.
        watermark: No element that starts before it is taken any more.
        rows: How many rows were delivered.
        refused: How many were late or had no valid time, by reason.
        quarantine: Those rows with the reason, if the stream keeps them.
    """

    stream: StreamEntry
    watermark: Time = field(default=Time(0))
    rows: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    quarantine: list[pl.DataFrame] = field(default_factory=list)

    def take(self, frame: pl.DataFrame, arrival: Time) -> Flow:
        """The elements of newly delivered rows, and how far time has come.

        Args:
            frame: The rows, with the columns and types of the stream.
            arrival: The time of the batch, which orders streams without a time column.
        """
        timed = self._timed(frame, arrival)
        self.rows += frame.height
        good = timed if self._all_good(timed[START]) else self._judged(timed)
        self._advance(good)
        return Flow([good], self.watermark)

    def finish(self) -> Flow:
        """The end of the stream."""
        self.watermark = END_OF_TIME
        return Flow([], END_OF_TIME)

    def kept_aside(self) -> pl.DataFrame:
        """The rows that were not taken, with the reason, if the stream keeps them."""
        types = {**polars_schema(self.stream.schema), REASON: pl.String()}
        return pl.concat([pl.DataFrame(schema=types), *self.quarantine])

    def _timed(self, frame: pl.DataFrame, arrival: Time) -> Batch:
        column = self.stream.time_column
        start = (
            pl.lit(arrival, dtype=TIME_TYPE) if column is None else pl.col(column).cast(TIME_TYPE)
        )
        numbers = pl.int_range(self.rows, self.rows + frame.height, dtype=pl.Int64)
        return frame.with_columns(start.alias(START), numbers.alias(ID)).with_columns(
            (pl.col(START) + 1).alias(END)
        )

    def _all_good(self, starts: pl.Series) -> bool:
        """Whether no row is late or without a valid time, which is the rule."""
        least, latest = starts.min(), starts.max()
        assert least is None or isinstance(least, int), "times are integers"
        assert latest is None or isinstance(latest, int), "times are integers"
        return (
            not starts.has_nulls()
            and (least is None or least >= self.watermark)
            and (latest is None or latest < END_OF_TIME)
        )

    def _judged(self, timed: Batch) -> Batch:
        """The rows with a valid time that are not late; the others are counted."""
        reason = (
            pl.when(pl.col(START).is_null())
            .then(pl.lit("time is NULL"))
            .when(pl.col(START) < 0)
            .then(pl.lit("time is before 1970"))
            .when(pl.col(START) >= END_OF_TIME)
            .then(pl.lit("time is after the end of time"))
            .when(pl.col(START) < self.watermark)
            .then(pl.lit("late"))
        )
        judged = timed.with_columns(reason.alias(REASON))
        self._refuse(judged.filter(pl.col(REASON).is_not_null()))
        return judged.filter(pl.col(REASON).is_null()).drop(REASON)

    def _refuse(self, bad: pl.DataFrame) -> None:
        for reason, count in bad[REASON].value_counts().iter_rows():
            self.refused[reason] = self.refused.get(reason, 0) + count
        if self.stream.late is LatePolicy.QUARANTINE:
            self.quarantine.append(bad.select(*self.stream.schema.names, REASON))

    def _advance(self, good: Batch) -> None:
        latest = good[START].max()
        if latest is not None:
            assert isinstance(latest, int), "times are integers"
            self.watermark = max(self.watermark, Time(latest - self.stream.within))


def relation_flow(relation: RelationEntry, frame: pl.DataFrame) -> Flow:
    """The rows of a relation, valid always or in the periods their columns say; all at once."""
    validity = relation.validity
    start = pl.lit(0, dtype=TIME_TYPE)
    end = pl.lit(END_OF_TIME, dtype=TIME_TYPE)
    if validity is not None:
        start = pl.max_horizontal(pl.col(validity.start).cast(TIME_TYPE).fill_null(0), start)
        if validity.end is not None:
            end = pl.col(validity.end).cast(TIME_TYPE).fill_null(END_OF_TIME)
    timed = frame.select(relation.schema.names).with_columns(start.alias(START), end.alias(END))
    return Flow([timed.filter(pl.col(START) < pl.col(END))], END_OF_TIME)
