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
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.algebra.keys import least_key
from tidemill.catalog.entries import QueryEntry
from tidemill.control.adapt_setting import NO_ADAPTING
from tidemill.control.admission import NO_LIMITS, SessionLimits
from tidemill.control.instances import record_of
from tidemill.control.queries import LivingQueries
from tidemill.control.refusals import quarantined, refused_rows
from tidemill.control.shown import version_rows
from tidemill.control.statements import Statements, script_of
from tidemill.control.tables import bag_of
from tidemill.errors import RunError, TidemillError, TidemillWarning
from tidemill.lang.parse import require_one_query
from tidemill.lang.statements import ExplainMode, Name
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.frames import to_polars
from tidemill.runtime.metrics import metrics_frame
from tidemill.runtime.planning import planner_of
from tidemill.runtime.query import Query
from tidemill.runtime.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date, datetime
    from types import TracebackType
    from typing import Self

    from tidemill.catalog.catalog import Catalog
    from tidemill.connectors.connector import Engine
    from tidemill.control.adapt_setting import AdaptSetting
    from tidemill.control.kept import KeptCatalog
    from tidemill.control.statements import Carried
    from tidemill.control.verdict import Verdict
    from tidemill.errors import Span
    from tidemill.history.table_view import Bag
    from tidemill.model.time import Time
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.frames import Frame
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.runs import Runs
    from tidemill.runtime.why import Why

__all__ = ["Query", "Result", "Session", "Table"]


Result: TypeAlias = Query | pl.DataFrame | str | None
"""What a statement gives back: a query, a table (SHOW, AS OF), a text (EXPLAIN) or nothing."""


class Session:
    """A catalog, the statements that change it, and the answers of its queries."""

    def __init__(  # noqa: PLR0913 — what a session is made of
        self,
        job: Callable[[Catalog, Mapping[str, pl.DataFrame], Mapping[str, Callback]], Runs],
        *,
        planner: Callable[[QueryEntry, Statistics], Planned] | None = None,
        unbounded_state: bool = False,
        engine: Engine | None = None,
        kept: KeptCatalog | None = None,
        queries: LivingQueries | None = None,
        limits: SessionLimits = NO_LIMITS,
        adaptive: Callable[[QueryEntry, Statistics], Planned] | None = None,
        adapting: AdaptSetting = NO_ADAPTING,
    ) -> None:
        self._kept = kept
        self._new_job = job
        plans = planner_of(PLANNING) if planner is None else planner
        self._queries = queries or LivingQueries(
            plans, adaptive=adaptive, engine=engine, kept=kept, adapting=adapting
        )
        self._memory: dict[str, pl.DataFrame] = {}
        self._callbacks: dict[str, Callback] = {}
        self._statements = Statements(
            self._queries,
            engine=engine,
            unbounded_state=unbounded_state,
            memory=self._memory,
            limits=limits,
        )

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
        return tuple(self._statements.told)

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
            self._statements.told.append(told)
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
        return refused_rows(self._queries.look.finished())

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were not taken and are kept, with the reason.

        Those that are late, or have no valid time, are kept with LATE QUARANTINE; malformed ones
        with MALFORMED QUARANTINE, and then with their file, line, problem and text.

        Raises:
            RunError: Nothing has been run, or no query reads the stream.
        """
        return quarantined(self._queries.look.finished(), stream)

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
        return self._given(self._statements.carry_out(script_of(text), text))

    def _given(self, carried: Carried) -> Result:
        """What a statement has given, as people hold it."""
        return self._held(carried) if isinstance(carried, QueryEntry) else carried

    def _held(self, entry: QueryEntry) -> Query:
        return Query(entry.name, entry.plan, self, entry.time)

    def check(self, text: str) -> None:
        """Define what a text defines, without asking what it asks once: that is bound, no more.

        Raises:
            TidemillError: A statement could not be parsed, bound or planned.
        """
        self._statements.carry_out(script_of(text), text, asks=False)

    def query(self, text: str) -> Query:
        """Register one query: a SELECT, or a CREATE QUERY.

        It is what ``sql`` does with such a statement; here the type of the result is known, and
        anything else is refused before it is carried out.

        Raises:
            TidemillError: It is not exactly one query, or could not be parsed, bound or planned.
        """
        script = script_of(text)
        try:
            require_one_query(script)
        except TidemillError as error:
            raise error.located(text) from None
        made = self._statements.carry_out(script, text)
        assert isinstance(made, QueryEntry), "these statements make queries"
        return self._held(made)

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
        return self._statements.ask(text, at, wait)

    def why(
        self,
        text: str,
        row: Mapping[str, object] | None = None,
        wait: float | None = None,
        *,
        at: int | datetime | date | str | None = None,
    ) -> Why:
        """Ask why rows of an answer are there, came or went, or are not there.

        Args:
            text: A statement: WHY, WHY CHANGE or WHY NOT.
            row: Values that columns of the rows have that are asked about, besides WHERE.
            at: The instant, if the text has no AT; without either, the last one that is known.
            wait: For how many seconds to wait until the instant is known.

        Raises:
            TidemillError: It is not exactly one such statement, or could not be parsed or bound;
                the instant is not known yet; or rows that it needs are not kept.
        """
        return self._statements.why(text, row, wait, at)

    def find(self, name: str) -> Query:
        """A query that is registered, by its name; a session before may have created it.

        Raises:
            BindError: There is no such query.
        """
        self._queries.refresh()
        return self._held(self._queries.look.query_entry(Name(name)))

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
        look = self._queries.look
        return bag_of(look, self._queries.directory, look.table_entry(Name(table)), at, where)

    def verdict(self, text: str) -> Verdict:
        """What ALTER, START, STOP, PAUSE or RESUME QUERY would do, as a value; nothing is done.

        Its ``text()`` is what EXPLAIN shows, its ``frame()`` has a row for each way of changing,
        and its ``json()`` is for programs.

        Raises:
            TidemillError: It is not exactly one such statement, or cannot be done.
        """
        return self._statements.verdict(text)

    def explain(self, query: str, mode: ExplainMode, *, as_json: bool = False) -> str:
        """A registered query as text, as EXPLAIN shows it.

        Raises:
            BindError: There is no such query.
            RunError: It is to be analyzed, and has not been run.
        """
        return self._statements.plan_text(self.planned(query), mode, as_json=as_json)

    def versions(self, query: str) -> pl.DataFrame:
        """What a query has been asked, and which instants each version answers.

        Raises:
            BindError: There is no such query.
        """
        record = record_of(self._queries.look.query_entry(Name(query)))
        times = dict.fromkeys(("fresh", "since", "until"), pl.Int64)
        types = {"version": pl.Int64, "text": pl.String, **times}
        return pl.DataFrame(version_rows(record), schema=types, orient="row")

    def planned(self, query: str, *, span: Span | None = None) -> Planned:
        """How a registered query is computed: the plan it runs with, or would run with.

        Raises:
            BindError: There is no such query.
        """
        return self._queries.look.planned(query, span=span)
