"""The session: where people register streams and queries, run them and read the answers.

It wires the stages (parse, bind, optimize, run) and owns no logic of its own.

>>> import polars as pl
>>> import tidemill
>>> session = tidemill.connect()
>>> session.put("bids", pl.DataFrame({"auction": [7, 7, 8], "price": [5.0, 9.0, 4.0],
...                                   "at": [1, 3, 4]}))
>>> session.sql('''
...     CREATE STREAM bid (auction BIGINT, price DOUBLE, at BIGINT)
...       SOURCE memory('bids') ORDERED BY at
... ''')
>>> query = session.query('''
...     SELECT auction, MAX(price) AS highest FROM bid [RANGE 10] GROUP BY auction
... ''')
>>> session.run()
>>> print(query.results().rows())
[(7, 5.0, 1, 3), (7, 9.0, 3, 13), (8, 4.0, 4, 14)]
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias, assert_never

import polars as pl

from tidemill.algebra.reach import begun_at
from tidemill.binder.definitions import define
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.listing import describe_connector, describe_entry, show, show_connectors
from tidemill.catalog.records import Record, Version
from tidemill.control.change import Changed
from tidemill.control.delivered import delivered_to
from tidemill.control.instances import (
    instance_name,
    known_instances,
    record_of,
    running_queries,
    user_name,
)
from tidemill.control.living import (
    altered,
    begun_again,
    begun_late,
    carried_out,
    lives_of,
    new_version,
    rewritten,
    standpoint,
)
from tidemill.control.living import ended as ended_in
from tidemill.control.sink_text import sink_text
from tidemill.control.standpoint import Standpoint
from tidemill.control.verdict import Verdict, verdict_on
from tidemill.errors import (
    BindError,
    PlanError,
    RunError,
    TidemillError,
    TidemillWarning,
    suggestion,
)
from tidemill.lang.parse import parse_one, parse_script, require_one_query
from tidemill.lang.statements import (
    AlterQuery,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    DescribeConnector,
    Drop,
    Explain,
    ExplainMode,
    Lifecycle,
    Name,
    ObjectKind,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    Select,
    Show,
    ShowConnectors,
    StartQuery,
    Statement,
    StopQuery,
)
from tidemill.lang.unparse import unparse
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.explain.planned import explain_json, explain_planned
from tidemill.runtime.answers import Answer
from tidemill.runtime.frames import to_polars
from tidemill.runtime.metrics import metrics_frame
from tidemill.runtime.parted import Piece, parted
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.progress import QueryProgress
from tidemill.runtime.query import Query
from tidemill.runtime.records_file import stored
from tidemill.runtime.runs import Follows, Moment
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from tidemill.binder.definitions import Definition
    from tidemill.catalog.entries import Entry
    from tidemill.catalog.listing import Listing
    from tidemill.connectors.connector import Engine
    from tidemill.errors import Note, Span
    from tidemill.lang.parse import Script
    from tidemill.optimizer.explain.physical import Figures
    from tidemill.optimizer.planner import Planned
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.frames import Frame
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.records_file import RecordKeeper, StoredRecord
    from tidemill.runtime.runs import Runs

__all__ = ["Query", "Result", "Session"]


Result: TypeAlias = Query | pl.DataFrame | str | None
"""What a statement gives back: a query, a table (SHOW, DESCRIBE), a text (EXPLAIN) or nothing."""


_CALLER = 6
"""How far above ``warnings.warn`` the call of ``sql``, or ``query``, stands."""


class Session:
    """A catalog, the statements that change it, and the answers of its queries."""

    def __init__(  # noqa: PLR0913 — what a session is made of
        self,
        job: Callable[[Catalog, Mapping[str, pl.DataFrame], Mapping[str, Callback]], Runs],
        *,
        planner: Callable[[QueryEntry], Planned] = plan_entry,
        unbounded_state: bool = False,
        forget: Callable[[str], bool] = lambda _name: False,
        engine: Engine | None = None,
        keeper: RecordKeeper | None = None,
    ) -> None:
        self._keeper = keeper  # where a job takes up what the last one has left
        self._engine = engine
        self._new_job = job
        self._forget = forget
        self._planner = planner
        self._unbounded_state = unbounded_state
        self._catalog = Catalog()
        self._memory: dict[str, pl.DataFrame] = {}
        self._callbacks: dict[str, Callback] = {}
        self._job: Runs | None = None
        self._active: Runs | None = None
        self._is_running = False
        self._turn = Lock()
        self._between = Lock()  # held by a statement, or while it is seen what has ended
        self._runs: Mapping[str, QueryEntry] = {}  # what the runtime was given last
        self._warnings: list[str] = []
        self._past: dict[str, Answer] = {}  # what instances gave that do not run any more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def catalog(self) -> Catalog:
        """What is registered now."""
        return self._catalog

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the statements so far were warned of; each was a ``TidemillWarning`` as well."""
        return tuple(self._warnings)

    def put(self, name: str, frame: Frame) -> None:
        """Keep rows in memory, for streams and relations with ``SOURCE memory('name')``.

        They are kept as they are now, whatever is done with the frame later.

        Args:
            name: What the source calls them.
            frame: A frame of Polars, lazy or not, of pandas, whose index is left out and whose
                missing values are NULL, or a table of Arrow.

        Raises:
            RunError: It is something else, or has values that no column can hold.
        """
        self._memory[name] = to_polars(name, frame)

    def callback(self, name: str, function: Callback) -> None:
        """Register a function, for queries that write INTO a callback of that name.

        It is called in this process, once for each batch that has new rows, with the rows in the
        form of ``Query.results`` and the number of the batch. A batch that is delivered again,
        after a failure or a restart, has the same number and rows. What the function raises stops
        the run. A name that is registered again means the new function from the next start on.
        """
        self._callbacks[name] = function

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold, for all queries.

        Without a checkpoint each run begins at the beginning and goes to the end of the streams:
        everything that is still open is given, and answers of an earlier run are replaced, but not
        its files, unless the sink says ``replace => true``. With a checkpoint a run goes on where
        the last one stopped, processes what is there, and leaves the streams open for the next one.

        Args:
            end: Whether the streams end when everything has been read; a checkpoint is finished
                then, and takes nothing more. Without it: unless there is a checkpoint.

        Raises:
            RunError: A source or a sink cannot be read or written.
            PlanError: A window stands over rows that stay for ever, so that its content grows
                without end.
        """
        self._refuse_while_running()
        job = self._made()
        self._active = job
        job.run(end=end)
        self._job = job

    def start(self) -> None:
        """Process what comes, for all queries, until the session is stopped.

        Queries can be created and dropped meanwhile; those that stay keep their state. A session
        with a checkpoint goes on where the last one was stopped.

        Raises:
            RunError: It is running already, the engine cannot, or a source cannot be read.
        """
        self._refuse_while_running()
        self._active = self._job = job = self._made()
        if isinstance(job, Follows):
            job.follow(lambda moment: self._followed(job, moment))
        job.start()
        self._is_running = True

    def _made(self) -> Runs:
        """A job for the queries that there are now."""
        if self._keeper is None:
            self._past, self._catalog = {}, begun_again(self._catalog)
        else:
            self._catalog = self._with_records(self._keeper.read())
        queries = running_queries(self._catalog, {})
        self._runs = _queries(queries)
        return self._new_job(queries, dict(self._memory), self._callbacks)

    def await_idle(self) -> None:
        """Wait until everything the sources hold now has been processed.

        Raises:
            RunError: The session is not running, or a source or sink cannot be read or written.
        """
        if self._job is None or not self._is_running:
            raise RunError("the session is not running", hint="call session.start()")
        self._job.await_idle()
        if not isinstance(self._job, Follows):
            self._let_go()

    def _let_go(self) -> None:
        """Let instances go that have nothing more to answer."""
        job, entries = self._job, self._catalog.entries(ObjectKind.QUERY)
        if job is None or all(isinstance(e, QueryEntry) and e.record is None for e in entries):
            return
        if ended_in(self._catalog, job.moment().known) != self._catalog:
            with self._changing():
                self._go_on_with(lambda _moment: self._catalog)

    def progress(self) -> Progress:
        """How far what is running, or was run last, has come.

        Raises:
            RunError: Nothing has been run.
        """
        if self._active is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        found = self._active.progress()
        rows: dict[str, int] = {}
        for query in found.queries:  # instances count for their queries
            rows[user_name(query.name)] = rows.get(user_name(query.name), 0) + query.rows
        queries = tuple(QueryProgress(name, count) for name, count in rows.items())
        return replace(found, queries=queries)

    def metrics(self) -> pl.DataFrame:
        """What each operator of what is running, or was run last, has done and remembers.

        One row an operator, those of earlier stages first: the ``queries`` it works for, its text
        (``operator``), its ``fingerprint``, its ``stage``; ``rows_in``, ``rows_out`` and
        ``seconds``, added up over all partitions since ``run`` or ``start``; ``state_rows``,
        ``state_bytes`` and ``watermark`` as they are now, NULL before the first batch.

        Raises:
            RunError: Nothing has been run.
        """
        if self._active is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        found = self._active.metrics().values()
        return metrics_frame(
            replace(one, queries=tuple(dict.fromkeys(map(user_name, one.queries)))) for one in found
        )

    def stop(self) -> None:
        """Stop at the end of a batch; answers can still be read.

        Raises:
            RunError: This is called by a function that gets rows, so that it goes on.
        """
        if self._active is not None:
            self._active.close()
        self._is_running = False

    def _refuse_while_running(self) -> None:
        if self._is_running:
            raise RunError("the session is running", hint="call session.stop() first")

    def refused(self) -> pl.DataFrame:
        """How many rows of each stream the last run did not take, and why.

        Raises:
            RunError: Nothing has been run.
        """
        rows = [
            (name, reason, count)
            for name, gate in sorted(self._finished().gates.items())
            for reason, count in sorted(gate.refused.counts.items())
        ]
        types = {"stream": pl.String, "reason": pl.String, "rows": pl.Int64}
        return pl.DataFrame(rows, schema=types, orient="row")

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were not taken and are kept, with the reason.

        Those that are late, or have no valid time, are kept with LATE QUARANTINE; malformed ones
        with MALFORMED QUARANTINE, and then with their file, line, problem and text.

        Raises:
            RunError: Nothing has been run, or no query reads the stream.
        """
        job = self._finished()
        gates = job.gates
        found = next((name for name in gates if name.lower() == stream.lower()), None)
        if found is None:
            raise RunError(
                f'no query has read a stream "{stream}"',
                hint=suggestion(stream, gates, what="streams"),
            )
        return job.quarantine(found)

    def answer(self, query: str, version: int | None = None) -> Answer:
        """What a query gave in the last run.

        Args:
            query: The query.
            version: What one version of it gave; without it, all that have the columns of the
                newest one.

        Raises:
            RunError: It has not been run, or has no such version.
        """
        job = self._finished()
        answer = self._answer_in(job, query, version)
        if answer is None:
            raise RunError(
                f'query "{query}" was not there in the last run', hint="call session.run() again"
            )
        return answer

    def _answer_in(self, job: Runs, query: str, version: int | None = None) -> Answer | None:
        """What a query has given in a job: put together from what its instances have given."""
        entry = self._catalog.find(query)
        if not isinstance(entry, QueryEntry) or entry.record is None:
            if version not in (None, 1):
                raise _no_version(query, version, 1)
            return job.answer(query) if self._is_in(job, query) else None
        record = entry.record
        if delivered_to(entry) is not None:
            if version is not None and len(record.versions) > 1:
                raise RunError(
                    f'the versions of query "{query}" have gone to one sink',
                    hint="leave version out, and look at the times of the rows",
                )
            return job.answer(entry.name)
        if version is not None and not 0 < version <= len(record.versions):
            raise _no_version(query, version, len(record.versions))
        schema = record.version(version or record.current.number).plan.schema
        pieces: list[Piece] = []
        for part in record.parts:
            asked = record.version_of(part)
            is_wanted = version == asked.number if version else asked.plan.schema == schema
            if is_wanted:
                name = instance_name(entry.name, part.instance)
                given = self._past.get(name) or job.answer(name)
                if given is None:  # it was over before this session began
                    given = Answer(schema, is_whole=False)
                    given.known = END_OF_TIME if part.instance in record.ended else Time(0)
                pieces.append(Piece(given, part.since, part.until, part.held))
        return parted(schema, pieces)

    def current_answer(self, query: str) -> Answer | None:
        """What a query has given so far in the run that goes on, or in the last one.

        ``None`` if it was not there, or its answer went to a sink and is not kept.
        """
        try:
            job = self._active
            return None if job is None else self._answer_in(job, query)
        except RunError:
            return None

    def is_active(self, query: str) -> bool:
        """Whether a query is in what is running, or was run last."""
        return self._active is not None and self._is_in(self._active, query)

    def _is_in(self, job: Runs, query: str) -> bool:
        """Whether a job has a query, and not another one that had its name then."""
        entry, planned = self._catalog.find(query), job.planned(query)
        if isinstance(entry, QueryEntry) and entry.record is not None:
            names = (instance_name(entry.name, one.number) for one in entry.record.instances)
            return any(job.planned(name) is not None or name in self._past for name in names)
        if planned is None or not isinstance(entry, QueryEntry):
            return True  # the job knows what it has; nothing else has the name now
        return planned.bound == entry.plan

    def _finished(self) -> Runs:
        if self._job is None:
            raise RunError("nothing has been run yet", hint="call session.run()")
        return self._job

    def sql(self, text: str) -> Result:
        """Carry out one or more statements; the result is that of the last one.

        A statement that fails changes nothing. Those before it in the text keep their effect, and
        the error says which one it was.

        Raises:
            TidemillError: A statement could not be parsed, bound or planned.
        """
        return self._carry_out(_script(text), text)

    def query(self, text: str) -> Query:
        """Register one query: a SELECT, or a CREATE QUERY.

        It is what ``sql`` does with such a statement; here the type of the result is known, and
        anything else is refused before it is carried out.

        Raises:
            TidemillError: It is not exactly one query, or could not be parsed, bound or planned.
        """
        script = _script(text)
        try:
            require_one_query(script)
        except TidemillError as error:
            raise error.located(text) from None
        made = self._carry_out(script, text)
        assert isinstance(made, Query), "these statements make queries"
        return made

    def explain(self, query: str, mode: ExplainMode, *, as_json: bool = False) -> str:
        """A registered query as text, as EXPLAIN shows it.

        Raises:
            BindError: There is no such query.
            RunError: It is to be analyzed, and has not been run.
        """
        return self._shown(self.planned(query), mode, as_json=as_json)

    def _shown(self, planned: Planned, mode: ExplainMode, *, as_json: bool) -> str:
        show = explain_json if as_json else explain_planned
        figures = self._figures(planned) if mode is ExplainMode.ANALYZE else {}
        return show(mode, planned, figures)

    def _figures(self, planned: Planned) -> dict[str, Figures]:
        """What was measured of the operators of a query that runs, or was run."""
        names = [
            instance_name(entry.name, one.number)
            for entry in self._catalog.entries(ObjectKind.QUERY)
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

    def _carry_out(self, script: Script, text: str) -> Result:
        result: Result = None
        for number, (statement, span) in enumerate(script, start=1):
            try:
                result = self._execute(statement, text)
            except TidemillError as error:
                raise error.located(text, statement=_which(number, len(script))) from None
            except RecursionError:
                deep = PlanError("the statement is nested too deeply", span=span, hint="split it")
                raise deep.located(text, statement=_which(number, len(script))) from None
        return result

    @contextmanager
    def _changing(self) -> Iterator[None]:
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
            with self._between:  # which is free in a moment, if a batch has just ended
                yield
        finally:
            self._turn.release()

    def _with_records(self, found: Mapping[str, StoredRecord]) -> Catalog:
        """The catalog with what has become of its queries, as the checkpoint knows it.

        Raises:
            RunError: A query was changed, and is none of its versions here.
        """
        catalog = self._catalog
        for entry in list(catalog.entries(ObjectKind.QUERY)):
            kept = found.get(entry.name.lower())
            if kept is None or not isinstance(entry, QueryEntry) or entry.record is not None:
                continue
            if entry.text not in kept.texts:
                raise RunError(
                    f'query "{entry.name}" is not the one that this checkpoint runs: that one asks '
                    f"{kept.texts[-1]}",
                    hint="create it as it was or as it is now, and then write ALTER QUERY",
                )
            without = catalog.dropped(Name(entry.name), ObjectKind.QUERY)
            versions: list[Version] = []
            for number, text in enumerate(kept.texts, start=1):
                statement = parse_one(text)
                assert isinstance(statement, CreateQuery | Select), "queries are kept"
                bound = define(statement, without, allow_unbounded=True, engine=self._engine)
                assert isinstance(bound, QueryEntry), "these define queries"
                versions.append(Version(number, text, bound.plan, bound.uses, bound.time))
            record = Record(tuple(versions), kept.instances, kept.parts, kept.paused, kept.ended)
            catalog = catalog.replaced(altered(entry, record))
        return catalog

    def _go_on_with(self, decide: Callable[[Moment], Catalog]) -> None:
        """Take another set of queries, now if the session is running.

        Args:
            decide: Gives them, knowing where the pipeline stands.
        """
        job = self._job
        if job is None or not self._is_running:
            self._catalog = decide(Moment())
            return
        chosen: list[Catalog] = []
        runs: dict[str, QueryEntry] = {}
        gone: dict[str, Answer] = {}

        def decided(moment: Moment) -> Catalog:
            chosen.append(ended_in(decide(moment), moment.known))
            queries = running_queries(chosen[0], moment.known)
            if self._keeper is not None:
                self._keeper.write(_records(chosen[0]))  # before it takes effect
            gone.update(_gone(job, moment, chosen[0], queries))
            runs.update(_queries(queries))
            return queries

        try:
            job.change(decided)
        except BaseException:
            if self._keeper is not None and chosen:
                self._keeper.write(_records(self._catalog))
            raise
        self._catalog, self._past = chosen[0], {**self._past, **gone}
        self._runs = runs

    def _followed(self, job: Runs, moment: Moment) -> Catalog | None:
        """What is to run from the next batch on, if it is something else: nobody waits here.

        Instances that have answered all they had to are let go, and rows that have waited for them
        leave.
        """
        if not self._between.acquire(blocking=False):
            return None  # a statement is carried out, and decides on all of it
        try:
            entries = self._catalog.entries(ObjectKind.QUERY)
            if all(isinstance(e, QueryEntry) and e.record is None for e in entries):
                return None
            chosen = ended_in(self._catalog, moment.known)
            queries = running_queries(chosen, moment.known)
            if self._keeper is not None and chosen != self._catalog:
                self._keeper.write(_records(chosen))
            is_same = _same(_queries(queries), self._runs)
            self._past |= {} if is_same else _gone(job, moment, chosen, queries)
            self._catalog, self._runs = chosen, _queries(queries)
            return None if is_same else queries
        finally:
            self._between.release()

    def _lives(self, statement: Lifecycle, source: str, *, is_done: bool) -> Verdict:
        """Carry out what is asked of a query that lives, or say what it would do.

        Raises:
            TidemillError: There is no such query, or it cannot be done.
        """
        entry = self._query_entry(statement.name)
        version = None
        if isinstance(statement, AlterQuery):
            asked = CreateQuery(statement.name, statement.query, entry.sink)
            bound = self._define(asked, source)
            assert isinstance(bound, QueryEntry), "it defines a query"
            version = new_version(entry, unparse(asked), bound)
        job = self._job if self._is_running else None
        if job is None and version is None:
            raise RunError(
                "the session is not running, so queries neither start nor stop",
                hint="call session.start() first",
            )
        if job is None and version is not None:
            changed = rewritten(entry, version)
            if is_done:
                self._catalog = self._catalog.replaced(changed)
            here = Standpoint(entry.name, Time(0))
            return verdict_on(
                unparse(statement), record_of(entry), Changed(record_of(changed)), here
            )
        if delivered_to(entry) is not None and not isinstance(job, Follows):
            raise RunError(
                f'query "{entry.name}" writes to a sink, and only answers in memory can be changed'
                " while they are given",
                hint="create another query with a sink of its own, and drop this one when that is"
                " complete: SHOW QUERIES says from when on",
            )
        assert job is not None, "the other cases were taken"
        if not is_done:
            return self._judged(statement, entry, version, job.moment())[1]
        verdicts: list[Verdict] = []

        def decide(moment: Moment) -> Catalog:
            record, verdict = self._judged(statement, entry, version, moment)
            verdicts.append(verdict)
            return self._catalog.replaced(altered(entry, record))

        self._go_on_with(decide)
        return verdicts[0]

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
        sink = sink_text(here.sink, before, record)
        verdict = verdict_on(
            unparse(statement), before, changed, here, planned=plans, state=state, sink=sink
        )
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

    def _query_entry(self, name: Name) -> QueryEntry:
        entry = self._catalog.get(name)
        if not isinstance(entry, QueryEntry):
            raise BindError(
                f'"{entry.name}" is not a query',
                span=name.span,
                hint="only queries can be changed, started and stopped",
            )
        return entry

    def _show_queries(self) -> pl.DataFrame:
        """The queries, with what they do and from when on their answers are complete."""
        listing = show(self._catalog, ObjectKind.QUERY)
        entries = list(self._catalog.entries(ObjectKind.QUERY))
        has_lived = any(isinstance(e, QueryEntry) and e.record is not None for e in entries)
        job = self._active if self._is_running and has_lived else None
        known = {} if job is None else job.moment().known
        lives: list[tuple[str, str, str]] = []
        for entry in entries:
            assert isinstance(entry, QueryEntry), "asked for queries"
            reached = known_instances(entry, lambda name: known.get(name, Time(0)))
            state, version, complete = lives_of(entry, reached)
            lives.append((state if self._is_running else "not running", version, complete))
        titles = ("state", "version", "complete_from")
        more = {title: [one[i] for one in lives] for i, title in enumerate(titles)}
        return _frame({"name": listing.pop("name"), **more, **listing})

    def versions(self, query: str) -> pl.DataFrame:
        """What a query has been asked, and which instants each version answers.

        Raises:
            BindError: There is no such query.
        """
        record = record_of(self._query_entry(Name(query)))
        rows: list[tuple[int, str, int | None, int | None, int | None]] = []
        for asked in record.versions:
            parts = [part for part in record.parts if record.version_of(part) is asked]
            fresh = (record.instance(part.instance).fresh for part in parts)
            spans = [(f, part.since, part.until) for f, part in zip(fresh, parts, strict=True)]
            rows += [(asked.number, asked.text, *span) for span in spans]
            if not spans:
                rows.append((asked.number, asked.text, None, None, None))
        times = dict.fromkeys(("fresh", "since", "until"), pl.Int64)
        types = {"version": pl.Int64, "text": pl.String, **times}
        return pl.DataFrame(rows, schema=types, orient="row")

    def _is_forgotten(self, kind: ObjectKind, name: Name) -> bool:
        """Whether a query was dropped that an earlier session has left, while nothing runs."""
        if kind is not ObjectKind.QUERY or self._is_running:
            return False  # what runs takes the other catalog, and forgets by itself
        entry = self._catalog.find(name.text)
        return (entry is None or isinstance(entry, QueryEntry)) and self._forget(name.text)

    def _warn(self, notes: list[Note], source: str) -> None:
        """Tell what the statement is to be warned of, before it takes effect."""
        for note in notes:
            told = note.text(source)
            self._warnings.append(told)
            warnings.warn(told, TidemillWarning, stacklevel=_CALLER)

    def _define(self, statement: Definition, source: str) -> Entry:
        notes: list[Note] = []
        allowed = self._unbounded_state
        entry = define(
            statement, self._catalog, allow_unbounded=allowed, notes=notes, engine=self._engine
        )
        self._warn(notes, source)
        return entry

    def _explain(self, statement: Explain, source: str) -> str:
        """What runs, or would run, in one of its forms."""
        mode, target = statement.mode, statement.target
        if isinstance(target, Lifecycle):
            verdict = self._lives(target, source, is_done=False)
            return verdict.json() if statement.as_json else verdict.text()
        if isinstance(target, Name):
            planned = self.planned(target.text, span=target.span)
        else:
            notes: list[Note] = []
            # A plan can be looked at, whatever it costs.
            entry = define(
                target, self._catalog, allow_unbounded=True, notes=notes, engine=self._engine
            )
            self._warn(notes, source)
            assert isinstance(entry, QueryEntry), "these define queries"
            planned = self._planner(entry)
        return self._shown(planned, mode, as_json=statement.as_json)

    def planned(self, query: str, *, span: Span | None = None) -> Planned:
        """How a registered query is computed: the plan it runs with, or would run with.

        Raises:
            BindError: There is no such query.
        """
        entry = self._catalog.get(Name(query, span))
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

    def _execute(self, statement: Statement, source: str) -> Result:
        match statement:
            case CreateStream() | CreateRelation() | CreateDerivedStream() | CreateFunction():
                with self._changing():
                    entry = self._define(statement, source)
                    self._catalog = self._catalog.added(entry, span=statement.name.span)
                return None
            case CreateQuery() | Select():
                with self._changing():
                    entry = self._define(statement, source)
                    assert isinstance(entry, QueryEntry), "these define queries"
                    named = statement.name.span if isinstance(statement, CreateQuery) else None
                    added = self._catalog.added(entry, span=named)
                    late = entry
                    self._go_on_with(lambda moment: added.replaced(begun_late(late, moment)))
                return Query(entry.name, entry.plan, self, entry.time)
            case Drop(kind, name, if_exists):
                with self._changing():
                    is_gone = self._is_forgotten(kind, name) or if_exists
                    if not (is_gone and self._catalog.is_free(name.text, kind)):
                        without = self._catalog.dropped(name, kind)
                        self._go_on_with(lambda _moment: without)
                return None
            case Show(ObjectKind.QUERY):
                return self._show_queries()
            case Show(kind):
                return _frame(show(self._catalog, kind))
            case ShowConnectors():
                return _frame(show_connectors())
            case DescribeConnector(name):
                return _frame(describe_connector(name))
            case Describe(name):
                return _frame(describe_entry(self._catalog.get(name)))
            case Explain():
                return self._explain(statement, source)
            case (
                AlterQuery()
                | ReplanQuery()
                | StartQuery()
                | StopQuery()
                | PauseQuery()
                | ResumeQuery()
            ):
                with self._changing():
                    return self._lives(statement, source, is_done=True).text()
            case _:
                assert_never(statement)


def _script(text: str) -> Script:
    """The statements of a text."""
    try:
        return parse_script(text)
    except TidemillError as error:
        raise error.located(text) from None


def _which(number: int, statements: int) -> str | None:
    """Which statement of a script failed, and what became of the others."""
    if statements == 1:
        return None
    done = "; the statements before it took effect" if number > 1 else ""
    return f"{number} of {statements}{done}"


def _records(catalog: Catalog) -> dict[str, StoredRecord]:
    """What is kept of the queries that were changed, or began late."""
    entries = catalog.entries(ObjectKind.QUERY)
    return {
        entry.name.lower(): stored(entry.record)
        for entry in entries
        if isinstance(entry, QueryEntry) and entry.record is not None
    }


def _queries(catalog: Catalog) -> dict[str, QueryEntry]:
    """The queries of a catalog, by name."""
    entries = catalog.entries(ObjectKind.QUERY)
    return {entry.name: entry for entry in entries if isinstance(entry, QueryEntry)}


def _same(one: Mapping[str, QueryEntry], other: Mapping[str, QueryEntry]) -> bool:
    """Whether the same runs, and the same instants are wanted of it."""
    return one == other and all(one[name].cut == other[name].cut for name in one)


def _gone(job: Runs, moment: Moment, catalog: Catalog, queries: Catalog) -> dict[str, Answer]:
    """What instances have given in memory that do not run any more."""
    gone: dict[str, Answer] = {}
    for name in moment.known:
        entry = catalog.find(user_name(name))
        if isinstance(entry, QueryEntry) and not queries.find(name) and not delivered_to(entry):
            answer = job.answer(name)
            gone |= {} if answer is None else {name: answer}
    return gone


def _no_version(query: str, version: int | None, newest: int) -> RunError:
    return RunError(
        f'query "{query}" has no version {version}', hint=f"its versions are 1 to {newest}"
    )


def _frame(listing: Listing) -> pl.DataFrame:
    return pl.DataFrame(listing, schema=dict.fromkeys(listing, pl.String))
