"""Partners: the rows of an input that combinations may meet, where they are remembered.

Law: ``meeting`` gives every row that a combination of such a key can be valid with, once. Others it
may give as well, so that little is gone through: what is given is paired by its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import polars as pl

from tidemill.model.batch import END, SIGN
from tidemill.physical.frames import pick
from tidemill.physical.joining.probe import WEIGHT
from tidemill.physical.signs.pieces import standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.time import Time
    from tidemill.physical.state.keyed import KeyedTable
    from tidemill.physical.state.table import Table

__all__ = ["Given", "Living", "Partners", "Standing"]


class Partners(Protocol):
    """The rows of an input."""

    def is_empty(self) -> bool:
        """Whether there is none."""
        ...

    def meeting(self, by: Sequence[str], keys: pl.DataFrame) -> pl.DataFrame:
        """At least the rows that have one of the keys.

        Args:
            by: Columns that hold the key; without any, all rows have the same.
            keys: As many columns, of the same types.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Rows that are at hand."""

    rows: pl.DataFrame

    def is_empty(self) -> bool:
        """Whether there is none."""
        return self.rows.is_empty()

    def meeting(self, by: Sequence[str], keys: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002
        """All of them."""
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Living:
    """Elements of a table that have not ended.

    Attributes:
        table: The table.
        after: When the first of the combinations begins.
        is_late: Whether the table keeps much that is over.
    """

    table: Table
    after: Time
    is_late: bool = False

    def is_empty(self) -> bool:
        """Whether nothing is remembered."""
        return self.table.is_empty()

    def meeting(self, by: Sequence[str], keys: pl.DataFrame) -> pl.DataFrame:
        """At least those with one of the keys that end after the first combination begins."""
        found = self.table.meeting(END, after=self.after, by=by, keys=keys)
        return found.filter(pl.col(END) > self.after) if self.is_late else found


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Rows of a table that stand, as pieces with weights, and pieces of those that change.

    Attributes:
        table: The rows that do not change, each once with how often in ``SIGN``.
        changing: The others, likewise.
    """

    table: KeyedTable
    changing: pl.DataFrame | None = None

    def is_empty(self) -> bool:
        """Whether there is none."""
        return self.table.is_empty() and (self.changing is None or self.changing.is_empty())

    def meeting(self, by: Sequence[str], keys: pl.DataFrame) -> pl.DataFrame:
        """At least those with one of the keys, and all that change."""
        found = standing(self.table.candidates(by, keys))
        if self.changing is not None and not self.changing.is_empty():
            found = pl.concat([found, pick(self.changing, found.columns)])
        return found.rename({SIGN: WEIGHT})
