"""Answers: what a query has given so far, in the forms people ask for.

``results``, ``changes`` and ``snapshot`` describe the same answer: elements valid in
``[start, end)``, the changes from instant to instant, and the bag of rows at one instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, empty_batch, interval_columns
from tidemill.model.time import END_OF_TIME
from tidemill.physical.kernels.sweep import GROUP, TIME, encode, pick, repeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Answer", "new_rows", "time_names"]

_NET, _SIGN = "@net", "@sign"


class Answer:
    """The elements of one query's answer."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._batches: list[Batch] = []

    def add(self, batches: Iterable[Batch]) -> None:
        """Take new elements."""
        columns = interval_columns(self._schema)
        self._batches += [b if b.columns == columns else b.select(columns) for b in batches]

    def rows(self) -> int:
        """How many elements have been taken, as they were cut."""
        return sum(batch.height for batch in self._batches)

    def read(self, frames: Iterable[pl.DataFrame]) -> None:
        """Take elements as ``results`` gives them."""
        start, end = self._time_names("start", "end")
        self.add(frame.rename({start: START, end: END}) for frame in frames)

    def elements(self) -> Batch:
        """The elements in the order of their starts, then ends, then values.

        They are a function of the snapshots alone: what ends where an equal row begins goes on, and
        of equal rows the one that came first goes first.
        """
        net = self._net()
        ending = net.filter(pl.col(_NET) < 0).with_columns(pl.col(_NET) * -1)
        starts = repeat(net.filter(pl.col(_NET) > 0).sort(GROUP, TIME), _NET)
        ends = repeat(ending.sort(GROUP, TIME), _NET)
        # A row begins as often as it ends, so that the lines of both belong together.
        whole = starts.rename({TIME: START}).hstack([ends[TIME].alias(END)]).drop(GROUP)
        ordered = whole.select(interval_columns(self._schema))
        return ordered.sort(START, END, *self._schema.names, nulls_last=False)

    def _net(self) -> pl.DataFrame:
        """Where each row becomes more (positive) or less (negative): the columns, and the time."""
        whole = pl.concat([empty_batch(self._schema), *self._batches])
        names, (rows,) = encode(self._schema.names, [whole])
        both = pl.concat(
            [
                rows.select(GROUP, pl.col(START).alias(TIME), pl.lit(1, pl.Int64).alias(_NET)),
                rows.select(GROUP, pl.col(END).alias(TIME), pl.lit(-1, pl.Int64).alias(_NET)),
            ]
        )
        net = both.group_by(GROUP, TIME).agg(pl.col(_NET).sum()).filter(pl.col(_NET) != 0)
        return net.hstack(names.select(pl.all().gather(net[GROUP])))

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
        net = self._net().filter(pl.col(TIME) < END_OF_TIME)
        signed = net.with_columns(
            pl.col(_NET).sign().cast(pl.Int32).alias(_SIGN), pl.col(_NET).abs()
        )
        rows = repeat(signed, _NET).select(*self._schema.names, TIME, _SIGN)
        ordered = rows.sort(TIME, _SIGN, *self._schema.names, nulls_last=False)
        return ordered.rename({TIME: time, _SIGN: sign})

    def snapshot(self, time: int) -> pl.DataFrame:
        """The rows that are valid at an instant."""
        at = (pl.col(START) <= time) & (pl.col(END) > time)
        valid = pl.concat([empty_batch(self._schema), *(b.filter(at) for b in self._batches)])
        return valid.select(self._schema.names).sort(self._schema.names, nulls_last=False)

    def _time_names(self, *names: str) -> list[str]:
        return time_names(self._schema, *names)


def new_rows(schema: Schema, batches: Iterable[Batch]) -> pl.DataFrame:
    """What a batch adds to an answer: the columns of ``results``, in the order of ``start``.

    The elements are as they were cut: one that goes on may come in pieces.

    Args:
        schema: The columns of the answer.
        batches: The new elements.
    """
    columns = interval_columns(schema)
    frames = [pick(batch, columns) for batch in batches] or [empty_batch(schema)]
    whole = frames[0] if len(frames) == 1 else pl.concat(frames)
    start, end = time_names(schema, "start", "end")
    whole.columns = [*schema.names, start, end]
    return whole if whole[start].is_sorted() else whole.sort(start, maintain_order=True)


def time_names(schema: Schema, *names: str) -> list[str]:
    """The names of the time columns, with marks where the query has a column of that name."""
    taken = {name.lower() for name in schema.names}
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    """The name, with as many marks as it needs to be different from all others.

    >>> _free("start", {"end"}), _free("start", {"start", "start_"})
    ('start', 'start__')
    """
    while name in taken:
        name = f"{name}_"
    return name
