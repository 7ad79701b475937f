"""The different values of an aggregate's argument in each group, and how often each occurs.

Kept for DISTINCT, ``median`` and wide numbers, in three tables: ``pending``, ``ends`` and
``totals``, as of the aggregation itself, but by keys and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.kernels.cover import COUNT, VALUE
from tidemill.physical.kernels.sweep import (
    GROUP,
    SINCE,
    TIME,
    cut,
    encode,
    named,
    timeline,
    touched,
)
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.operator import State

__all__ = ["Bag", "Swept"]

_OUTER, _SIGN = "@outer", "@sign"


@dataclass(frozen=True, slots=True)
class Swept:
    """What has become of the values up to a watermark.

    Attributes:
        pieces: ``GROUP``, ``VALUE``, ``COUNT``, ``START`` and ``END``: the values, as far as they
            can matter after the last watermark. What has not ended yet ends with time.
        totals: ``GROUP``, ``VALUE``, ``SINCE`` and ``COUNT``: what is still there.
        changes: ``GROUP``, the argument's column, ``TIME`` and a sign: where a value has appeared
            or disappeared.
    """

    pieces: pl.DataFrame
    totals: pl.DataFrame
    changes: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Bag:
    """The values of one argument."""

    argument: Argument

    def tables(self, keys: dict[str, pl.DataType]) -> dict[str, Table]:
        """Its tables of state, by name."""
        row = {**keys, VALUE: polars_type(self.argument.type)}
        count = {COUNT: pl.Int64()}
        interval = {START: TIME_TYPE, END: TIME_TYPE}
        return {
            self._name("pending"): Table({**row, **interval, **count}, (START, END)),
            self._name("ends"): Table({**row, END: TIME_TYPE, **count}, (END,)),
            self._name("totals"): Table({**row, SINCE: TIME_TYPE, **count}, (SINCE,)),
        }

    def insert(self, state: State, elements: pl.DataFrame, *, panes: bool) -> None:
        """Remember the values of elements, with keys, ``START`` and ``END``."""
        argument = self.argument
        kept = (
            pl.col(argument.column).is_not_null() if argument.keeps_values else argument.is_wide()
        )
        pending = state.tables[self._name("pending")]
        row = [name for name in pending.schema if name != COUNT]
        values = elements.filter(kept).rename({argument.column: VALUE}).select(row)
        if panes:
            values = values.group_by(row).agg(pl.len().cast(pl.Int64).alias(COUNT))
        else:
            values = values.with_columns(pl.lit(1, pl.Int64).alias(COUNT))
        pending.insert(values)

    def extract(self, state: State, time: Time) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The totals, and the changes before ``time``, which are forgotten."""
        ends = state.tables[self._name("ends")]
        started = state.tables[self._name("pending")].extract(START, time)
        ends.insert(started.filter(pl.col(END) < END_OF_TIME))
        ended = ends.extract(END, time).with_columns(pl.col(COUNT) * -1).rename({END: TIME})
        begun = started.drop(END).rename({START: TIME}).select(ended.columns)
        return state.tables[self._name("totals")].all(), pl.concat([begun, ended])

    def store(self, state: State, totals: pl.DataFrame) -> None:
        """Remember the totals, with keys, until the next watermark."""
        table = state.tables[self._name("totals")]
        table.clear()
        table.insert(totals)

    def sweep(
        self, totals: pl.DataFrame, deltas: pl.DataFrame, *, since: int, final: bool
    ) -> Swept:
        """Bring the totals up to date.

        Args:
            totals: What ``extract`` gave, with ``GROUP`` for the keys.
            deltas: Likewise.
            since: The last watermark.
            final: Whether time ends here.
        """
        frames = [frame.rename({GROUP: _OUTER}) for frame in (totals, deltas)]
        names, (known, moves) = encode((_OUTER, VALUE), frames)
        # The group's own timeline begins where its output last changed, which may be long before
        # the count of a value did: what is carried over covers that row, too.
        known = known.with_columns(pl.lit(0, TIME_TYPE).alias(SINCE))
        moved, unmoved = touched(known, moves, final=final)
        rows = timeline(moved, moves, (COUNT,))
        closed, opened = cut(
            rows,
            present=pl.col(COUNT) > 0,
            outputs=() if self.argument.distinct else (COUNT,),
            counters=(COUNT,),
            final=final,
        )
        opened = opened.filter(pl.col(COUNT) > 0)
        left = pl.concat([unmoved.select(opened.columns), opened])
        open_pieces = left.rename({SINCE: START}).with_columns(
            pl.lit(END_OF_TIME, TIME_TYPE).alias(END)
        )
        if self.argument.distinct:
            closed, open_pieces = (
                frame.with_columns(pl.lit(1, pl.Int64).alias(COUNT))
                for frame in (closed, open_pieces)
            )
        pieces = pl.concat([closed, open_pieces.select(closed.columns)])
        return Swept(
            *(
                named(frame, names).rename({_OUTER: GROUP})
                for frame in (pieces, left, _appearances(rows, since))
            )
        )

    def contributions(self, swept: Swept) -> pl.DataFrame:
        """``GROUP``, ``TIME`` and the changes of the counters, of an argument that is DISTINCT."""
        sign = pl.col(_SIGN)
        added = [
            (expr * sign).alias(expr.meta.output_name()) for expr in self.argument.contributions()
        ]
        return swept.changes.rename({VALUE: self.argument.column}).select(GROUP, TIME, *added)

    def _name(self, table: str) -> str:
        return f"bag{self.argument.index}.{table}"


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
