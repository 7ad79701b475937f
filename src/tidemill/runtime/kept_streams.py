"""Streams that keep their past: they are read as long as they are there, by queries or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import StreamEntry
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from tidemill.catalog.catalog import Catalog

__all__ = ["kept_streams"]


def kept_streams(catalog: Catalog) -> dict[str, StreamEntry]:
    """The streams of a catalog that keep their past, by name."""
    entries = catalog.entries(ObjectKind.STREAM)
    return {e.name: e for e in entries if isinstance(e, StreamEntry) and e.keep is not None}
