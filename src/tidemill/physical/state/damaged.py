"""Damage: state at rest that is not what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

__all__ = ["DamagedError", "require_columns"]


class DamagedError(Exception):
    """State at rest is not what was written, or not that of the operator."""


def require_columns(frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> None:
    """Refuse a segment that has other columns than its table, or columns of other types.

    Raises:
        DamagedError: It has.
    """
    if frame.schema == schema:
        return
    wanted = ", ".join(f"{name} {type_}" for name, type_ in schema.items())
    there = ", ".join(f"{name} {type_}" for name, type_ in frame.schema.items())
    raise DamagedError(f"a segment has the columns {there}, and its table {wanted}")
