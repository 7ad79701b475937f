"""The queries of a session while they live: the catalog, the job that runs it, and its changes.

A session is a catalog and at most one job. A change is decided between two batches, written down
where there is a checkpoint, and only then taken by the job; one that the job refuses has changed
nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from tidemill.algebra.reach import begun_at
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import QueryEntry
from tidemill.control.change import Changed
from tidemill.control.given import answer_in, is_in
from tidemill.control.instances import (
    instance_name,
    record_of,
    running_queries,
    user_name,
)
from tidemill.control.living import (
    altered,
    begun_again,
    carried_out,
    ended,
    rewritten,
    standpoint,
)
from tidemill.control.shown import by_query, query_listing, with_queries
from tidemill.control.standpoint import Standpoint
from tidemill.control.stored import records_of, with_records
from tidemill.control.verdict import verdict_on
from tidemill.errors import BindError, RunError
from tidemill.lang.statements import Name, ObjectKind
from tidemill.lang.unparse import unparse
from tidemill.model.time import Time
from tidemill.runtime.runs import Moment
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.catalog.listing import Listing
    from tidemill.catalog.records import Record, Version
    from tidemill.connectors.connector import Engine
    from tidemill.control.verdict import Verdict
    from tidemill.errors import Span
    from tidemill.lang.statements import Lifecycle
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planner import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.records_file import RecordKeeper
    from tidemill.runtime.runs import Runs

__all__ = ["LivingQueries"]


class LivingQueries:
    """The catalog of a session and the job that runs it.

    Args:
        planner: How a query would be computed.
        engine: Where the queries run.
        keeper: Where what has become of them is kept, if a later session is to go on.

    Attributes:
        catalog: What is registered now.
        is_running: Whether the job goes on until it is stopped.
    """

    def __init__(
        self,
        planner: Callable[[QueryEntry], Planned],
        *,
        engine: Engine | None = None,
        keeper: RecordKeeper | None = None,
    ) -> None:
        self.catalog = Catalog()
        self.is_running = False
        self._planner = planner
        self._engine = engine
        self._keeper = keeper
        self._job: Runs | None = None
        self._active: Runs | None = None
        self._past: dict[str, Answer] = {}  # what instances gave that do not run any more
        self._turn = Lock()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one thread at a time change what is registered, or it would undo what others do.

        Nobody waits: a callback would wait for a change that waits for the callback.

        Raises:
            RunError: Another thread is at it.
        """
        if not self._turn.acquire(blocking=False):
            raise RunError(
                "another thread is changing this session",
                hint="carry out statements one after another",
            )
        try:
            yield
        finally:
            self._turn.release()

    # Running

    def run(self, new_job: Callable[[Catalog], Runs], *, end: bool | None) -> None:
        """Process everything the sources hold; ``Session.run`` has the details."""
        self._refuse_while_running()
        job = new_job(self._to_run())
        self._active = job
        job.run(end=end)
        self._job = job

    def start(self, new_job: Callable[[Catalog], Runs]) -> None:
        """Process what comes, until it is stopped; ``Session.start`` has the details."""
        self._refuse_while_running()
        self._active = self._job = new_job(self._to_run())
        self._job.start()
        self.is_running = True

    def _refuse_while_running(self) -> None:
        if self.is_running:
            raise RunError("the session is running", hint="call session.stop() first")

    def _to_run(self) -> Catalog:
        """The queries that a new job is to run."""
        if self._keeper is None:
            self._past, self.catalog = {}, begun_again(self.catalog)
        else:
            self.catalog = with_records(self.catalog, self._keeper.read(), self._engine)
        return running_queries(self.catalog, {})

    def await_idle(self) -> None:
        """Wait until everything the sources hold now has been processed.

        Raises:
            RunError: Nothing is running, or a source or sink cannot be read or written.
        """
        if self._job is None or not self.is_running:
            raise RunError("the session is not running", hint="call session.start()")
        self._job.await_idle()
        self._let_go()

    def _let_go(self) -> None:
        """Let instances go that have nothing more to answer."""
        job, entries = self._job, self.catalog.entries(ObjectKind.QUERY)
        if job is None or all(isinstance(e, QueryEntry) and e.record is None for e in entries):
            return
        if ended(self.catalog, job.moment().known) != self.catalog:
            with self.changing():
                self.go_on_with(lambda _moment: self.catalog)

    def stop(self) -> None:
        """Stop at the end of a batch; answers can still be read."""
        if self._active is not None:
            self._active.close()
        self.is_running = False

    # Changing

    def go_on_with(self, decide: Callable[[Moment], Catalog]) -> None:
        """Take another set of queries, now if they are running.

        Args:
            decide: Gives them, knowing where the pipeline stands.
        """
        job = self._job
        if job is None or not self.is_running:
            self.catalog = decide(Moment())
            return
        chosen: list[Catalog] = []
        gone: dict[str, Answer] = {}

        def decided(moment: Moment) -> Catalog:
            chosen.append(ended(decide(moment), moment.known))
            queries = running_queries(chosen[0], moment.known)
            if self._keeper is not None:
                self._keeper.write(records_of(chosen[0]))  # before it takes effect
            for name in moment.known:
                answer = None if queries.find(name) else job.answer(name)
                if answer is not None and chosen[0].find(user_name(name)) is not None:
                    gone[name] = answer
            return queries

        try:
            job.change(decided)
        except BaseException:
            if self._keeper is not None and chosen:
                self._keeper.write(records_of(self.catalog))
            raise
        self.catalog, self._past = chosen[0], {**self._past, **gone}

    def carry_out(
        self, statement: Lifecycle, entry: QueryEntry, version: Version | None, *, is_done: bool
    ) -> Verdict:
        """Carry out what is asked of a query that lives, or say what it would do.

        Args:
            statement: What is asked.
            entry: The query.
            version: For ALTER QUERY … AS, what it is asked from now on.
            is_done: Whether it is done, and not only said.

        Raises:
            RunError: It cannot be done.
        """
        job = self._job if self.is_running else None
        if job is None:
            return self._rewritten(statement, entry, version, is_done=is_done)
        if entry.sink is not None:
            raise RunError(
                f'query "{entry.name}" writes to a sink, and only answers in memory can be changed'
                " while they are given",
                hint="create another query with a sink of its own, and drop this one when that is"
                " complete: SHOW QUERIES says from when on",
            )
        if not is_done:
            return self._judged(statement, entry, version, job.moment())[1]
        verdicts: list[Verdict] = []

        def decide(moment: Moment) -> Catalog:
            record, verdict = self._judged(statement, entry, version, moment)
            verdicts.append(verdict)
            return self.catalog.replaced(altered(entry, record))

        self.go_on_with(decide)
        return verdicts[0]

    def _rewritten(
        self, statement: Lifecycle, entry: QueryEntry, version: Version | None, *, is_done: bool
    ) -> Verdict:
        """Change the text of a query while nothing runs."""
        if version is None:
            raise RunError(
                "the session is not running, so queries neither start nor stop",
                hint="call session.start() first",
            )
        changed = rewritten(entry, version)
        if is_done:
            self.catalog = self.catalog.replaced(changed)
        here = Standpoint(entry.name, Time(0))
        return verdict_on(unparse(statement), record_of(entry), Changed(record_of(changed)), here)

    def _judged(
        self, statement: Lifecycle, entry: QueryEntry, version: Version | None, moment: Moment
    ) -> tuple[Record, Verdict]:
        """What becomes of a query, and the verdict on it."""
        before, here = record_of(entry), standpoint(entry, version, moment)
        changed = carried_out(statement, entry, version, here)
        record, plans = changed.record, None
        if changed.switch is not None:
            new = record.instances[-1]
            plan = begun_at(record.version(new.version).plan, new.fresh)
            plans = self.planned(entry.name), self._planner(replace(entry, plan=plan))
        state = self._state_text(entry)
        verdict = verdict_on(unparse(statement), before, changed, here, planned=plans, state=state)
        return record, verdict

    def _state_text(self, entry: QueryEntry) -> str:
        """How much a query remembers now."""
        if self._active is None:
            return ""
        names = {instance_name(entry.name, one.number) for one in record_of(entry).instances}
        mine = [m for m in self._active.metrics().values() if names.intersection(m.queries)]
        rows = sum(one.figures().state_rows for one in mine)
        size = sum(one.figures().state_bytes for one in mine)
        return f"{rows:,} rows in {size:,} bytes, dropped when the old version has ended"

    # Looking

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

    def listing(self) -> Listing:
        """The queries, with what they do and from when on their answers are complete."""
        entries = self.catalog.entries(ObjectKind.QUERY)
        has_lived = any(isinstance(e, QueryEntry) and e.record is not None for e in entries)
        job = self._active if self.is_running and has_lived else None
        known = {} if job is None else job.moment().known
        return query_listing(self.catalog, known, is_running=self.is_running)

    def finished(self) -> Runs:
        """What runs, or has run as it should.

        Raises:
            RunError: Nothing has.
        """
        if self._job is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        return self._job

    def _latest(self) -> Runs:
        """What runs or was run last, whatever came of it."""
        if self._active is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        return self._active

    def progress(self) -> Progress:
        """How far what is running, or was run last, has come."""
        return by_query(self._latest().progress())

    def metrics(self) -> Iterator[OperatorMetrics]:
        """What each operator of what is running, or was run last, has done and remembers."""
        return with_queries(self._latest().metrics().values())

    def answer(self, query: str, version: int | None = None) -> Answer | None:
        """What a query gave in the last run; ``None`` if it was not there."""
        return answer_in(self.finished(), self.catalog, self._past, query, version)

    def current_answer(self, query: str) -> Answer | None:
        """What a query has given so far, if it is there and its answer is kept."""
        if self._active is None:
            return None
        try:
            return answer_in(self._active, self.catalog, self._past, query)
        except RunError:
            return None

    def is_active(self, query: str) -> bool:
        """Whether a query is in what is running, or was run last."""
        return self._active is not None and is_in(self._active, self.catalog, self._past, query)

    def planned(self, query: str, *, span: Span | None = None) -> Planned:
        """How a registered query is computed: the plan it runs with, or would run with.

        Raises:
            BindError: There is no such query.
        """
        entry = self.catalog.get(Name(query, span))
        if not isinstance(entry, QueryEntry):
            raise BindError(
                f'"{query}" is not a query',
                span=span,
                hint="name a query, or write EXPLAIN SELECT … FROM it",
            )
        running, plan = None, entry.plan
        if self._active is not None:
            number = 1
            if entry.record is not None:
                live = [*entry.record.instances]
                number, fresh = live[-1].number, live[-1].fresh
                plan = begun_at(plan, fresh) if fresh else plan
            running = self._active.planned(instance_name(entry.name, number))
        # One of an earlier run may have had this name, or another sink.
        asked = plan, answer_form(entry)
        is_same = running is not None and (running.bound, running.target.answer) == asked
        return running if running is not None and is_same else self._planner(entry)

    def figures(self, planned: Planned) -> dict[str, Figures]:
        """What was measured of the operators of a query that runs, or was run.

        Raises:
            RunError: It has not been run.
        """
        names = [
            instance_name(entry.name, one.number)
            for entry in self.catalog.entries(ObjectKind.QUERY)
            if isinstance(entry, QueryEntry)
            for one in record_of(entry).instances
        ]
        job = self._active
        if job is None or not any(job.planned(name) is planned for name in names):
            raise RunError(
                "the query has not been run, so nothing was measured",
                hint="call session.run() or session.start() first",
            )
        return {name: metrics.figures() for name, metrics in job.metrics().items()}
