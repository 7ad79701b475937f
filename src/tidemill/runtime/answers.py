"""Answers: what a query has given so far, in the forms people ask for.

``results``, ``changes`` and ``snapshot`` describe the same answer: elements valid in
``[start, end)``, the changes from instant to instant, and the bag of rows at one instant. What a
query gives comes in one form or the other: in signed form, a row that has appeared and has not been
withdrawn has no end yet, and is no result until its end is known or the streams have ended. Where a
session goes on with what another one has begun, rows may be withdrawn that appeared before: that
they go is a change, but they are no results, since their starts are not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import (
    END,
    SIGN,
    START,
    TIME,
    TIME_TYPE,
    Form,
    empty_batch,
    time_columns,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import keep, pick
from tidemill.physical.kernels.sweep import (
    GROUP,
    SINCE,
    encode,
    named,
    repeat,
    timeline,
)
from tidemill.physical.state.strings import compact_strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["NAMES", "Answer", "time_names"]

_NET, _THERE = "@net", "@there"
_BEFORE = -1
NAMES = {Form.INTERVAL: ("start", "end"), Form.SIGNED: ("time", "sign")}
"""What people call the time columns of a form."""


class Answer:
    """The answer of one query, as far as it is known.

    Law: at every instant before ``known`` the snapshot is final.

    Attributes:
        is_whole: Whether it is here from its beginning on.
        known: Up to when it is known, an instant that is not known itself.
        last_read: The time of the latest row that the query has read, if it has read any.
    """

    def __init__(self, schema: Schema, *, is_whole: bool = True) -> None:
        self.is_whole = is_whole
        self.known = Time(0)
        self.last_read: Time | None = None
        self._schema = schema
        self._batches: list[Batch] = []

    @property
    def has_ended(self) -> bool:
        """Whether no change will follow, so that what is there stays for ever."""
        return self.known >= END_OF_TIME

    def present(self) -> Time | None:
        """The last instant that is known; after the end of the streams, that of the latest row.

        ``None`` if nothing is known yet.
        """
        if not self.has_ended:
            return Time(self.known - 1) if self.known > 0 else None
        if self.last_read is not None:
            return self.last_read
        starts = [batch[START].max() for batch in self._batches if _form(batch) is Form.INTERVAL]
        times = [batch[TIME].max() for batch in self._batches if _form(batch) is Form.SIGNED]
        found = [time for time in (*starts, *times) if isinstance(time, int)]
        return Time(max(found, default=0))

    def add(self, batches: Iterable[Batch]) -> None:
        """Take new elements, or changes."""
        for batch in batches:
            columns = [*self._schema.names, *time_columns(_form(batch))]
            rows = batch if batch.columns == columns else pick(batch, columns)
            self._batches.append(compact_strings(rows))

    def rows(self) -> int:
        """How many elements or changes have been taken, as they were cut."""
        return sum(batch.height for batch in self._batches)

    def read(self, frames: Iterable[pl.DataFrame], form: Form = Form.INTERVAL) -> None:
        """Take what ``results``, or ``changes``, gives."""
        names = self._time_names(*NAMES[form])
        renamed = dict(zip(names, time_columns(form), strict=True))
        times = [pl.col(name).cast(TIME_TYPE) for name in renamed.values()]
        self.add(frame.rename(renamed).with_columns(times) for frame in frames)

    def elements(self) -> Batch:
        """The elements in the order of their starts, then ends, then values.

        They are a function of the snapshots alone: what ends where an equal row begins goes on, and
        of equal rows the one that came first goes first.
        """
        names, net = self._net()
        moves = net.drop(_THERE)
        starts = keep(moves, net[_NET] > 0)
        ends = keep(moves, net[_NET] < 0).with_columns(-pl.col(_NET))
        if self._is_signed():
            before, after = _unseen(net)
            starts, ends = _in_order(starts, before), _in_order(ends, after)
        starts, ends = repeat(starts, _NET), repeat(ends, _NET)
        # A row begins as often as it ends, so that the lines of both belong together.
        start, end = starts[TIME].alias(START), ends[TIME].alias(END)
        seen = start > _BEFORE
        if not self.has_ended and self._is_signed():
            seen &= end < END_OF_TIME
        rows = named(pl.DataFrame([starts[GROUP], start, end]), names)
        return _sorted(keep(rows, seen), (START, END, *self._schema.names))

    def _net(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Where each row becomes more (positive) or less (negative), by row and time.

        Returns:
            The rows, and in order ``GROUP``, the number of one, the time, by how many, and how many
            there are then.
        """
        wholes = [self.whole(form) for form in Form]
        names, (rows, signed) = encode(self._schema.names, wholes)
        both = pl.concat(
            [
                rows.select(GROUP, pl.col(START).alias(TIME), pl.lit(1, pl.Int64).alias(_NET)),
                rows.select(GROUP, pl.col(END).alias(TIME), pl.lit(-1, pl.Int64).alias(_NET)),
                signed.select(GROUP, TIME, pl.col(SIGN).alias(_NET)),
            ]
        )
        there = timeline(both.rename({TIME: SINCE}).clear(), both, (_NET,))
        is_same = pl.col(GROUP) == pl.col(GROUP).shift(1)
        before = pl.when(is_same).then(pl.col(_NET).shift(1)).otherwise(0)
        net = there.with_columns(pl.col(_NET) - before, pl.col(_NET).alias(_THERE))
        return names, keep(net, net[_NET] != 0)

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
        names, net = self._net()
        net = keep(net, net[TIME] < END_OF_TIME)
        signs = net[_NET].sign().cast(pl.Int32).alias(SIGN)
        rows = repeat(net.with_columns(pl.col(_NET).abs()).hstack([signs]), _NET)
        whole = named(pick(rows, (GROUP, TIME, SIGN)), names)
        ordered = _sorted(whole, (TIME, SIGN, *self._schema.names))
        return ordered.rename({TIME: time, SIGN: sign})

    def snapshot(self, time: int) -> pl.DataFrame:
        """The rows that are valid at an instant."""
        at = (pl.col(START) <= time) & (pl.col(END) > time)
        there = [self.whole(Form.INTERVAL).filter(at).select(self._schema.names)]
        if self._is_signed():
            changed = self.whole(Form.SIGNED).filter(pl.col(TIME) <= time)
            names, (changed,) = encode(self._schema.names, [changed])
            net = changed.group_by(GROUP).agg(pl.col(SIGN).sum()).filter(pl.col(SIGN) > 0)
            there.append(repeat(names[net[GROUP]].hstack([net[SIGN]]), SIGN))
        return pl.concat(there).sort(self._schema.names, nulls_last=False)

    def latest(self, rows: int) -> pl.DataFrame:
        """So many of the rows that came last, with their starts, as they were cut; the newest last.

        Only what came last is looked at, so that it takes no longer when much came before.
        """
        (start,) = self._time_names("start")
        found = [empty_batch(self._schema, Form.INTERVAL).drop(END).rename({START: start})]
        missing = rows
        for batch in reversed(self._batches):
            if missing <= 0:
                break
            is_signed = _form(batch) is Form.SIGNED
            came = batch.filter(pl.col(SIGN) > 0) if is_signed else batch
            time = TIME if is_signed else START
            found.append(came.select(*self._schema.names, pl.col(time).alias(start)))
            missing -= came.height
        return pl.concat(found).sort(start, maintain_order=True).tail(rows)

    def whole(self, form: Form) -> Batch:
        """All that came in a form."""
        given = [batch for batch in self._batches if _form(batch) is form]
        return pl.concat([empty_batch(self._schema, form), *given])

    def _is_signed(self) -> bool:
        return any(_form(batch) is Form.SIGNED for batch in self._batches)

    def _time_names(self, *names: str) -> list[str]:
        return time_names(self._schema, *names)


def _unseen(net: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The starts of rows that went without having come, and the ends of those that are there."""
    least = net.group_by(GROUP).agg(
        (-pl.col(_THERE).min()).clip(0).alias("@before"), pl.col(_THERE).last()
    )
    before, after = pl.lit(_BEFORE, TIME_TYPE), pl.lit(END_OF_TIME, TIME_TYPE)
    missing = least.select(GROUP, before.alias(TIME), pl.col("@before").alias(_NET))
    left = least.select(GROUP, after.alias(TIME), (pl.col("@before") + pl.col(_THERE)).alias(_NET))
    return keep(missing, missing[_NET] > 0), keep(left, left[_NET] > 0)


def _in_order(net: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Changes by row and time, with more of them."""
    if more.is_empty():
        return net
    return _sorted(pl.concat([net, more]), (GROUP, TIME))


def _sorted(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows by some columns, NULL first; one after another is faster than all at once."""
    for name in reversed(names):
        frame = frame.sort(pl.col(name), nulls_last=False, maintain_order=True)
    return frame


def _form(batch: Batch) -> Form:
    return Form.SIGNED if SIGN in batch.columns else Form.INTERVAL


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
