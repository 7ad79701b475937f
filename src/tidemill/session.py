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
from typing import TYPE_CHECKING, TypeAlias, assert_never

import polars as pl

from tidemill.algebra.keys import least_key
from tidemill.binder.definitions import define
from tidemill.binder.one_time import bind_question
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.listing import describe_connector, describe_entry, show, show_connectors
from tidemill.control.asking import Asking, asked_text, explained
from tidemill.control.instances import (
    record_of,
)
from tidemill.control.living import (
    asking,
    new_version,
)
from tidemill.control.queries import LivingQueries
from tidemill.control.shown import stream_listing, version_rows
from tidemill.errors import (
    ParseError,
    PlanError,
    RunError,
    TidemillError,
    TidemillWarning,
    suggestion,
)
from tidemill.lang.parse import parse_script, require_one_query
from tidemill.lang.statements import (
    AlterQuery,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    Describe,
    DescribeConnector,
    Drop,
    Explain,
    ExplainMode,
    Lifecycle,
    Name,
    ObjectKind,
    OneTimeQuery,
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
from tidemill.optimizer.explain.planned import explain_json, explain_planned
from tidemill.runtime.frames import to_polars
from tidemill.runtime.metrics import metrics_frame
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.query import Query
from tidemill.runtime.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date, datetime
    from types import TracebackType
    from typing import Self

    from tidemill.binder.definitions import Definition
    from tidemill.binder.one_time import Question
    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import Entry
    from tidemill.catalog.listing import Listing
    from tidemill.connectors.connector import Engine
    from tidemill.control.kept import KeptCatalog
    from tidemill.control.verdict import Verdict
    from tidemill.errors import Note, Span
    from tidemill.history.table_view import Bag
    from tidemill.lang.parse import Script
    from tidemill.model.time import Time
    from tidemill.optimizer.planner import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.frames import Frame
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.runs import Runs

__all__ = ["Query", "Result", "Session", "Table"]


Result: TypeAlias = Query | pl.DataFrame | str | None
"""What a statement gives back: a query, a table (SHOW, AS OF), a text (EXPLAIN) or nothing."""


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
        engine: Engine | None = None,
        kept: KeptCatalog | None = None,
        queries: LivingQueries | None = None,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._new_job = job
        self._planner = planner
        self._unbounded_state = unbounded_state
        self._queries = queries or LivingQueries(planner, engine=engine, kept=kept)
        self._memory: dict[str, pl.DataFrame] = {}
        self._callbacks: dict[str, Callback] = {}
        self._warnings: list[str] = []

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
        return self._queries.catalog

    @property
    def is_read_only(self) -> bool:
        """Whether it only looks at a checkpoint."""
        return self._queries.is_read_only

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
        self._queries.run(self._job_for, end=end)

    def start(self) -> None:
        """Process what comes, for all queries, until the session is stopped.

        Queries can be created and dropped meanwhile; those that stay keep their state. A session
        with a checkpoint goes on where the last one was stopped. If it has other settings of
        planning, each query migrates to the plan that they make, as REPLAN does; its answer is the
        same at every instant.

        Raises:
            RunError: It is running already, the engine cannot, or a source cannot be read.
        """
        for told in self._queries.start(self._job_for):
            self._warnings.append(told)
            warnings.warn(told, TidemillWarning, stacklevel=2)

    def _job_for(self, catalog: Catalog) -> Runs:
        """A job for queries, with the frames that there are now."""
        if self._kept is not None:
            self._kept.require_given(catalog, self._memory, self._callbacks)
        return self._new_job(catalog, dict(self._memory), self._callbacks)

    def await_idle(self) -> None:
        """Wait until everything the sources hold now has been processed.

        Raises:
            RunError: The session is not running, or a source or sink cannot be read or written.
        """
        self._queries.await_idle()

    def progress(self) -> Progress:
        """How far what is running, or was run last, has come.

        Raises:
            RunError: Nothing has been run.
        """
        return self._queries.look.progress()

    def metrics(self) -> pl.DataFrame:
        """What each operator of what is running, or was run last, has done and remembers.

        One row an operator, those of earlier stages first: the ``queries`` it works for, its text
        (``operator``), its ``fingerprint``, its ``stage``; ``rows_in``, ``rows_out`` and
        ``seconds``, added up over all partitions since ``run`` or ``start``; ``state_rows``,
        ``state_bytes`` and ``watermark`` as they are now, NULL before the first batch.

        Raises:
            RunError: Nothing has been run.
        """
        return metrics_frame(self._queries.look.metrics())

    def stop(self) -> None:
        """Stop at the end of a batch; answers can still be read.

        Raises:
            RunError: This is called by a function that gets rows, so that it goes on.
        """
        self._queries.stop()

    def refused(self) -> pl.DataFrame:
        """How many rows of each stream the last run did not take, and why.

        Raises:
            RunError: Nothing has been run.
        """
        rows = [
            (name, reason, count)
            for name, gate in sorted(self._queries.look.finished().gates.items())
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
        job = self._queries.look.finished()
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
        answer = self._queries.look.answer(query, version)
        if answer is None:
            raise RunError(
                f'query "{query}" was not there in the last run', hint="call session.run() again"
            )
        return answer

    def current_answer(self, query: str) -> Answer | None:
        """What a query has given so far in the run that goes on, or in the last one.

        ``None`` if it was not there, or its answer went to a sink and is not kept.
        """
        return self._queries.look.current_answer(query)

    def is_active(self, query: str) -> bool:
        """Whether a query is in what is running, or was run last."""
        return self._queries.look.is_active(query)

    def sql(self, text: str) -> Result:
        """Carry out one or more statements; the result is that of the last one.

        A statement that fails changes nothing. Those before it in the text keep their effect, and
        the error says which one it was.

        Raises:
            TidemillError: A statement could not be parsed, bound or planned.
        """
        return self._carry_out(_script(text), text)

    def check(self, text: str) -> None:
        """Define what a text defines, without asking what it asks once: that is bound, no more.

        Raises:
            TidemillError: A statement could not be parsed, bound or planned.
        """
        self._carry_out(_script(text), text, asks=False)

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

    def ask(
        self,
        text: str,
        at: int | datetime | date | str | None = None,
        wait: float | None = None,
    ) -> OneTimeAnswer:
        """Ask a SELECT once, of one instant, from what streams have kept.

        Args:
            text: The SELECT, with AS OF or without it.
            at: The instant, as ``Query.snapshot`` takes it; ``None`` for the last one that is
                known, or for that of AS OF.
            wait: For how many seconds to wait until the instant is known; without it, one that is
                not known yet is an error.

        Raises:
            TidemillError: It is not exactly one SELECT, or could not be parsed or bound; the
                instant is not known yet; or rows that it needs are not kept.
        """
        script = _script(text)
        try:
            self._queries.refresh()
            return self._asked(asked_text(script, at), text, wait)
        except TidemillError as error:
            raise error.located(text) from None

    def _asked(
        self, statement: OneTimeQuery, source: str, wait: float | None = None
    ) -> OneTimeAnswer:
        """The answer to a query that is asked once."""
        question = self._question(statement, source)
        return self._asking().answer(question, statement.at, wait)

    def _question(self, statement: OneTimeQuery, source: str) -> Question:
        notes: list[Note] = []
        question = bind_question(statement.query, self._queries.catalog, notes)
        self._warn(notes, source)
        return question

    def _asking(self) -> Asking:
        """What there is to answer questions with."""
        queries = self._queries
        return Asking(
            queries.look.shown(),
            queries.past,
            self.current_answer,
            dict(self._memory),
            queries.kept_tables,
        )

    def find(self, name: str) -> Query:
        """A query that is registered, by its name; a session before may have created it.

        Raises:
            BindError: There is no such query.
        """
        self._queries.refresh()
        entry = self._queries.look.query_entry(Name(name))
        return Query(entry.name, entry.plan, self, entry.time)

    def table(self, name: str) -> Table:
        """A table that is registered, by its name; a session before may have created it.

        Raises:
            BindError: There is no such table.
        """
        entry = self._queries.look.table_entry(Name(name))
        key = least_key(entry.plan) or frozenset()
        named = tuple(one for one in entry.plan.schema.names if one in key)
        return Table(entry.name, entry.plan.schema, named, self)

    def bag(
        self, table: str, at: Time | None = None, where: Mapping[str, object] | None = None
    ) -> Bag:
        """The rows of a table at an instant, after one batch, with what is known and kept then.

        Args:
            table: The table.
            at: The instant, in microseconds; ``None`` for the last one that is known.
            where: Values that columns have.

        Raises:
            BindError: There is no such table.
            RunError: Nothing has been run, or the instant is not known yet or not kept any more.
        """
        return self._queries.bag(Name(table), at, where)

    def verdict(self, text: str) -> Verdict:
        """What ALTER, START, STOP, PAUSE or RESUME QUERY would do, as a value; nothing is done.

        Its ``text()`` is what EXPLAIN shows, its ``frame()`` has a row for each way of changing,
        and its ``json()`` is for programs.

        Raises:
            TidemillError: It is not exactly one such statement, or cannot be done.
        """
        script = _script(text)
        statement = script[0][0] if len(script) == 1 else None
        try:
            if not isinstance(statement, Lifecycle):
                raise ParseError(
                    "there is a verdict on one statement that concerns a query that lives",
                    hint="write ALTER, START, STOP, PAUSE or RESUME QUERY",
                )
            return self._lives(statement, text, is_done=False)
        except TidemillError as error:
            raise error.located(text) from None

    def explain(self, query: str, mode: ExplainMode, *, as_json: bool = False) -> str:
        """A registered query as text, as EXPLAIN shows it.

        Raises:
            BindError: There is no such query.
            RunError: It is to be analyzed, and has not been run.
        """
        return self._shown(self.planned(query), mode, as_json=as_json)

    def _shown(self, planned: Planned, mode: ExplainMode, *, as_json: bool) -> str:
        show = explain_json if as_json else explain_planned
        figures = self._queries.look.figures(planned) if mode is ExplainMode.ANALYZE else {}
        return show(mode, planned, figures)

    def _carry_out(self, script: Script, text: str, *, asks: bool = True) -> Result:
        result: Result = None
        for number, (statement, span) in enumerate(script, start=1):
            try:
                if isinstance(statement, OneTimeQuery) and not asks:
                    self._question(statement, text)
                else:
                    result = self._execute(statement, text)
            except TidemillError as error:
                raise error.located(text, statement=_which(number, len(script))) from None
            except RecursionError:
                deep = PlanError("the statement is nested too deeply", span=span, hint="split it")
                raise deep.located(text, statement=_which(number, len(script))) from None
        return result

    def _lives(self, statement: Lifecycle, source: str, *, is_done: bool) -> Verdict:
        """Carry out what is asked of a query that lives, or say what it would do.

        Raises:
            TidemillError: There is no such query, or it cannot be done.
        """
        entry = self._queries.look.query_entry(statement.name)
        version = None
        if isinstance(statement, AlterQuery):
            asked = asking(entry, statement)
            bound = self._define(asked, source)
            assert isinstance(bound, QueryEntry), "it defines a query"
            version = new_version(entry, unparse(asked), bound)
        return self._queries.carry_out(statement, entry, version, is_done=is_done)

    def versions(self, query: str) -> pl.DataFrame:
        """What a query has been asked, and which instants each version answers.

        Raises:
            BindError: There is no such query.
        """
        record = record_of(self._queries.look.query_entry(Name(query)))
        times = dict.fromkeys(("fresh", "since", "until"), pl.Int64)
        types = {"version": pl.Int64, "text": pl.String, **times}
        return pl.DataFrame(version_rows(record), schema=types, orient="row")

    def _warn(self, notes: list[Note], source: str) -> None:
        """Tell what the statement is to be warned of, before it takes effect."""
        for note in notes:
            told = note.text(source)
            self._warnings.append(told)
            warnings.warn(told, TidemillWarning, stacklevel=_CALLER)

    def _define(self, statement: Definition, source: str) -> Entry:
        notes: list[Note] = []
        allowed = self._unbounded_state
        catalog, engine = self._queries.catalog, self._engine
        entry = define(statement, catalog, allow_unbounded=allowed, notes=notes, engine=engine)
        self._warn(notes, source)
        return entry

    def _explain(self, statement: Explain, source: str) -> str:
        """What runs, or would run, in one of its forms."""
        mode, target = statement.mode, statement.target
        if isinstance(target, Lifecycle):
            verdict = self._lives(target, source, is_done=False)
            return verdict.json() if statement.as_json else verdict.text()
        if isinstance(target, OneTimeQuery):
            return explained(statement, self._question(target, source), self._asking())
        if isinstance(target, Name):
            planned = self.planned(target.text, span=target.span)
        else:
            notes: list[Note] = []
            catalog, engine = self._queries.catalog, self._engine
            # A plan can be looked at, whatever it costs.
            entry = define(target, catalog, allow_unbounded=True, notes=notes, engine=engine)
            self._warn(notes, source)
            assert isinstance(entry, QueryEntry), "these define queries"
            planned = self._planner(entry)
        return self._shown(planned, mode, as_json=statement.as_json)

    def planned(self, query: str, *, span: Span | None = None) -> Planned:
        """How a registered query is computed: the plan it runs with, or would run with.

        Raises:
            BindError: There is no such query.
        """
        return self._queries.look.planned(query, span=span)

    def _execute(self, statement: Statement, source: str) -> Result:
        queries = self._queries
        queries.refresh()
        match statement:
            case (
                CreateStream()
                | CreateRelation()
                | CreateChangingRelation()
                | CreateDerivedStream()
                | CreateFunction()
            ):
                with queries.changing():
                    if queries.find(statement) is None:
                        queries.add(statement, self._define(statement, source))
                return None
            case CreateQuery() | CreateTable() | Select():
                with queries.changing():
                    entry = queries.find(statement)
                    if entry is None:
                        entry = self._define(statement, source)
                        queries.add(statement, entry)
                return self.find(entry.name)
            case OneTimeQuery():
                return self._asked(statement, source).frame
            case Drop():
                with queries.changing():
                    queries.drop(statement)
                return None
            case Show(ObjectKind.QUERY):
                return _frame(queries.look.listing())
            case Show(ObjectKind.TABLE):
                return _frame(queries.tables())
            case Show(ObjectKind.STREAM):
                since = queries.look.kept_from()
                since = self._asking().kept_from() if since is None else since
                return _frame(stream_listing(queries.catalog, since))
            case Show(kind):
                return _frame(show(queries.catalog, kind))
            case ShowConnectors():
                return _frame(show_connectors())
            case DescribeConnector(name):
                return _frame(describe_connector(name))
            case Describe(name):
                return _frame(describe_entry(queries.catalog.get(name)))
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
                with queries.changing():
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


def _frame(listing: Listing) -> pl.DataFrame:
    return pl.DataFrame(listing, schema=dict.fromkeys(listing, pl.String))
