"""Asked once: the answer to a question at one instant, from what is kept at one boundary.

An instant is known when it is before the watermarks of all streams that are read: no row from then
or before will be taken any more. Of each stream the rows from ``needs(plan, t)`` on are read, up to
``newest(plan, t)``; what is not kept of them is an error, never a smaller answer.

The answer of a query that is registered is computed from kept rows, as its record says: the bag of
what its parts say at the instant. So it is the same in every process. Where rows are not kept, it
is what the query has given, if all of that is at hand.

Law: the rows at t are the snapshot at t of the plan as if it had always run, by the reference
evaluator; of a query that was changed, the bag of what each of its parts says. They do not depend
on the boundary, nor on the process that asks.

The rows of a table are those that it has kept (``asked_tables.py``); at an instant that is too old
for it, they are computed from streams like those of other queries, if these have kept enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.reach import needs, newest, since_of
from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry, kind_of
from tidemill.control.asked_tables import KeptTables
from tidemill.control.delivered import delivered_to
from tidemill.control.instances import record_of
from tidemill.control.not_kept import no_past, not_kept
from tidemill.control.speaking import speaking
from tidemill.engine.ingest import relation_flow
from tidemill.errors import RunError
from tidemill.history.table_view import TooOldError
from tidemill.model.batch import polars_schema
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.runtime.local.one_time import always_valid, computed
from tidemill.runtime.local.sources import read_relation
from tidemill.runtime.one_time import NotKeptError, NotKnownError, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.binder.one_time import Question
    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.records import Part, Record
    from tidemill.model.batch import Batch
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.past import Past

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What can be answered at one boundary.

    Attributes:
        catalog: What is registered.
        past: What is kept.
        given: What a query has given in memory, or in its files, if that is at hand.
        memory: The frames that ``memory`` sources name.
        tables: The tables that are read, looked at before what streams have kept.
    """

    catalog: Catalog
    past: Past
    given: Callable[[str], Answer | None]
    memory: Mapping[str, pl.DataFrame]
    tables: KeptTables = field(default_factory=KeptTables)

    # Instants

    def known(self, question: Question) -> Time:
        """Up to when everything that a question reads is known."""
        streams = [self._come(name) for name in streams_of(question.plan)]
        queries = [self._query_known(self._query(name)) for name in question.answers.values()]
        return min((*streams, *queries), default=END_OF_TIME)

    def now(self, question: Question) -> Time:
        """The last instant that is known; when all streams have ended, that of the latest row.

        Raises:
            RunError: None is known.
        """
        known = self.known(question)
        if 0 < known < END_OF_TIME:
            return Time(known - 1)
        if not known:
            raise self._not_known(question, None)
        entries = [self._query(name) for name in question.answers.values()]
        queries = [entry for entry in entries if not entry.is_table]
        read = {*streams_of(question.plan), *(s for e in queries for s in streams_of(e.plan))}
        latest = [time for name, time in self.past.latest.items() if name in read]
        given = (self._whole(entry) for entry in queries)
        latest += [time for one in given if one is not None and (time := one.present())]
        views = self.tables.views.values()
        latest += [time for one in views if (time := one.state.present) is not None]
        if read or entries:
            return max(latest, default=Time(0))
        return computed(question.plan, self.relation_rows).present() or Time(0)

    def require_known(self, question: Question, time: Time) -> None:
        """Refuse an instant that is not known yet.

        Raises:
            NotKnownError: It is one.
        """
        if time >= self.known(question):
            raise self._not_known(question, time)

    def _not_known(self, question: Question, time: Time | None) -> NotKnownError:
        known = self.known(question)
        names = [name for name in streams_of(question.plan) if self._come(name) == known]
        which = f'stream "{names[0]}" has come' if names else self._behind(question, known)
        wait = "session.ask(…, wait=10) waits for it"
        if not known:
            return NotKnownError(
                "nothing is known yet of what is asked: no batch has been done that says how far"
                " its streams have come",
                hint=f"let the pipeline run until rows have come; {wait}",
            )
        assert time is not None, "something is known"
        return NotKnownError(
            f"the answer is known up to {time_text(known)}, as far as {which}, and at"
            f" {time_text(time)} it can still change",
            hint=f"ask for an earlier instant, or AS OF NOW, the last one that is known; {wait}",
        )

    def _behind(self, question: Question, known: Time) -> str:
        """The query that is known no further."""
        entries = map(self._query, question.answers.values())
        found = (entry for entry in entries if self._query_known(entry) == known)
        kinds = ((kind_of(entry).value.lower(), entry.name) for entry in found)
        return next((f'{kind} "{name}"' for kind, name in kinds), "what it reads")

    def _come(self, stream: str) -> Time:
        return self.past.watermarks.get(stream, Time(0))

    # Answers

    def require_kept(self, question: Question) -> None:
        """Refuse streams that do not keep their past, whatever the instant.

        Raises:
            RunError: There is one.
        """
        for name in streams_of(question.plan):
            self._require_keep(name)

    def frame(self, question: Question, time: Time) -> pl.DataFrame:
        """The rows at an instant that is known, in the order that is asked for.

        Raises:
            RunError: Rows that are needed are not kept.
            RemovedError: They have been removed while they were read.
        """
        answers = {
            relation: self._query_rows(self._query(name), time)
            for relation, name in question.answers.items()
        }
        found = self._snapshot(question.plan, time, answers)
        return in_order(found, question)

    def _snapshot(
        self, plan: Plan, time: Time, answers: Mapping[str, pl.DataFrame] | None = None
    ) -> pl.DataFrame:
        """The rows of a plan at an instant, from what is kept."""
        first, last = self.needed(plan, time), newest(plan, time)

        def rows(name: str) -> Iterable[Batch]:
            if answers is not None and name in answers:
                return [always_valid(answers[name])]
            if name in first:
                return self.past.streams[name].rows(first[name], last)
            return self.relation_rows(name)

        return computed(plan, rows).snapshot(time)

    def needed(
        self, plan: Plan, time: Time, given: Container[str] = frozenset()
    ) -> dict[str, Time]:
        """From when on the rows of each stream are needed, but for those that are given.

        Raises:
            RunError: Some of them are not kept.
        """
        first = {name: at for name, at in self.first(plan, time).items() if name not in given}
        for name in first:
            self._require_keep(name)
        for name, least in first.items():
            kept = self.past.streams.get(name)
            if kept is None or least < kept.since:
                raise not_kept(self.past, plan, time, name, least)
        return first

    @staticmethod
    def first(plan: Plan, time: Time) -> dict[str, Time]:
        """From when on the rows of each stream can matter at an instant."""
        begun = since_of(plan)
        return {name: max(least, begun[name]) for name, least in needs(plan, time).items()}

    def _require_keep(self, name: str) -> None:
        entry = self.catalog.find(name)
        if isinstance(entry, StreamEntry) and entry.keep is None:
            raise no_past(name)

    def relation_rows(self, name: str) -> list[Batch]:
        """The rows of a relation, as elements."""
        entry = self.catalog.find(name)
        assert isinstance(entry, RelationEntry), "it was bound"
        frame = self.past.relation(entry)
        known = read_relation(entry, self.memory) if frame is None else frame
        return relation_flow(entry, known).batches

    # Registered queries

    def _query(self, name: str) -> QueryEntry:
        entry = self.catalog.find(name)
        assert isinstance(entry, QueryEntry), "it was bound"
        return entry

    def _whole(self, entry: QueryEntry) -> Answer | None:
        """What a query has given, if all of it is in memory."""
        if delivered_to(entry) is not None:
            return None
        answer = self.given(entry.name)
        return answer if answer is not None and answer.is_whole else None

    def _query_known(self, entry: QueryEntry) -> Time:
        """Up to when the answer of a query is known: from memory, or from kept rows."""
        if entry.is_table:
            view = self.tables.views.get(entry.name)
            return Time(0) if view is None else view.known
        whole, streams = self._whole(entry), self._streams_of(entry)
        come = min((self._come(name) for name in streams), default=END_OF_TIME)
        if whole is None:
            return come
        is_kept = all(name in self.past.streams for name in streams)
        return max(whole.known, come) if is_kept else whole.known

    def _streams_of(self, entry: QueryEntry) -> frozenset[str]:
        """The streams that a query reads, in parts that are not over as well."""
        record = record_of(entry)
        plans = [record.current.plan]
        for part in record.parts:
            plan = record.version_of(part).plan
            come = (self._come(name) for name in streams_of(plan))
            plans += [plan] if part.until > min(come, default=END_OF_TIME) else []
        return frozenset().union(*map(streams_of, plans))

    def _query_rows(self, entry: QueryEntry, time: Time) -> pl.DataFrame:
        """The answer of a query at an instant.

        Raises:
            RunError: It does not say what it answers then, or rows that are needed are not kept.
        """
        record = record_of(entry)
        parts = list(speaking(entry.name, record, time))
        if entry.is_table:
            return self._table_rows(entry, parts, time)
        try:
            return self._parts_rows(entry, parts, time)
        except NotKeptError:
            given = self.given(entry.name)
            if given is None or not given.is_whole or time >= given.known:
                raise
            return given.snapshot(time)

    def _table_rows(self, entry: QueryEntry, parts: list[Part], time: Time) -> pl.DataFrame:
        """The rows of a table at an instant that is known."""
        try:
            return self.tables.rows(entry, time)
        except TooOldError as error:
            if any(time >= self._come(name) for name in self._streams_of(entry)):
                raise
            try:
                return self._parts_rows(entry, parts, time)
            except NotKeptError as missing:
                raise NotKeptError(error.message, hint=error.hint) from missing

    def _parts_rows(self, entry: QueryEntry, parts: list[Part], time: Time) -> pl.DataFrame:
        """What parts of a query answer, from what streams have kept."""
        record = record_of(entry)
        found = [self._part_rows(entry.name, record, part, time) for part in parts]
        nothing = pl.DataFrame(schema=polars_schema(record.current.plan.schema))
        return pl.concat([nothing, *found])

    def plans(self, entry: QueryEntry, time: Time) -> list[Plan]:
        """What a query computes at an instant, part by part, over the rows that are for each.

        Raises:
            RunError: It is not known what it answers then.
        """
        record = record_of(entry)
        parts = speaking(entry.name, record, time)
        return [self._part_plan(entry.name, record, part, time) for part in parts]

    def _part_plan(self, query: str, record: Record, part: Part, time: Time) -> Plan:
        """What a part of a query computes.

        Raises:
            NotKnownError: It gives its rows later.
        """
        plan = record.instance(part.instance).begun(record.version_of(part).plan)
        come = min((self._come(name) for name in streams_of(plan)), default=END_OF_TIME)
        if come < part.held:
            raise NotKnownError(
                f'query "{query}" gives its answer at {time_text(time)} when all is known up to'
                f" {time_text(part.held)}, and {time_text(come)} has been reached",
                hint="session.ask(…, wait=10) waits for it",
            )
        return plan

    def _part_rows(self, query: str, record: Record, part: Part, time: Time) -> pl.DataFrame:
        """What a part of a query answers."""
        plan = self._part_plan(query, record, part, time)
        try:
            return self._snapshot(plan, time)
        except RunError as error:
            error.message = f'query "{query}" cannot be answered: {error.message}'
            raise
