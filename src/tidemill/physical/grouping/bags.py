"""The different values of an aggregate's argument in each group, and how often each occurs.

Kept for DISTINCT, ``median`` and wide numbers in three tables: ``pending``, ``ends`` and
``totals``, as of the aggregation itself, but by keys and value. Where all values of a group are
looked at, as for ``median``, its totals are found by the keys, but only those that change are
written anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.grouping.handed import counted
from tidemill.physical.kernels.arguments import ROWS
from tidemill.physical.kernels.cover import COUNT, VALUE
from tidemill.physical.kernels.sweep import (
    GROUP,
    SINCE,
    TIME,
    cut,
    encode,
    named,
    overdue,
    timeline,
    touched,
)
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.operator import State

__all__ = ["Bag", "Swept", "sweep_values"]

_OUTER, _SIGN = "@outer", "@sign"


@dataclass(frozen=True, slots=True)
class Swept:
    """What has become of the values up to a watermark.

    Attributes:
        pieces: ``GROUP``, ``VALUE``, ``COUNT``, ``START`` and ``END``: the values, as far as they
            can matter after the last watermark. What has not ended yet ends with time.
        moved: ``GROUP`` and ``VALUE`` of the totals that have changed.
        totals: ``GROUP``, ``VALUE``, ``SINCE`` and ``COUNT``: what has become of them.
        changes: ``GROUP``, the argument's column, ``TIME`` and a sign: where a value has appeared
            or disappeared.
    """

    pieces: pl.DataFrame
    moved: pl.DataFrame
    totals: pl.DataFrame
    changes: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Bag:
    """The values of one argument."""

    argument: Argument
    _kept: pl.Expr = field(init=False, repr=False, compare=False)
    _added: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        argument, sign = self.argument, pl.col(_SIGN)
        some = pl.col(argument.column).is_not_null()
        object.__setattr__(self, "_kept", some if argument.keeps_values else argument.is_wide())
        added = argument.contributions() if argument.distinct else ()
        signed = tuple((expr * sign).alias(expr.meta.output_name()) for expr in added)
        object.__setattr__(self, "_added", signed)

    def is_idle(self, state: State) -> bool:
        """Whether there are no values, of an argument of which there need be none."""
        names = (self._name(name) for name in ("pending", "ends", "totals"))
        return not self.argument.keeps_values and not any(state.tables[n].rows() for n in names)

    def tables(self, keys: dict[str, pl.DataType]) -> dict[str, Table]:
        """Its tables of state, by name."""
        row = {**keys, VALUE: polars_type(self.argument.type)}
        count = {COUNT: pl.Int64()}
        interval = {START: TIME_TYPE, END: TIME_TYPE}
        return {
            self._name("pending"): Table({**row, **interval, **count}, (START, END)),
            self._name("ends"): Table({**row, END: TIME_TYPE, **count}, (END,)),
            self._name("totals"): KeyedTable(
                {**row, SINCE: TIME_TYPE, **count}, (SINCE,), index=list(keys), within=(VALUE,)
            ),
        }

    def keeps(self, elements: pl.DataFrame) -> pl.Series:
        """Which elements have a value that is kept, given what they contribute."""
        return elements.select(self._kept).to_series()

    def insert(self, state: State, elements: pl.DataFrame, *, panes: bool) -> None:
        """Remember the values of elements, given what they contribute."""
        pending = state.tables[self._name("pending")]
        names = {self.argument.column: VALUE, ROWS: COUNT}
        row = [name for name in pending.schema if name not in names.values()]
        values = pick(elements, (*row, *names)).filter(self._kept).rename(names)
        if values.is_empty():
            return
        if panes:
            values = values.group_by(*row, VALUE).agg(pl.col(COUNT).sum())
        pending.insert(values)

    def extract(
        self, state: State, time: Time, groups: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The totals that matter, and the changes before ``time``, which are forgotten.

        Args:
            state: The state.
            time: The watermark; in the end all totals matter.
            groups: The keys of the groups that change.
        """
        ends, totals = state.tables[self._name("ends")], keyed(state, self._name("totals"))
        started = state.tables[self._name("pending")].extract(START, time)
        ends.insert(started.filter(pl.col(END) < END_OF_TIME))
        ended = ends.extract(END, time).with_columns(pl.col(COUNT) * -1).rename({END: TIME})
        begun = pick(started.drop(END).rename({START: TIME}), ended.columns)
        deltas = pl.concat([begun, ended])
        if time == END_OF_TIME:
            return totals.drain(), deltas
        if self._looks_at_groups:
            return totals.find(groups), deltas
        return totals.take(deltas.select(*groups.columns, VALUE)), deltas

    def store(self, state: State, swept: Swept, names: pl.DataFrame) -> None:
        """Remember the totals until the next watermark; ``names`` are the keys of the groups."""
        totals = keyed(state, self._name("totals"))
        if self._looks_at_groups and totals.rows():
            totals.take(named(swept.moved, names))
        totals.insert(named(swept.totals, names))

    def sweep(self, totals: pl.DataFrame, deltas: pl.DataFrame, *, since: int, time: Time) -> Swept:
        """Bring the totals up to date.

        Args:
            totals: What ``extract`` gave, with ``GROUP`` for the keys.
            deltas: Likewise.
            since: The last watermark.
            time: The watermark.
        """
        return sweep_values(totals, deltas, since=since, time=time, distinct=self.argument.distinct)

    def contributions(self, swept: Swept) -> pl.DataFrame:
        """``GROUP``, ``TIME`` and the changes of the counters, of an argument that is DISTINCT."""
        return swept.changes.rename({VALUE: self.argument.column}).select(GROUP, TIME, *self._added)

    def remembered(self, state: State, keys: Sequence[str]) -> tuple[str, pl.DataFrame]:
        """What is remembered, as rows of the table that is named."""
        rows = counted(state, self._name(""), (*keys, VALUE), (COUNT,), keys)
        return self._name("pending"), rows

    @property
    def _looks_at_groups(self) -> bool:
        """Whether all values of a group that changes are looked at."""
        return "median" in self.argument.functions or self.argument.keeps_wide

    def _name(self, table: str) -> str:
        return f"bag{self.argument.index}.{table}"


def sweep_values(
    totals: pl.DataFrame, deltas: pl.DataFrame, *, since: int, time: Time, distinct: bool = False
) -> Swept:
    """What becomes of the values of groups up to a watermark.

    Args:
        totals: ``GROUP``, ``VALUE`` and ``COUNT`` at the last watermark.
        deltas: ``GROUP``, ``VALUE``, ``TIME`` and changes of ``COUNT``.
        since: The last watermark.
        time: The watermark.
        distinct: Whether a value that is there counts once.
    """
    frames = [frame.rename({GROUP: _OUTER}) for frame in (totals, deltas)]
    names, (known, moves) = encode((_OUTER, VALUE), frames)
    # The group's own timeline begins where its output last changed, which may be long before
    # the count of a value did: what is carried over covers that row, too.
    known = known.with_columns(pl.lit(0, TIME_TYPE).alias(SINCE))
    late = overdue(time)
    moved, unmoved = touched(known, moves, final=late is not None)
    rows = timeline(moved, moves, (COUNT,))
    closed, opened = cut(
        rows,
        present=pl.col(COUNT) > 0,
        outputs=() if distinct else (COUNT,),
        counters=(COUNT,),
        late=late,
    )
    opened = opened.filter(pl.col(COUNT) > 0)
    there = pl.concat([unmoved.select(opened.columns), opened])
    there = there.with_columns(pl.col(SINCE).alias(START), pl.lit(END_OF_TIME).alias(END))
    if distinct:
        once = pl.lit(1, pl.Int64).alias(COUNT)
        closed, there = closed.with_columns(once), there.with_columns(once)
    pieces = pl.concat([closed, there.select(closed.columns)])
    return Swept(
        *(
            named(frame, names).rename({_OUTER: GROUP})
            for frame in (pieces, moved.select(GROUP), opened, _appearances(rows, since))
        )
    )


def _appearances(rows: pl.DataFrame, since: int) -> pl.DataFrame:
    """Where a count has become more than zero, with sign 1, or zero, with sign -1."""
    here = pl.col(COUNT) > 0
    new = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1))
    before = here.shift(1) & ~new
    sign = (here.cast(pl.Int64) - before.cast(pl.Int64).fill_null(0)).alias(_SIGN)
    # What begins before the last watermark has been carried over, and has not changed.
    return (
        rows.with_columns(sign)
        .filter((pl.col(TIME) >= since) & (pl.col(_SIGN) != 0))
        .select(GROUP, TIME, _SIGN)
    )
