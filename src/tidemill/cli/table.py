"""Tables: how all tables of the terminal look."""

from __future__ import annotations

from rich import box
from rich.table import Table

__all__ = ["table"]


def table(*columns: str, numbers: tuple[str, ...] = (), is_dense: bool = False) -> Table:
    """An empty table; columns of numbers are set to the right; a dense one has no rule."""
    made = Table(box=None if is_dense else box.SIMPLE_HEAD, show_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", no_wrap=True)
    return made
