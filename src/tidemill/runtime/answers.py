"""Answers: what a query has given so far, in the forms people ask for.

``results``, ``changes`` and ``snapshot`` describe the same answer: elements valid in
``[start, end)``, the changes from instant to instant, and the bag of rows at one instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, empty_batch, interval_columns
from tidemill.model.time import END_OF_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Answer"]


class Answer:
    """The elements of one query's answer."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._batches: list[Batch] = []

    def add(self, batches: Iterable[Batch]) -> None:
        """Take new elements."""
        self._batches += [batch.select(interval_columns(self._schema)) for batch in batches]

    def read(self, frames: Iterable[pl.DataFrame]) -> None:
        """Take elements as ``results`` gives them."""
        start, end = self._time_names("start", "end")
        self.add(frame.rename({start: START, end: END}) for frame in frames)

    def elements(self) -> Batch:
        """The elements in the order of their starts, then ends, then values."""
        whole = pl.concat([empty_batch(self._schema), *self._batches])
        return whole.sort(START, END, *self._schema.names, nulls_last=False)

    def results(self) -> pl.DataFrame:
        """The interval form: the columns of the query, ``start`` and ``end`` in microseconds."""
        start, end = self._time_names("start", "end")
        return self.elements().rename({START: start, END: end})

    def changes(self) -> pl.DataFrame:
        """The signed form: a row with sign +1 where it appears and -1 where it disappears.

        What ends where an equal row begins does not change anything and is left out. Rows that
        never end never disappear. In the order of time; at one time rows disappear first.
        """
        time, sign = self._time_names("time", "sign")
        elements = self.elements()
        names = list(self._schema.names)
        appear = elements.select(*names, pl.col(START).alias(time), pl.lit(1).alias(sign))
        ending = elements.filter(pl.col(END) < END_OF_TIME)
        vanish = ending.select(*names, pl.col(END).alias(time), pl.lit(-1).alias(sign))
        both = pl.concat([appear, vanish])
        net = both.group_by(*names, time, maintain_order=True).agg(pl.col(sign).sum())
        repeated = net.filter(pl.col(sign) != 0).select(
            pl.col(*names, time).repeat_by(pl.col(sign).abs()),
            pl.col(sign).sign().repeat_by(pl.col(sign).abs()),
        )
        columns = [*names, time, sign]
        return repeated.explode(columns).sort(time, sign, *names, nulls_last=False)

    def snapshot(self, time: int) -> pl.DataFrame:
        """The rows that are valid at an instant."""
        elements = self.elements()
        valid = elements.filter((pl.col(START) <= time) & (pl.col(END) > time))
        return valid.select(self._schema.names).sort(self._schema.names, nulls_last=False)

    def _time_names(self, *names: str) -> list[str]:
        """The names of the time columns, with a mark where the query has a column of that name."""
        return [f"{name}_" if name in self._schema else name for name in names]
