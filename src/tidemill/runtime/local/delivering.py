"""Delivering: what becomes of the answers of each step, in memory and in sinks.

All instances of a query go to its sink together, so that what one withdraws and another announces
at the same instant is seen as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from tidemill.catalog.records import user_name
from tidemill.engine.ingest import latest_row
from tidemill.errors import RunError
from tidemill.model.batch import Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.answers import Answer
from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.console import ConsoleSink
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.progress import QueryProgress
from tidemill.runtime.shapes import new_rows
from tidemill.runtime.sinks import TableSink
from tidemill.runtime.tables import Tables, known_up_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.engine.ingest import Gate
    from tidemill.model.batch import Batch

__all__ = ["Delivery", "LocalSink", "file_sinks"]

LocalSink: TypeAlias = FileSink | ConsoleSink | CallbackSink | TableSink


@dataclass(slots=True)
class _Given:
    """What a query has given so far.

    Attributes:
        entry: The query.
        sink: Where its answer goes; ``None`` for memory.
        answer: The answer, if it is kept.
        rows: How many elements or changes it has.
        known: Up to when it is known.
        last_read: The time of the latest row that was read for it.
    """

    entry: QueryEntry
    sink: LocalSink | None
    answer: Answer | None
    rows: int = 0
    known: Time = field(default=Time(0))
    last_read: Time | None = None


class Delivery:
    """The answers of the queries that run.

    Args:
        keeps_all: Whether answers that go to a sink are kept in memory as well: a run that goes on
            for ever cannot.
        tables: Where tables are; without it, in memory.

    Attributes:
        tables: Likewise.
    """

    def __init__(self, *, keeps_all: bool, tables: Tables | None = None) -> None:
        self.tables = Tables() if tables is None else tables
        self._keeps_all = keeps_all
        self._given: dict[str, _Given] = {}
        self._idle: Mapping[str, LocalSink] = {}

    def go_on_with(
        self,
        queries: Mapping[str, QueryEntry],
        sinks: Mapping[str, LocalSink],
        idle: Mapping[str, LocalSink],
        resumed: Mapping[str, Time] = MappingProxyType({}),
    ) -> None:
        """Deliver the answers of these queries from now on; those that stay keep what they have.

        Args:
            queries: The queries, or instances of them.
            sinks: Where answers go, by what people call the query.
            idle: Where those of queries have gone of which nothing runs any more.
            resumed: Up to when the answers are known of those that an earlier session has begun.
        """
        self._idle = dict(idle)
        self._given = {
            name: self._given[name]
            if name in self._given and self._given[name].entry == entry
            else _Given(
                entry,
                sinks.get(user_name(name)),
                Answer(entry.plan.schema, is_whole=name not in resumed)
                if _is_kept(sinks.get(user_name(name)), keeps_all=self._keeps_all)
                else None,
                known=resumed.get(name, Time(0)),
            )
            for name, entry in queries.items()
        }
        for name, given in self._given.items():
            given.entry = queries[name]  # other instants of it may be wanted now
            if given.answer is not None:
                given.answer.known = given.known

    def deliver(
        self,
        number: int,
        answers: Mapping[str, list[Batch]],
        known: Mapping[str, Time],
        gates: Mapping[str, Gate],
    ) -> None:
        """Deliver the new elements of a step.

        Args:
            number: The number of the step.
            answers: What each query has given in it.
            known: Up to when each answer is known.
            gates: What came on each stream.

        Raises:
            RunError: A sink cannot be written, or a function has failed.
        """
        written: dict[str, list[Batch]] = {}
        for name, batches in answers.items():
            given = self._given[name]
            if given.answer is not None:
                given.answer.add(batches)
                given.answer.known = known[name]
            given.rows += sum(batch.height for batch in batches)
            given.last_read = latest_row(given.entry.plan, gates)
            if given.answer is not None:
                given.answer.last_read = given.last_read
            if given.sink is not None and any(batch.height for batch in batches):
                written.setdefault(user_name(name), []).extend(batches)
        sinks = {user_name(name): given.sink for name, given in self._given.items()}
        for name, sink in sinks.items():
            if isinstance(sink, TableSink):
                self._take(name, number, written.get(name, []), known)
            elif name in written:
                assert sink is not None, "it was found"
                _write(sink, number, written[name])
        # Not before it is written: who reads meanwhile would miss rows of what is said to be known.
        for name in answers:
            self._given[name].known = known[name]

    def _take(
        self, name: str, number: int, batches: list[Batch], known: Mapping[str, Time]
    ) -> None:
        """Let a table take what a step has given."""
        mine = {query: one for query, one in self._given.items() if user_name(query) == name}
        reads = [one.last_read for one in mine.values() if one.last_read is not None]
        reached = [(one.entry.cut, known.get(query, one.known)) for query, one in mine.items()]
        read = max(reads, default=None)
        self.tables.take(number, name, batches, known=known_up_to(reached), read=read)

    def publish(self) -> None:
        """Let readers of tables see what the step has given: it is done."""
        self.tables.publish()

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if it is there: from memory, or from the files it goes to.

        Raises:
            RunError: It goes to where it cannot be read back from.
        """
        mine = [one for name, one in self._given.items() if user_name(name) == user_name(query)]
        sinks = [one.sink for one in mine if one.sink is not None]
        sink = sinks[0] if sinks else self._idle.get(user_name(query))
        if isinstance(sink, TableSink):
            return self.tables.answer(sink)
        if sink is None:
            return self._given[query].answer if query in self._given else None
        # What instances have given was cut, so that all of it is the answer of the query.
        known = Time(min((one.known for one in mine), default=END_OF_TIME))
        kept = [one.answer for one in mine if one.answer is not None]
        if len(kept) == len(mine) == 1:
            return kept[0]
        if self._keeps_all:
            answer = Answer(sink.schema)
            for one in kept:
                answer.add(one.whole(form) for form in Form)
        elif isinstance(sink, FileSink):
            answer = sink.answer()
        else:
            raise _not_kept(query)
        answer.known = known
        reads = [one.last_read for one in mine if one.last_read is not None]
        answer.last_read = max(reads, default=None)
        return answer

    def progress(self) -> tuple[QueryProgress, ...]:
        """How many elements each query has given."""
        return tuple(QueryProgress(name, given.rows) for name, given in list(self._given.items()))


def _is_kept(sink: LocalSink | None, *, keeps_all: bool) -> bool:
    """Whether an answer is kept in memory; a table has its own way to keep it."""
    return sink is None or (keeps_all and not isinstance(sink, TableSink))


def file_sinks(sinks: Mapping[str, LocalSink]) -> Iterator[FileSink]:
    """Those that are files."""
    return (sink for sink in sinks.values() if isinstance(sink, FileSink))


def _write(sink: LocalSink, number: int, batches: list[Batch]) -> None:
    """Give the new rows of a step to a sink."""
    assert not isinstance(sink, TableSink), "tables take rows otherwise"
    if isinstance(sink, FileSink):
        sink.write(number, 0, batches)
        sink.settle(number)
        return
    rows = new_rows(sink.schema, batches, sink.shape)
    if rows.height:  # changes of one instant may come to nothing
        sink.take(rows, number)


def _not_kept(query: str) -> RunError:
    return RunError(
        f'the answer of "{query}" goes to its sink and is not kept',
        hint="leave out INTO, or write INTO parquet(…)",
    )
