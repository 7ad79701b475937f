"""Views: what channels get out of a bundle, computed when it is looked at, and once for all.

A view is rows of a bundle that have arrived: those with the bit of a channel, with its columns, and
in the validity that a time window gives them. Who wants the rows gets them. A stack does not want
them: it takes what many views have in common from the bundle itself (``engine/stacks.py``).

Law:    ``rows`` are those that the channel, and the window above it, would have given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import END, ID, START
from tidemill.physical.eval import compile_expr
from tidemill.physical.frames import framed, keep_few, pick
from tidemill.physical.operators.windows.validity import Validity, validities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tidemill.algebra.expr import Expr, Named
    from tidemill.engine.bundles import Bundle, Member
    from tidemill.model.batch import Batch
    from tidemill.physical.operators.aggregate.crowd import Panes

__all__ = ["Arrived", "View", "views_of"]


class Arrived:
    """The rows of a bundle that have arrived in a step.

    Args:
        bundle: The bundle.
        batches: The rows.

    Attributes:
        rows: All of them.
        panes: Those that have been found, by the keys of their groups, if rows become fewer, and
            the window.
    """

    def __init__(self, bundle: Bundle, batches: Iterable[Batch]) -> None:
        self.rows = pl.concat(batches, rechunk=True)
        self._wanted = bundle.unpacked(self.rows)
        self.panes: dict[tuple[tuple[Expr, ...] | None, Validity], Panes] = {}
        self._windows: dict[Validity, Windowed] = {}

    def wanted(self, bit: int | None) -> NDArray[np.bool_]:
        """Which rows are wanted."""
        return np.ones(self.rows.height, bool) if bit is None else self._wanted[bit]

    def windowed(self, validity: Validity) -> Windowed:
        """The rows that a window shows, and when."""
        if validity not in self._windows:
            numbers, times = validities(validity, self.rows)
            is_all = len(numbers) == self.rows.height
            self._windows[validity] = Windowed(None if is_all else numbers, times)
        return self._windows[validity]


class Windowed(NamedTuple):
    """Rows in a window.

    Attributes:
        numbers: The numbers of the rows; ``None`` for all.
        times: Their starts and ends.
    """

    numbers: NDArray[np.intp] | None
    times: pl.DataFrame

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of the rows that the window shows, in their new validity."""
        shown = rows if self.numbers is None else rows[pl.Series(self.numbers)]
        return shown.with_columns(self.times.get_columns())


@dataclass(frozen=True)
class View:
    """The rows of a channel.

    Attributes:
        arrived: The rows of the bundle.
        member: The channel.
        validity: What a window above the channel makes of their time, if there is one.
    """

    arrived: Arrived
    member: Member
    validity: Validity | None = None
    _rows: list[Batch] = field(default_factory=list, repr=False, compare=False)

    def windowed(self, validity: Validity) -> View:
        """The same rows in a window."""
        assert self.validity is None, "one window after the other is computed by itself"
        return replace(self, validity=validity, _rows=[])

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows of the bundle, or of those that the window shows, are the view's."""
        wanted = self.arrived.wanted(self.member.bit)
        if self.validity is None:
            return wanted
        numbers = self.arrived.windowed(self.validity).numbers
        return wanted if numbers is None else wanted[numbers]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(np.count_nonzero(self.mask))

    def rows(self) -> list[Batch]:
        """The rows."""
        if not self._rows:
            made = self._made()
            self._rows[:] = [made]
        return [batch for batch in self._rows if batch.height]

    def _made(self) -> Batch:
        rows: Batch = self.arrived.rows
        times: tuple[str, ...] = (START, END)
        if self.validity is not None:
            rows = self.arrived.windowed(self.validity).of(rows)
        elif ID in rows.columns:
            times = (START, END, ID)
        return _columns(keep_few(rows, self.mask), self.member, times)


def _columns(rows: pl.DataFrame, member: Member, times: tuple[str, ...]) -> Batch:
    """The columns of a channel, and those of time."""
    columns = member.selection.columns
    made = [c for c in columns if not isinstance(c.expr, Column)]
    computed = rows.select(*(compile_expr(c.expr).alias(c.name) for c in made)) if made else None
    row = (_column(rows, column, computed) for column in columns)
    return framed([*row, *pick(rows, times).get_columns()])


def _column(rows: pl.DataFrame, column: Named, computed: pl.DataFrame | None) -> pl.Series:
    if isinstance(column.expr, Column):
        return rows.get_column(column.expr.name).alias(column.name)
    assert computed is not None, "what is no column is computed"
    return computed.get_column(column.name)


def views_of(bundles: Mapping[str, Bundle], arrived: Mapping[str, list[Batch]]) -> dict[str, View]:
    """The views of channels, given what has arrived on the channels of bundles."""
    views: dict[str, View] = {}
    for name, batches in arrived.items():
        if batches:
            here = Arrived(bundles[name], batches)
            views |= {member.channel: View(here, member) for member in bundles[name].members}
    return views
