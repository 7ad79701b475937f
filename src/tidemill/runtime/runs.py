"""What every runtime gives a session: queries that run, and what has become of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.ingest import Gate
    from tidemill.optimizer.planner import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.progress import Progress

__all__ = ["Runs"]


class Runs(Protocol):
    """The queries of a catalog, to be run or run, and what has become of them."""

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if it was there."""
        ...

    def planned(self, query: str) -> Planned | None:
        """The plan that a query runs with, if it runs or was run."""
        ...

    @property
    def gates(self) -> Mapping[str, Gate]:
        """What came on each stream, and what was refused."""
        ...

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream, one of ``gates``, that were refused and are kept."""
        ...

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold; the streams end then, unless they are to go on."""
        ...

    def progress(self) -> Progress:
        """How far it has come."""
        ...

    def metrics(self) -> Mapping[str, OperatorMetrics]:
        """What each operator has done and remembers, by its fingerprint."""
        ...

    def start(self) -> None:
        """Process what comes, until it is stopped."""
        ...

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed."""
        ...

    def change(self, catalog: Catalog) -> None:
        """Go on with another catalog."""
        ...

    def close(self) -> None:
        """Stop, if it runs, and let go of everything but the answers."""
        ...
