"""What can be seen of queries that live, in one moment of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.control.given import answer_in, figures_in, is_in, planned_in
from tidemill.control.shown import by_query, query_listing, with_queries
from tidemill.errors import BindError, RunError
from tidemill.lang.statements import Name, ObjectKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.listing import Listing
    from tidemill.errors import Span
    from tidemill.model.time import Time
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planned import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.runs import Runs

__all__ = ["Look"]


@dataclass(frozen=True, slots=True)
class Look:
    """What can be seen of the queries of a session.

    Attributes:
        catalog: What is registered.
        job: What runs, or has run as it should.
        active: What runs or was run last, whatever came of it.
        past: What instances gave that do not run any more.
        planner: How a query would be computed.
        is_running: Whether the job goes on until it is stopped.
        shown: Gives what is registered, with the instants from which queries answer.
        kept: Gives the plan that a query goes on with; ``None`` if it has never run.
    """

    catalog: Catalog
    job: Runs | None
    active: Runs | None
    past: Mapping[str, Answer]
    planner: Callable[[QueryEntry], Planned]
    is_running: bool
    shown: Callable[[], Catalog]
    kept: Callable[[QueryEntry], Planned | None] = lambda _: None

    def query_entry(self, name: Name) -> QueryEntry:
        """A query by its name.

        Raises:
            BindError: There is none.
        """
        entry = self.catalog.get(name)
        if not isinstance(entry, QueryEntry):
            raise BindError(
                f'"{entry.name}" is not a query',
                span=name.span,
                hint="only queries can be changed, started and stopped",
            )
        return entry

    def table_entry(self, name: Name) -> QueryEntry:
        """A table by its name.

        Raises:
            BindError: There is none.
        """
        entry = self.catalog.get(name)
        if not isinstance(entry, QueryEntry) or not entry.is_table:
            raise BindError(
                f'"{entry.name}" is not a table',
                span=name.span,
                hint="CREATE TABLE … AS keeps the answer of a query",
            )
        return entry

    def listing(self) -> Listing:
        """The queries, with what they do and from when on their answers are complete."""
        catalog = self.shown()
        entries = catalog.entries(ObjectKind.QUERY)
        has_lived = any(isinstance(e, QueryEntry) and e.record is not None for e in entries)
        job = self.active if self.is_running and has_lived else None
        known = {} if job is None else job.moment().known
        return query_listing(catalog, known, is_running=self.is_running)

    def kept_from(self) -> Mapping[str, Time] | None:
        """From which instant on rows of each stream are kept; ``None`` if nothing runs."""
        job = self.active if self.is_running else None
        return None if job is None else job.moment().kept

    def finished(self) -> Runs:
        """What runs, or has run as it should.

        Raises:
            RunError: Nothing has.
        """
        if self.job is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        return self.job

    def _latest(self) -> Runs:
        """What runs or was run last, whatever came of it."""
        if self.active is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        return self.active

    def progress(self) -> Progress:
        """How far what is running, or was run last, has come."""
        return by_query(self._latest().progress())

    def metrics(self) -> Iterator[OperatorMetrics]:
        """What each operator of what is running, or was run last, has done and remembers."""
        return with_queries(self._latest().metrics().values())

    def answer(self, query: str, version: int | None = None) -> Answer | None:
        """What a query gave in the last run; ``None`` if it was not there."""
        return answer_in(self.finished(), self.catalog, self.past, query, version)

    def current_answer(self, query: str) -> Answer | None:
        """What a query has given so far, if it is there and its answer is kept."""
        if self.active is None:
            return None
        try:
            return answer_in(self.active, self.catalog, self.past, query)
        except RunError:
            return None

    def is_active(self, query: str) -> bool:
        """Whether a query is in what is running, or was run last."""
        return self.active is not None and is_in(self.active, self.catalog, self.past, query)

    def begun(self) -> list[str]:
        """The queries and tables that run, or are to run."""
        entries = [*self.catalog.entries(ObjectKind.QUERY), *self.catalog.entries(ObjectKind.TABLE)]
        queries = {entry.name: entry for entry in entries if isinstance(entry, QueryEntry)}
        return [name for name, entry in queries.items() if not _is_over(entry)]

    def planned(self, query: str, *, span: Span | None = None) -> Planned:
        """How a registered query is computed: the plan it runs with, or would run with.

        Raises:
            BindError: There is no such query.
            RunError: The plan that it goes on with cannot be read.
        """

        def planner(entry: QueryEntry) -> Planned:
            return self.kept(entry) or self.planner(entry)

        return planned_in(self.active, self.catalog, planner, Name(query, span))

    def figures(self, planned: Planned) -> dict[str, Figures]:
        """What was measured of the operators of a query that runs, or was run."""
        return figures_in(self.active, self.catalog, planned)


def _is_over(query: QueryEntry) -> bool:
    """Whether it has answered all it had to."""
    record = query.record
    return record is not None and {one.number for one in record.instances} <= record.ended
