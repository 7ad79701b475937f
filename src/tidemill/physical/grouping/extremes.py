"""The least or the greatest value of an aggregate's argument in each group.

Kept in two tables: ``pending`` elements that start at or after the watermark, and ``stairs``, of
those that have started the ones that can still be the least or greatest. One that ends no later
than another that is no worse never is, so of n elements with random values some log(n) are kept.
A watermark touches only the stairs of groups that change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import Kind
from tidemill.physical.frames import pick
from tidemill.physical.grouping.handed import begun
from tidemill.physical.kernels.cover import VALUE, extremes, located, staircase
from tidemill.physical.kernels.sweep import GROUP
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.operator import State

__all__ = ["Extreme"]


@dataclass(frozen=True, slots=True)
class Extreme:
    """``min`` or ``max`` of one argument."""

    argument: Argument
    greatest: bool

    @property
    def function(self) -> str:
        """The aggregate."""
        return "max" if self.greatest else "min"

    @property
    def column(self) -> str:
        """The name of the column of values in what elements contribute."""
        return f"{self.argument.column}.{self.function}"

    def tables(self, keys: dict[str, pl.DataType]) -> dict[str, Table]:
        """Its tables of state, by name."""
        row = {**keys, VALUE: polars_type(self.argument.type), END: TIME_TYPE}
        return {
            self._name("pending"): Table({**row, START: TIME_TYPE}, (START, END)),
            self._name("stairs"): KeyedTable(row, (END,), index=list(keys)),
        }

    def insert(self, state: State, elements: pl.DataFrame, *, panes: bool) -> None:
        """Remember the values of elements, given what they contribute."""
        pending = state.tables[self._name("pending")]
        row = [name for name in pending.schema if name != VALUE]
        values = pick(elements, (*row, self.column)).rename({self.column: VALUE})
        values = values.filter(pl.col(VALUE).is_not_null())
        if panes:
            values = values.group_by(row).agg(self.best(VALUE))
        pending.insert(values)

    def extract(
        self, state: State, time: Time, groups: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The stairs of groups, in the end of all, and the elements that start before ``time``.

        They are forgotten.
        """
        started = state.tables[self._name("pending")].extract(START, time)
        stairs = keyed(state, self._name("stairs"))
        return stairs.drain() if time == END_OF_TIME else stairs.take(groups), started

    def sweep(
        self, stairs: pl.DataFrame, started: pl.DataFrame, rows: pl.DataFrame, time: Time
    ) -> tuple[pl.Series, pl.DataFrame]:
        """The least or greatest value at each row of a timeline, and the stairs from ``time`` on.

        Args:
            stairs: What ``extract`` gave, with ``GROUP`` for the keys.
            started: Likewise.
            rows: The timeline of the groups that have changed, with its rows numbered.
            time: The watermark.
        """
        before = pl.lit(None, TIME_TYPE).alias(START)
        pieces = pl.concat(
            [
                frame.select(GROUP, VALUE, START, END)
                for frame in (stairs.with_columns(before), started)
            ]
        )
        values = extremes(located(rows, pieces), rows.height, greatest=self.greatest)
        # What ends at the watermark is there until that instant is looked at.
        active = pieces.filter((pl.col(END) >= time) & (time < END_OF_TIME))
        return values, staircase(active, greatest=self.greatest).drop(START)

    def store(self, state: State, stairs: pl.DataFrame) -> None:
        """Remember the stairs, with keys, until the next watermark."""
        state.tables[self._name("stairs")].insert(stairs)

    def remembered(self, state: State, keys: Sequence[str]) -> tuple[str, pl.DataFrame]:
        """What is remembered, as rows of the table that is named."""
        pending, stairs = (state.tables[self._name(name)].all() for name in ("pending", "stairs"))
        known = begun(stairs, state.tables["totals"].all(), keys)
        return self._name("pending"), pl.concat([pick(known, pending.columns), pending])

    def best(self, column: str) -> pl.Expr:
        """The least or greatest of a column of values; NULLs are passed over."""
        if not self.greatest:
            return pl.col(column).min()  # which passes over NaN, the greatest
        is_double = self.argument.type.kind is Kind.DOUBLE
        return pl.col(column).nan_max() if is_double else pl.col(column).max()

    def _name(self, table: str) -> str:
        return f"{self.function}{self.argument.index}.{table}"
