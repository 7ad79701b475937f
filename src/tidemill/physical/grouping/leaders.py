"""The least or the greatest value of an aggregate's argument where elements do not know their ends.

Any value may be withdrawn at any time, so all are kept, each with how often it is there. But only
the best of a group, its ``leaders``, are looked at when it changes; the ``others`` are found one by
one where they come and go. When a group has run out of leaders, the best of the others follow.

Law:    each leader is better than all others of its group, and a group with values has leaders. So
        the best leader is the best value.
State:  ``pending`` changes at or after the watermark, ``leaders`` and ``others``: a row for each
        value that is there.
Cost:   a group of n values has some sqrt(n) leaders, which a watermark looks at if the group
        changes; all of them only after so many leaders have gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import START, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import Kind
from tidemill.physical.frames import pick
from tidemill.physical.grouping.bags import Swept, sweep_values
from tidemill.physical.grouping.handed import begun
from tidemill.physical.kernels.arguments import ROWS
from tidemill.physical.kernels.cover import COUNT, VALUE, extremes, located
from tidemill.physical.kernels.sweep import GROUP, TIME, encode, latest, named
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.operator import State

__all__ = ["Leaders", "SweptStep"]

_LEAST_LEADERS = 64
"""A group has at least so many leaders, if it has so many values, when they are chosen."""

_ROOTS = 4
"""And this many times the square root of the number of its values."""

_REFRESH_RATIO = 2
"""They are chosen anew when there are this many times as many."""

_WORST, _RANK, _MOST = "@worst", "@rank", "@most"


@dataclass(frozen=True, slots=True)
class SweptStep:
    """The groups that change in a step.

    Attributes:
        rows: Their timeline with the counters, its rows numbered.
        known: Their counters at the watermark before.
        names: The keys of the groups.
        since: The watermark before.
        time: The watermark.
    """

    rows: pl.DataFrame
    known: pl.DataFrame
    names: pl.DataFrame
    since: int
    time: Time


@dataclass(frozen=True, slots=True)
class Leaders:
    """``min`` or ``max`` of one argument."""

    argument: Argument
    greatest: bool

    @property
    def function(self) -> str:
        """The aggregate."""
        return "max" if self.greatest else "min"

    def tables(self, keys: dict[str, pl.DataType]) -> dict[str, Table]:
        """Its tables of state, by name."""
        row = {**keys, VALUE: polars_type(self.argument.type), COUNT: pl.Int64()}
        tables: dict[str, Table] = {
            self._name("pending"): Table({**row, START: TIME_TYPE}, (START,))
        }
        for part in ("leaders", "others"):
            tables[self._name(part)] = KeyedTable(row, (), index=list(keys), within=(VALUE,))
        return tables

    def insert(self, state: State, elements: pl.DataFrame, *, panes: bool) -> None:
        """Remember the values of elements, given what they contribute."""
        pending = state.tables[self._name("pending")]
        names = {self.argument.column: VALUE, ROWS: COUNT}
        row = [name for name in pending.schema if name not in names.values()]
        values = pick(elements, (*row, *names)).rename(names).filter(pl.col(VALUE).is_not_null())
        if panes:
            values = values.group_by(*row, VALUE).agg(pl.col(COUNT).sum())
        pending.insert(values)

    def extract(
        self, state: State, time: Time, groups: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The leaders of groups, in the end all values, and the changes before ``time``."""
        changes = state.tables[self._name("pending")].extract(START, time).rename({START: TIME})
        leaders, others = self._parts(state)
        if time == END_OF_TIME:
            return pl.concat([leaders.drain(), others.drain()]), changes
        return leaders.find(groups), changes

    def sweep(
        self, state: State, leaders: pl.DataFrame, changes: pl.DataFrame, step: SweptStep
    ) -> pl.Series:
        """The least or greatest value at each row of the timeline.

        Args:
            state: The state, which is brought up to date.
            leaders: What ``extract`` gave, with ``GROUP`` for the keys.
            changes: Likewise.
            step: The groups.
        """
        if step.time == END_OF_TIME:
            return self._best(step, _swept(leaders, changes, step).pieces)
        near, far = self._parted(leaders, changes, step)
        swept = _swept(leaders, near, step)
        best = self._best(step, swept.pieces)
        there = step.rows[self.argument.counter("n")] > 0
        short = step.rows[GROUP].filter(best.is_null() & there).unique()
        if not short.is_empty():
            others = self._take_all(state, short, step)
            own = pl.col(GROUP).is_in(short.implode())
            values = pl.concat([leaders.filter(own), others.select(leaders.columns)])
            again = _swept(values, changes.filter(own), step)
            pieces = pl.concat([swept.pieces.filter(~own), again.pieces])
            best = self._best(step, pieces)
            self._choose(state, _after(values, again), step)
            leaders, far = leaders.filter(~own), far.filter(~own)
            swept = replace(swept, moved=swept.moved.filter(~own), totals=swept.totals.filter(~own))
        self._store(state, leaders, swept, step)
        self._store_others(state, far, step)
        return best

    def remembered(self, state: State, keys: Sequence[str]) -> tuple[str, pl.DataFrame]:
        """What is remembered, as rows of the table that is named."""
        pending = state.tables[self._name("pending")].all()
        values = pl.concat([table.all() for table in self._parts(state)])
        known = begun(values, state.tables["totals"].all(), keys)
        return self._name("pending"), pl.concat([pick(known, pending.columns), pending])

    def _parted(
        self, leaders: pl.DataFrame, changes: pl.DataFrame, step: SweptStep
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The changes of leaders, and those of others."""
        by_group = leaders.group_by(GROUP).agg(self._worst().alias(_WORST), pl.col(COUNT).sum())
        all_ = step.known.select(GROUP, pl.col(self.argument.counter("n")).alias(_MOST))
        bounds = by_group.join(all_, on=GROUP).filter(pl.col(COUNT) < pl.col(_MOST))
        if bounds.is_empty():
            return changes, changes.clear()
        bounded = changes.join(
            bounds.select(GROUP, _WORST), on=GROUP, how="left", maintain_order="left"
        )
        worst, value = pl.col(_WORST), pl.col(VALUE)
        is_worse = (value < worst if self.greatest else value > worst).fill_null(value=False)
        split = bounded.select(is_worse).to_series()
        return changes.filter(~split), changes.filter(split)

    def _best(self, step: SweptStep, pieces: pl.DataFrame) -> pl.Series:
        rows = step.rows
        return extremes(located(rows, pieces), rows.height, greatest=self.greatest)

    def _worst(self) -> pl.Expr:
        if self.greatest:
            return pl.col(VALUE).min()  # which passes over NaN, the greatest
        is_double = self.argument.type.kind is Kind.DOUBLE
        return pl.col(VALUE).nan_max() if is_double else pl.col(VALUE).max()

    def _store(self, state: State, leaders: pl.DataFrame, swept: Swept, step: SweptStep) -> None:
        """Remember what has become of the leaders; where there are many, some are no more."""
        table, _ = self._parts(state)
        if table.rows():
            table.take(named(swept.moved, step.names))
        table.insert(named(swept.totals, step.names))
        now = _after(leaders, swept)
        counts = (
            now.group_by(GROUP).len(_RANK).filter(pl.col(_RANK) > _REFRESH_RATIO * _LEAST_LEADERS)
        )
        if counts.is_empty():
            return
        counts = counts.join(self._wanted(step), on=GROUP)
        many = counts.filter(pl.col(_RANK) > _REFRESH_RATIO * pl.col(_MOST))[GROUP]
        if not many.is_empty():
            own = now.filter(pl.col(GROUP).is_in(many.implode()))
            table.take(named(own.select(GROUP, VALUE), step.names))
            self._choose(state, own, step)

    def _choose(self, state: State, values: pl.DataFrame, step: SweptStep) -> None:
        """Remember the values of groups, of which none is remembered: the best as leaders."""
        ordered = values.sort(VALUE, descending=self.greatest).sort(GROUP, maintain_order=True)
        rank = pl.int_range(pl.len()).over(GROUP)
        ranked = ordered.join(self._wanted(step), on=GROUP, maintain_order="left")
        leads = ranked.select(rank < pl.col(_MOST)).to_series()
        for table, chosen in zip(self._parts(state), (leads, ~leads), strict=True):
            table.insert(named(ordered.filter(chosen), step.names))

    def _wanted(self, step: SweptStep) -> pl.DataFrame:
        """How many leaders each group is to have."""
        roots = _ROOTS * pl.col(self.argument.counter("n")).sqrt()
        return latest(step.rows).select(GROUP, (_LEAST_LEADERS + roots).cast(pl.Int64).alias(_MOST))

    def _store_others(self, state: State, changes: pl.DataFrame, step: SweptStep) -> None:
        if changes.is_empty():
            return
        _, others = self._parts(state)
        moved = changes.group_by(GROUP, VALUE).agg(pl.col(COUNT).sum())
        moved = named(moved.filter(pl.col(COUNT) != 0), step.names)
        row = [*step.names.columns, VALUE]
        known = others.take(pick(moved, row))
        _, (known, moved) = encode(row, [known, moved])
        both = pl.concat([known, moved.select(known.columns)])
        counts = both.group_by(GROUP).agg(pl.col(*row).first(), pl.col(COUNT).sum())
        others.insert(counts.filter(pl.col(COUNT) > 0))

    def _take_all(self, state: State, groups: pl.Series, step: SweptStep) -> pl.DataFrame:
        """The others of groups, with ``GROUP`` for the keys; no value of theirs is remembered."""
        leaders, others = self._parts(state)
        wanted = step.names[groups] if step.names.width else step.names
        leaders.take(wanted)
        taken = others.take(wanted)
        _, (_, numbered) = encode(step.names.columns, [wanted, taken])
        # The groups come first, each once: the number of a row is the place of its group.
        return numbered.with_columns(groups.gather(numbered[GROUP]).alias(GROUP))

    def _parts(self, state: State) -> tuple[KeyedTable, KeyedTable]:
        return keyed(state, self._name("leaders")), keyed(state, self._name("others"))

    def _name(self, table: str) -> str:
        return f"{self.function}{self.argument.index}.{table}"


def _swept(totals: pl.DataFrame, changes: pl.DataFrame, step: SweptStep) -> Swept:
    return sweep_values(totals, changes, since=step.since, time=step.time, distinct=True)


def _after(values: pl.DataFrame, swept: Swept) -> pl.DataFrame:
    """What has become of values: ``GROUP``, ``VALUE`` and ``COUNT``."""
    unmoved = values.join(swept.moved, on=(GROUP, VALUE), how="anti")
    return pl.concat([frame.select(GROUP, VALUE, COUNT) for frame in (unmoved, swept.totals)])
