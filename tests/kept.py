"""Sessions with a catalog that lasts, on the local engine: what a job remembers is not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.connectors.connector import Engine
from tidemill.control.kept import KeptCatalog
from tidemill.runtime.local.job import Job, Settings
from tidemill.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog

__all__ = ["content", "kept_session"]


def kept_session(directory: Path) -> Session:
    """A session whose catalog is kept in a directory."""
    return Session(
        lambda catalog, frames, callbacks: Job(catalog, frames, Settings(), callbacks),
        engine=Engine.LOCAL,
        kept=KeptCatalog(directory, Engine.LOCAL),
    )


def content(catalog: Catalog) -> tuple[dict[str, object], dict[str, object]]:
    """A catalog as a value."""
    return dict(catalog.objects), dict(catalog.functions)
