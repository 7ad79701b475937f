"""A query as people hold it: its name, its plan, and the answer it has given so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Protocol, TypeGuard

from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.errors import PlanError, RunError, suggestion
from tidemill.lang.instants import instant_text
from tidemill.lang.statements import ExplainMode
from tidemill.lang.words import quote_name
from tidemill.model.time import Time, time_text, to_instant
from tidemill.model.types import BIGINT
from tidemill.runtime.one_time import LOOK_EVERY, NotKnownError
from tidemill.runtime.typed_times import with_typed_times

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime

    import polars as pl

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.history.table_view import Bag
    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.one_time import OneTimeAnswer
    from tidemill.runtime.progress import Progress, QueryProgress
    from tidemill.runtime.why import Why

__all__ = ["Query"]


class _Owner(Protocol):
    """What a query asks its session for."""

    @property
    def catalog(self) -> Catalog:
        """What is registered."""
        ...

    def answer(self, query: str, version: int | None = None) -> Answer:
        """What a query has given so far, or one version of it."""
        ...

    def bag(
        self, table: str, at: Time | None = None, where: Mapping[str, object] | None = None
    ) -> Bag:
        """The rows of a table at an instant."""
        ...

    @property
    def is_read_only(self) -> bool:
        """Whether it only looks at a checkpoint."""
        ...

    def ask(
        self,
        text: str,
        at: int | datetime | date | str | None = None,
        wait: float | None = None,
    ) -> OneTimeAnswer:
        """Ask a SELECT once."""
        ...

    def why(
        self,
        text: str,
        row: Mapping[str, object] | None = None,
        wait: float | None = None,
    ) -> Why:
        """Ask why rows are there, or not."""
        ...

    def versions(self, query: str) -> pl.DataFrame:
        """What a query has been asked, and which instants each version answers."""
        ...

    def is_active(self, query: str) -> bool:
        """Whether a query is in what is running, or was run last."""
        ...

    def explain(self, query: str, mode: ExplainMode) -> str:
        """A query as text, as it runs or would run."""
        ...

    def progress(self) -> Progress:
        """How far everything that runs has come."""
        ...

    def metrics(self) -> pl.DataFrame:
        """What each operator has done and remembers."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A registered continuous query.

    Attributes:
        name: What it is called.
        plan: What it means.
        session: Where it is registered.
        time: The type of ``start``, ``end`` and ``time`` of its answer: TIMESTAMP if the time
            columns of everything that it reads are, else BIGINT.
    """

    name: str
    plan: Plan
    session: _Owner = field(compare=False)
    time: DataType = BIGINT

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Query({self.name}: {columns})"

    @property
    def schema(self) -> Schema:
        """The columns of the answer, as the query is asked now."""
        entry = self.session.catalog.find(self.name)
        return entry.plan.schema if self._is_mine(entry) else self.plan.schema

    def explain(self, mode: str = "logical") -> str:
        """The query as text, as EXPLAIN shows it.

        Args:
            mode: ``"logical"``, what it means; ``"physical"``, the operators that run;
                ``"stages"``, which of them run where; ``"trace"``, what the optimizer did;
                ``"cost"``, what each operator is expected to cost, beside what was measured;
                ``"analyze"``, the operators with what each has done so far.

        Raises:
            PlanError: There is no such mode.
            RunError: The query was dropped, or is to be analyzed and has not been run.
        """
        modes = {known.value.lower(): known for known in ExplainMode}
        if mode not in modes:
            hint = suggestion(str(mode), modes, what="modes")
            raise PlanError(f'there is no mode "{mode}" of EXPLAIN', hint=hint)
        if self._entry() is None:
            raise RunError(f'query "{self.name}" was dropped', hint="create it again")
        return self.session.explain(self.name, modes[mode])

    def progress(self) -> QueryProgress:
        """How far the query has come in what is running, or was run last.

        Raises:
            RunError: Nothing has been run, or the query was not there.
        """
        self._entry()
        for progress in self.session.progress().queries:
            if progress.name == self.name and self.session.is_active(self.name):
                return progress
        raise self._not_there()

    def results(self, version: int | None = None) -> pl.DataFrame:
        """The answer in interval form: its columns, and ``start`` and ``end``.

        These are TIMESTAMP or BIGINT, as the streams declare their time columns; see ``time``. The
        end of a row that never ends is NULL as a TIMESTAMP, and the largest number as a BIGINT.

        Args:
            version: What one version of a changed query has given; without it, all versions that
                have the columns of the newest one.

        Raises:
            RunError: The query has not been run, another one has its name now, or its answer is
                not kept; or it has no such version.
        """
        return with_typed_times(self._answer(version).results(), self.time)

    def changes(self, version: int | None = None) -> pl.DataFrame:
        """The answer in signed form: its columns, ``time`` and ``sign``, in the order of time.

        Args:
            version: As for ``results``.

        Raises:
            RunError: The query has not been run, another one has its name now, or its answer is
                not kept; or it has no such version.
        """
        return with_typed_times(self._answer(version).changes(), self.time)

    def versions(self) -> pl.DataFrame:
        """What the query has been asked, and which instants each version answers.

        One row for each stretch of time: the ``version``, its ``text``, from when on rows are for
        it (``fresh``), and the instants it answers, in ``[since, until)``.

        Raises:
            RunError: Another query has its name now.
        """
        self._entry()
        return self.session.versions(self.name)

    def snapshot(
        self, at: int | datetime | date | str | None = None, wait: float | None = None
    ) -> pl.DataFrame:
        """The rows that are valid at an instant.

        It is given in microseconds, as a calendar time or date, or as the text of one in ISO form
        such as ``2026-03-01T12:00:00``; without a zone it is UTC.

        While streams go on, an answer is known up to some instant. Without ``at`` it is the last
        one that is known; after the end of the streams, when all are known, it is that of the
        latest row that was read.

        Where the answer is not in memory, because an earlier session has given it or another
        process runs the query, it is that of SELECT * FROM QUERY … AS OF, which needs streams that
        keep their past.

        Args:
            at: The instant.
            wait: For how many seconds to wait until it is known; without it, one that is not known
                yet is an error.

        Raises:
            RunError: It is no instant, or the query has not been run, another one has its name
                now, its answer is not kept, or is not known yet at that instant.
        """
        until = monotonic() + (wait or 0)
        while True:
            try:
                return self._snapshot(at, max(until - monotonic(), 0))
            except NotKnownError:
                if monotonic() >= until:
                    raise
                sleep(LOOK_EVERY)

    def _snapshot(self, at: int | datetime | date | str | None, wait: float) -> pl.DataFrame:
        if self._is_table():
            return self.session.bag(self.name, None if at is None else Time(to_instant(at))).rows
        asked = f"SELECT * FROM QUERY {quote_name(self.name)}"  # noqa: S608 — our SQL
        entry = self._entry()
        keep = entry is not None and self._keeps(entry)
        if self.session.is_read_only:
            return self.session.ask(asked, at, wait).frame
        answer = self._answer()
        if not answer.is_whole and keep:
            return self.session.ask(asked, at, wait).frame
        if not answer.is_whole:
            raise RunError(
                f'what "{self.name}" gave before this session was started is not kept, so its rows '
                "at an instant are not known",
                hint="write INTO parquet(…) to keep an answer; results() has what came since",
            )
        time = answer.present() if at is None else to_instant(at)
        if time is None:
            raise NotKnownError(
                f'nothing is known yet of the answer of "{self.name}"',
                hint="wait until rows have come, for example with session.await_idle()",
            )
        if time >= answer.known:
            raise NotKnownError(
                f'the answer of "{self.name}" is known up to {time_text(answer.known)}, and at '
                f"{time_text(time)} it can still change",
                hint="ask for an earlier instant, or for snapshot(), the last one that is known",
            )
        return answer.snapshot(time)

    def lookup(
        self, where: Mapping[str, object], at: int | datetime | date | str | None = None
    ) -> pl.DataFrame:
        """The rows of a table that have these values at an instant; see ``Table.lookup``.

        Raises:
            RunError: The query is no table; there is no such column, or it cannot have the value;
                or the instant is not known yet, or not kept any more.
        """
        if not self._is_table():
            raise RunError(
                f'"{self.name}" is not a table',
                hint="write CREATE TABLE … AS for a query whose rows are looked up",
            )
        time = None if at is None else Time(to_instant(at))
        return self.session.bag(self.name, time, where).rows

    def why(  # noqa: PLR0913 — what WHY can be asked with
        self,
        row: Mapping[str, object] | None = None,
        at: int | datetime | date | str | None = None,
        *,
        where: str | None = None,
        flat: bool = False,
        down_to: str | None = None,
        wait: float | None = None,
    ) -> Why:
        """Which rows of streams the rows of the answer were made of.

        It is computed from what streams have kept, so they have to keep their past.

        Args:
            row: Values that columns of the rows have that are asked about; all rows without it.
            at: The instant, as ``snapshot`` takes it; without it the last one that is known.
            where: A condition on the rows, in SQL.
            flat: Whether only rows of streams are told, and not what was made of them between.
            down_to: The derived stream at whose rows the explanation stops.
            wait: For how many seconds to wait until the instant is known.

        Raises:
            TidemillError: The instant is not known, rows that are needed are not kept, or the
                condition does not fit.
        """
        stops = "" if down_to is None else f" DOWN TO {quote_name(down_to)}"
        return self._asked_why("ALL " * flat, row, at, where, stops, wait)

    def why_change(
        self,
        row: Mapping[str, object] | None = None,
        at: int | datetime | date | str | None = None,
        *,
        where: str | None = None,
        wait: float | None = None,
    ) -> Why:
        """What came or went at an instant, so that rows of the answer came or went.

        The arguments are those of ``why``.

        Raises:
            TidemillError: As for ``why``.
        """
        return self._asked_why("CHANGE ", row, at, where, "", wait)

    def why_not(
        self,
        row: Mapping[str, object] | None = None,
        at: int | datetime | date | str | None = None,
        *,
        where: str = "TRUE",
        wait: float | None = None,
    ) -> Why:
        """Where candidates for rows that are not in the answer have ended.

        The arguments are those of ``why``; ``row`` or ``where`` says what the rows would be.

        Raises:
            TidemillError: As for ``why``; or there are such rows.
        """
        return self._asked_why("NOT ", row, at, where, "", wait)

    def _asked_why(  # noqa: PLR0913, PLR0917 — what WHY can be asked with
        self,
        kind: str,
        row: Mapping[str, object] | None,
        at: int | datetime | date | str | None,
        where: str | None,
        stops: str,
        wait: float | None,
    ) -> Why:
        self._entry()
        condition = "" if where is None else f" WHERE {where}"
        instant = "NOW" if at is None else instant_text(to_instant(at))
        text = f"WHY {kind}{quote_name(self.name)}{condition}{stops} AT {instant}"
        return self.session.why(text, row, wait)

    def _is_table(self) -> bool:
        entry = self._entry()
        return entry is not None and entry.is_table

    def metrics(self) -> pl.DataFrame:
        """What each operator of the query has done and remembers: its rows of session.metrics().

        Raises:
            RunError: Nothing has been run, or the query was not there.
        """
        self._entry()
        found = self.session.metrics()
        if not self.session.is_active(self.name):
            raise self._not_there()
        return found.filter(found["queries"].list.contains(self.name))

    def _not_there(self) -> RunError:
        return RunError(
            f'query "{self.name}" was not there in the last run', hint="call session.run() again"
        )

    def _answer(self, version: int | None = None) -> Answer:
        self._entry()
        return self.session.answer(self.name, version)

    def _keeps(self, entry: QueryEntry) -> bool:
        """Whether all streams of a query keep their past."""
        read = (self.session.catalog.find(name) for name in streams_of(entry.plan))
        return all(isinstance(one, StreamEntry) and one.keep is not None for one in read)

    def _is_mine(self, entry: object) -> TypeGuard[QueryEntry]:
        """Whether an entry is that of this query, which may have been changed since."""
        if not isinstance(entry, QueryEntry):
            return False
        versions = () if entry.record is None else entry.record.versions
        return self.plan in (entry.plan, *(version.plan for version in versions))

    def _entry(self) -> QueryEntry | None:
        """What is registered as this query; ``None`` if it was dropped.

        Raises:
            RunError: Another query has its name now.
        """
        entry = self.session.catalog.find(self.name)
        if not isinstance(entry, QueryEntry):
            return None
        if not self._is_mine(entry):
            raise RunError(
                f'query "{self.name}" was dropped, and another one has its name now',
                hint="take the query that session.sql() gave for it",
            )
        return entry
