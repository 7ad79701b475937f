"""Compacts string buffers, so that a small frame does not keep a large one alive.

To Polars a column of strings is views into buffers that frames share. Rows that are filtered,
gathered or put together are new views; a buffer stays in memory, as a whole, for as long as one
view of it does. For rows that pass by that is quick. Rows that stay in a state must not keep the
characters of rows that do not: those of a whole stream, of which a filter lets few rows into a
window.

Law: ``compact_strings(frame)`` has the rows of ``frame``, and its columns keep at most twice the
bytes of their own strings.
"""

from __future__ import annotations

import polars as pl

from tidemill.physical.frames import framed

__all__ = ["compact_strings", "held_bytes"]

_VIEWS = pl.CompatLevel.newest()
_FIRST_CHARACTERS = 2
"""The buffers of an array of views: which are NULL, the views, and then the characters."""


def compact_strings(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows, without the strings of others."""
    columns = frame.get_columns()
    own = [column + "" if _holds_others(column) else column for column in columns]
    return framed(own) if any(a is not b for a, b in zip(columns, own, strict=True)) else frame


def held_bytes(column: pl.Series) -> int:
    """How many bytes of buffers a column of strings keeps; short strings are in the views."""
    buffers = column.to_arrow(compat_level=_VIEWS).buffers()
    return sum(buffer.size for buffer in buffers[_FIRST_CHARACTERS:] if buffer is not None)


def _holds_others(column: pl.Series) -> bool:
    # The size of a column of strings is that of its characters.
    return column.dtype == pl.String and held_bytes(column) > 2 * column.estimated_size()
