"""Make tables search for keys where they would go through their rows, as these are few."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tidemill.physical.state import segment, table
from tidemill.physical.state.hashes import key_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = ["collide", "collide_in_half", "search_all", "searching"]


def search_all(patch: pytest.MonkeyPatch, *, small: int = 1, patience: int = 0) -> None:
    """Search every segment with so many rows, and merge such by tiers."""
    patch.setattr(table, "_SMALL_ROWS", small)
    patch.setattr(segment, "_FEWEST_ROWS", small)
    patch.setattr(segment, "_MANY_MORE", 0)
    patch.setattr(segment, "_PATIENCE", patience)


@contextmanager
def searching(small: int | None, *, patience: int = 0) -> Iterator[None]:
    """Search every segment with so many rows meanwhile; ``None`` goes through all there are."""
    with pytest.MonkeyPatch.context() as patch:
        search_all(patch, small=small or 1, patience=patience)
        if small is None:
            patch.setattr(segment, "_FEWEST_ROWS", 1 << 40)
        yield


def collide(keys: pl.DataFrame) -> pl.Series:
    """Few hashes for all keys."""
    return key_hash(keys) % 3


def collide_in_half(keys: pl.DataFrame) -> pl.Series:
    """Hashes that differ, but often not in the half that an index knows."""
    hashes = key_hash(keys)
    return hashes % 3 * 2**32 + hashes % 2**32
