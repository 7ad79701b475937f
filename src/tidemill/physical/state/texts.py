"""Texts: the letters that rows hold on to, and those that they have.

To Polars a column of texts is views of letters, in buffers that frames share. Rows that are
filtered, gathered or put together are new views; the buffers they come from stay in memory, whole,
for as long as one view of each does. In what passes by that is quick. What stays must not keep the
letters of rows that do not: those of a whole stream, of which a filter lets few rows into a window.

Law: ``with_own_texts(frame)`` has the rows of ``frame``, and what its columns hold on to is at most
twice the letters that they have.
"""

from __future__ import annotations

import polars as pl

from tidemill.physical.frames import framed

__all__ = ["held_bytes", "with_own_texts"]

_VIEWS = pl.CompatLevel.newest()
_FIRST_TEXT = 2
"""The buffers of an array of views: which are NULL, the views, and then those of the letters."""


def with_own_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows, without the letters of others."""
    columns = frame.get_columns()
    own = [column + "" if _holds_others(column) else column for column in columns]
    return framed(own) if any(a is not b for a, b in zip(columns, own, strict=True)) else frame


def held_bytes(column: pl.Series) -> int:
    """How many bytes of letters a column of texts keeps in memory; short ones are in the views."""
    buffers = column.to_arrow(compat_level=_VIEWS).buffers()
    return sum(buffer.size for buffer in buffers[_FIRST_TEXT:] if buffer is not None)


def _holds_others(column: pl.Series) -> bool:
    # The size of a column of texts is that of its letters.
    return column.dtype == pl.String and held_bytes(column) > 2 * column.estimated_size()
