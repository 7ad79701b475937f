"""What every runtime gives a session: queries that run, and what has become of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.adapting import Adapting
    from tidemill.engine.ingest import Gate
    from tidemill.history.table_view import TableView
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.measuring.measured import Measured
    from tidemill.runtime.metrics import Adapted, OperatorMetrics
    from tidemill.runtime.past import Past
    from tidemill.runtime.progress import Progress

__all__ = ["Moment", "Runs"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a pipeline stands between two batches, when nothing is on its way.

    Attributes:
        latest: The greatest time that any row of each stream has had so far, rows that were refused
            as late aside; of a stream without a time of its own, that of the last batch. Streams on
            which nothing has come are not in it.
        watermarks: How far each stream has come; others are at their beginning.
        now: The time of the last batch; 0 before the first.
        known: Up to when the answer of each query is known.
        kept: From which instant on all rows of a stream are kept, of those that keep their past.
        batches: How many batches have been done.
        reached: How far each stream has come for those that read it now.
    """

    latest: Mapping[str, Time] = field(default_factory=dict)
    watermarks: Mapping[str, Time] = field(default_factory=dict)
    now: Time = field(default=Time(0))
    known: Mapping[str, Time] = field(default_factory=dict)
    kept: Mapping[str, Time] = field(default_factory=dict)
    batches: int = 0
    reached: Mapping[str, Time] = field(default_factory=dict)

    @property
    def next(self) -> Time:
        """The first instant before which nothing new can be: all that has come is from before."""
        return Time(max((0, *(t + 1 for t in self.latest.values()), *self.watermarks.values())))


class Runs(Protocol):
    """The queries of a catalog, to be run or run, and what has become of them."""

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if it was there."""
        ...

    def table(self, name: str) -> TableView | None:
        """A table as it is after the last batch that is done, if it was there."""
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

    def measured(self) -> Measured:
        """What has been found out of what comes in, up to now."""
        ...

    def known(self, catalog: Catalog) -> Statistics:
        """What is known of what comes in, for queries of a catalog that are planned now."""
        ...

    def start(self) -> None:
        """Process what comes, until it is stopped."""
        ...

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed."""
        ...

    def moment(self) -> Moment:
        """Where it stands now."""
        ...

    def past(self) -> Past | Path:
        """What streams have kept, at the last boundary; or the checkpoint to read that from."""
        ...

    def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        """Go on with another catalog, from the next batch on.

        Args:
            decide: Is told, between two batches, where the pipeline stands, and gives the catalog.

        Returns:
            The catalog that was given.
        """
        ...

    def follow(self, ask: Callable[[Moment], Catalog | None]) -> None:
        """Ask between any two batches, from now on, and go on with the catalog that is given.

        The next batch is not put off: there is one, even if nothing has come, when the catalog is
        another, so that rows leave that have waited for it.

        Args:
            ask: Is told where the pipeline stands, and gives the catalog to go on with; ``None`` to
                go on as it is. It may have to be asked again, since it never waits.
        """
        ...

    @property
    def partitions(self) -> int:
        """How many partitions state is kept in."""
        ...

    def planned_again(self, query: str) -> Planned:
        """The plan that would be made today of a query that runs, for the place it runs in."""
        ...

    def adapt(self, adapting: Adapting | None) -> None:
        """Let joins change their trees so from the next batch on, and plan new queries for it.

        Args:
            adapting: How; ``None`` if they do not, and are not planned for it.
        """
        ...

    def adapted(self) -> Sequence[Adapted]:
        """What joins have decided since this was asked last."""
        ...

    def outdated(self) -> frozenset[str]:
        """The queries that go on with plans of other settings, where those of now make others."""
        ...

    def close(self) -> None:
        """Stop, if it runs, and let go of everything but the answers."""
        ...
