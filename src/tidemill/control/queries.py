"""The queries of a session while they live: the catalog, the job that runs it, and its changes.

A session is a catalog and at most one job. A change is decided between two batches, written down
where there is a checkpoint (``kept.py``), and only then taken by the job; one that the job refuses
has changed nothing.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from threading import Lock as ThreadLock
from typing import TYPE_CHECKING

from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.catalog.records import user_name
from tidemill.control.adapt_setting import NO_ADAPTING
from tidemill.control.adapting import Reoptimizer, trees_told
from tidemill.control.altering import changed_in, changed_text
from tidemill.control.asked_tables import kept_tables
from tidemill.control.beginning import begun, queries_of, taken_back
from tidemill.control.between import shown_between, standing, with_unread
from tidemill.control.given import gone_from, past_of
from tidemill.control.instances import running_queries
from tidemill.control.kept_plans import plan_kept
from tidemill.control.living import altered, begun_again, begun_late, ended, replanned
from tidemill.control.look import Look
from tidemill.control.moving import Way, advanced, moved
from tidemill.control.stored import with_records
from tidemill.control.tables import refuse_read
from tidemill.errors import RunError
from tidemill.lang.statements import Adapt, Name, ObjectKind, Select, StartMode
from tidemill.runtime.adaptation_log import AdaptationLog
from tidemill.runtime.measuring.known import statistics_of
from tidemill.runtime.measuring.measured import Measured, load_measured
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from tidemill.binder.definitions import Definition
    from tidemill.catalog.entries import Entry
    from tidemill.catalog.records import Version
    from tidemill.connectors.connector import Engine
    from tidemill.control.adapt_setting import AdaptSetting
    from tidemill.control.asked_tables import KeptTables
    from tidemill.control.kept import KeptCatalog
    from tidemill.control.verdict import Verdict
    from tidemill.lang.statements import Drop, Lifecycle
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.adaptation_log import Logged
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.past import Past
    from tidemill.runtime.runs import Runs

__all__ = ["LivingQueries"]


class LivingQueries:
    """The catalog of a session and the job that runs it.

    Args:
        planner: How a query would be computed, given what is known of what it reads.
        adaptive: The same where joins are planned so that their trees can change.
        engine: Where the queries run.
        kept: Where what is registered is kept, if a later session is to go on.

    Attributes:
        catalog: What is registered now.
        is_running: Whether the job goes on until it is stopped.
        is_read_only: Whether nothing can be run or changed.
        adapting: Whether and how plans follow what is measured.
    """

    is_read_only = False

    def __init__(
        self,
        planner: Callable[[QueryEntry, Statistics], Planned],
        *,
        adaptive: Callable[[QueryEntry, Statistics], Planned] | None = None,
        engine: Engine | None = None,
        kept: KeptCatalog | None = None,
        adapting: AdaptSetting = NO_ADAPTING,
    ) -> None:
        self.catalog = Catalog() if kept is None else kept.load()
        self.is_running = False
        self.adapting = adapting
        self._planner, self._adaptive = planner, planner if adaptive is None else adaptive
        self._engine = engine
        self._kept = kept
        self._owner = ExitStack()  # has the checkpoint while a job runs
        self._job: Runs | None = None
        self._active: Runs | None = None
        self._past: dict[str, Answer] = {}  # what instances gave that do not run any more
        self._turn = ThreadLock()
        self._between = ThreadLock()  # held by a statement, or while it is seen what has ended
        self._runs: Mapping[str, QueryEntry] = {}  # what the runtime was given last
        self._log = AdaptationLog(None if kept is None else kept.directory)
        self._reoptimizer = Reoptimizer(self._log)

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
            owning = nullcontext() if self._kept is None else self._kept.owned()
            with self._between, owning:  # it is free in a moment, if a batch has just ended
                yield
        finally:
            self._turn.release()

    # Running

    def run(self, new_job: Callable[[Catalog], Runs], *, end: bool | None) -> None:
        """Process everything the sources hold; ``Session.run`` has the details."""
        self._refuse_while_running()
        with self._owning(), self._beginning():
            job = new_job(self._to_run())
            self._active = job
            self._let_adapt(job)
            job.follow(lambda moment: self._followed(job, moment))
            job.run(end=end)
            self._job = job
            self._tell(job)

    def start(self, new_job: Callable[[Catalog], Runs]) -> list[str]:
        """Process what comes, until it is stopped; ``Session.start`` has the details.

        Returns:
            What there is to be warned of.
        """
        self._refuse_while_running()
        with self._owning() as share, self._beginning():
            self._active = self._job = job = new_job(self._to_run())
            self._let_adapt(job)
            job.follow(lambda moment: self._followed(job, moment))
            job.start()
            self.is_running = True
            self._owner = share.pop_all()
        return self._migrated(job)

    def _migrated(self, job: Runs) -> list[str]:
        """Let plans that these settings make take over from those that others have made."""
        outdated = {user_name(name) for name in job.outdated()}
        told: list[str] = []
        if outdated:
            with self.changing():
                self.go_on_with(lambda moment: replanned(self.catalog, outdated, moment, told))
        return told

    @contextmanager
    def _owning(self) -> Iterator[ExitStack]:
        """Have the checkpoint, if there is one, until the end or until what is given is closed."""
        with ExitStack() as stack:
            if self._kept is not None:
                stack.callback(self._kept.own().release)
            yield stack

    @contextmanager
    def _beginning(self) -> Iterator[None]:
        """Decide when queries begin that the checkpoint does not know, and write it down.

        Raises:
            RunError: A query is to have a history that streams have not kept.
        """
        if self._kept is None:
            yield
            return
        before = self.catalog = with_records(self.catalog, self._kept.read_records(), self._engine)
        self.catalog = begun(self._kept, before)
        try:
            yield
        except BaseException:
            self.catalog = taken_back(self._kept, before, self.catalog)
            raise

    def _standing(self, catalog: Catalog) -> Moment:
        """Where the pipeline of the checkpoint stands, while nothing runs."""
        assert self._kept is not None, "there is a checkpoint"
        return standing(self._kept.directory, catalog)

    def _refuse_while_running(self) -> None:
        if self.is_running:
            raise RunError("the session is running", hint="call session.stop() first")

    def _to_run(self) -> Catalog:
        """The queries that a new job is to run."""
        if self._kept is None:
            self._past, self.catalog = {}, begun_again(self.catalog)
        queries = running_queries(self.catalog, {})
        if self._kept is not None:
            self._kept.let_go(self.catalog, queries)
        self._runs = queries_of(queries)
        return queries

    def adapt(self, adapt: Adapt) -> None:
        """Let plans follow what is measured from now on, or not.

        Raises:
            RunError: What runs has failed.
        """
        before, self.adapting = self.adapting, replace(self.adapting, adapt=adapt)
        job = self._job if self.is_running else None
        if job is not None and before != self.adapting:
            job.adapt(self.adapting.engine)

    def _let_adapt(self, job: Runs) -> None:
        """Tell a job that begins how its joins adapt, if they do."""
        if self.adapting.adapt is not Adapt.OFF:
            job.adapt(self.adapting.engine)

    def _tell(self, job: Runs) -> None:
        """Write down what joins have decided."""
        self._log.append(trees_told(job, user_name))

    def adaptations(self) -> list[Logged]:
        """What was decided while queries ran, the earliest first."""
        if self._active is not None and self.adapting.adapt is not Adapt.OFF:
            self._tell(self._active)
        return self._log.read()

    def await_idle(self) -> None:
        """Wait until everything the sources hold now has been processed.

        Raises:
            RunError: Nothing is running, or a source or sink cannot be read or written.
        """
        if self._job is None or not self.is_running:
            raise RunError("the session is not running", hint="call session.start()")
        self._job.await_idle()

    def stop(self) -> None:
        """Stop at the end of a batch; answers can still be read."""
        if self._active is not None:
            self._active.close()
        self.is_running = False
        self._owner.close()

    # Changing

    def find(self, statement: Definition) -> Entry | None:
        """What an equal statement has created in this checkpoint; ``None`` if it is a new one.

        Raises:
            BindError: The name stands for something else in this checkpoint.
            RunError: It is to be changed a little while it runs.
        """
        if self._kept is None:
            return None
        found = self._kept.find(statement, self.catalog)
        kinds = StreamEntry | RelationEntry | QueryEntry
        if isinstance(found, kinds) and self.catalog.find(found.name) != found:
            self._refuse_while_running()
            with self._kept.creating(statement, found):
                self.catalog = self.catalog.replaced(found)
        return found

    def add(self, statement: Definition, entry: Entry) -> None:
        """Register what a statement defines.

        Raises:
            BindError: The name is taken.
            RunError: It cannot be written down, or what is running cannot go on with it.
        """
        named = None if isinstance(statement, Select) else statement.name.span
        added = self.catalog.added(entry, span=named)
        if isinstance(entry, QueryEntry) and entry.start is StartMode.HISTORY:
            self._require_history(entry, added)
        with nullcontext() if self._kept is None else self._kept.creating(statement, entry):
            if isinstance(entry, QueryEntry):
                self.go_on_with(
                    lambda moment: added.replaced(begun_late(entry, with_unread(moment, added)))
                )
            elif isinstance(entry, StreamEntry) and entry.keep is not None:
                self.go_on_with(lambda _moment: added)  # it is read, by queries or not
            else:
                self.catalog = added

    def _require_history(self, entry: QueryEntry, catalog: Catalog) -> None:
        """Refuse a query that is to have a history which the next start would not find.

        Raises:
            RunError: Its streams have not kept it.
        """
        if self._kept is not None and not self.is_running:
            begun_late(entry, self._standing(catalog))

    def drop(self, statement: Drop) -> None:
        """Give something up; of a query, also its state.

        Raises:
            BindError: There is no such thing, or others depend on it.
            RunError: It cannot be written down, or what is running cannot go on without it.
        """
        kind, name, kept = statement.kind, statement.name, self._kept
        is_idle_query = kind in (ObjectKind.QUERY, ObjectKind.TABLE) and not self.is_running
        if self.catalog.is_free(name.text, kind):
            # Sessions of versions without a log have left queries that no statement tells of.
            is_gone = is_idle_query and kept is not None and kept.forget(name.text)
            if is_gone or statement.if_exists:
                return
        without = self.catalog.dropped(name, kind)
        if kept is None:
            self.go_on_with(lambda _moment: without)
            return
        is_function = kind is ObjectKind.FUNCTION
        find = self.catalog.find_function if is_function else self.catalog.find
        entry = find(name.text)
        assert entry is not None, "it was dropped"
        with kept.dropping(statement, entry):
            if is_idle_query:
                kept.forget(name.text)
            self.go_on_with(lambda _moment: without)

    def go_on_with(self, decide: Callable[[Moment], Catalog]) -> None:
        """Take another set of queries, now if they are running.

        Args:
            decide: Gives them, knowing where the pipeline stands.
        """
        job = self._job
        if job is None or not self.is_running:
            self.catalog = decide(Moment())
            self._past = past_of(self.catalog, self._past)
            return
        chosen: list[Catalog] = []
        gone: dict[str, Answer] = {}

        def decided(moment: Moment) -> Catalog:
            chosen.append(ended(decide(moment), moment.known))
            queries = running_queries(chosen[0], moment.known)
            if self._kept is not None:
                self._kept.write_records(chosen[0])  # before it takes effect
            gone.update(gone_from(job, moment, chosen[0], queries))
            return queries

        try:
            given = job.change(decided)
        except BaseException:
            if self._kept is not None and chosen:
                self._kept.write_records(self.catalog)
            raise
        self.catalog, self._past = chosen[0], past_of(chosen[0], {**self._past, **gone})
        self._runs = queries_of(given)

    def _followed(self, job: Runs, moment: Moment) -> Catalog | None:
        """What is to run from the next batch on, if it is something else: nobody waits here.

        Instances that have answered all they had to are let go, and rows that have waited for them
        leave.
        """
        if not self._between.acquire(blocking=False):
            return None  # a statement is carried out, and decides on all of it
        try:
            adapted = self._adapted(job, moment)
            catalog = self.catalog if adapted is None else adapted
            entries = catalog.entries(ObjectKind.QUERY)
            if all(isinstance(e, QueryEntry) and e.record is None for e in entries):
                return None
            chosen = ended(advanced(catalog, moment), moment.known)
            queries = running_queries(chosen, moment.known)
            if self._kept is not None and chosen != self.catalog:
                self._kept.write_records(chosen)
            is_same = _same(queries_of(queries), self._runs)
            self._past |= {} if is_same else gone_from(job, moment, chosen, queries)
            self.catalog, self._runs = chosen, queries_of(queries)
            return None if is_same else queries
        finally:
            self._between.release()

    def _adapted(self, job: Runs, moment: Moment) -> Catalog | None:
        """The catalog in which another plan takes over, if one is worth it."""
        if self.adapting.adapt is Adapt.OFF:
            return None
        self._tell(job)
        return self._reoptimizer.look(self.adapting, self.look, moment)

    def refresh(self) -> None:
        """Know what is registered now; nobody else changes it while this session has it."""

    def past(self) -> Past | Path | None:
        """What streams have kept, or the checkpoint that has it; ``None`` if nothing was run.

        Raises:
            RunError: What runs has failed, or a function that gets rows calls this.
        """
        if self._job is not None:
            return self._job.past()
        return None if self._kept is None else self._kept.directory

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
        refuse_read(self.catalog, entry, statement)
        job = self._job if self.is_running else None
        if job is None:
            changed, verdict = changed_text(statement, entry, version, self._kept)
            if is_done and changed is not entry:
                rewritten = self.catalog.replaced(changed)
                if self._kept is not None:
                    self._kept.write_records(rewritten)
                self.catalog = rewritten
            return verdict
        if not is_done:
            return changed_in(job.moment(), self.look, statement, entry, version)[1]
        verdicts: list[Verdict] = []

        def decide(moment: Moment) -> Catalog:
            record, verdict = changed_in(moment, self.look, statement, entry, version)
            verdicts.append(verdict)
            return self.catalog.replaced(altered(entry, record))

        self.go_on_with(decide)
        return verdicts[0]

    def replan_to(
        self, entry: QueryEntry, after: Planned | None, *, is_done: bool = True
    ) -> Verdict:
        """Let another plan of a query that runs take over by moving state.

        Args:
            entry: The query.
            after: The plan, made for where it runs; ``None`` for the one that would be made today.
            is_done: Whether it is done, and not only said.

        Raises:
            RunError: It does not run, or its state cannot be moved.
        """
        job = self._job
        assert job is not None, "something runs"
        verdicts: list[Verdict] = []

        def decide(moment: Moment) -> Catalog:
            record, verdict = moved(self.catalog, entry, Way.of(entry, moment, job, after), moment)
            verdicts.append(verdict)
            return self.catalog.replaced(altered(entry, record))

        if is_done:
            self.go_on_with(decide)
        else:
            decide(job.moment())
        return verdicts[0]

    def kept_tables(self, tables: Iterable[QueryEntry]) -> KeptTables:
        """Tables as they are now, for what is asked once."""
        return kept_tables(self.look, self.directory, tables)

    def measured(self) -> Measured:
        """What has been found out of what comes in: by what runs, or what was run last."""
        if self._active is not None:
            return self._active.measured()
        return Measured() if self.directory is None else load_measured(self.directory)

    def plan(self, query: QueryEntry) -> Planned:
        """How a query would be computed if it was registered now.

        Without a checkpoint, a run that begins knows nothing of those before.
        """
        lasts = self.is_running or self.directory is not None
        measured = self.measured() if lasts else Measured()
        planner = self._planner if self.adapting.adapt is Adapt.OFF else self._adaptive
        return planner(query, statistics_of(self.catalog, measured))

    def standing(self, *, but: str) -> dict[str, Planned]:
        """The plans of all other queries: those that they run with, or would go on with.

        Args:
            but: The name of the query that is left out.
        """
        look, found = self.look, {}
        for name in look.begun():
            if name.lower() != but.lower():
                entry = look.query_entry(Name(name))
                kept = self._plan_kept(entry)
                found[name] = (
                    look.planned(name)
                    if kept is None
                    else replace(self.plan(entry), physical=kept.physical)
                )
        return found

    def _plan_kept(self, query: QueryEntry) -> Planned | None:
        """The plan that a query goes on with when something runs again."""
        if self.is_running or self.directory is None:
            return None
        return plan_kept(self.directory, query)

    @property
    def directory(self) -> Path | None:
        """The checkpoint, if there is one."""
        return None if self._kept is None else self._kept.directory

    @property
    def look(self) -> Look:
        """What can be seen of the queries now."""
        return Look(
            self.catalog,
            self._job,
            self._active,
            self._past,
            self.plan,
            self.is_running,
            self._shown,
            self._plan_kept,
        )

    def _shown(self) -> Catalog:
        """What is registered, with the instants from which queries answer, or will."""
        if self._kept is None or self.is_running:
            return self.catalog
        return shown_between(self.catalog, self._kept.known(), lambda: self._standing(self.catalog))


def _same(one: Mapping[str, QueryEntry], other: Mapping[str, QueryEntry]) -> bool:
    """Whether the same runs, and the same instants are wanted of it."""
    if one != other:
        return False
    return all(
        (one[name].cut, one[name].moving) == (other[name].cut, other[name].moving) for name in one
    )
