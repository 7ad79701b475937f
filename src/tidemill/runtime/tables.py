"""The tables of a pipeline: the kept answers of queries, in a checkpoint or in memory.

A table is taken a batch at a time, and shown to readers when the batch is done (``publish``).

Law: a view of a table (``history/table_view.py``) is of one batch that is done. A table that is
opened again after a kill is that of the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.history import tables
from tidemill.history.table_list import GoneError
from tidemill.history.table_view import TableView
from tidemill.history.tables import Limits, Table
from tidemill.model.batch import Form, time_columns
from tidemill.model.spans import Leaves
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.answers import Answer
from tidemill.runtime.damage import damaged
from tidemill.runtime.sinks import TableSink
from tidemill.runtime.table_files import MemoryTable, TableFiles, forget_table, table_place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tidemill.history.table_list import Store
    from tidemill.model.batch import Batch
    from tidemill.model.spans import Cut, Span

_TRIES = 100

__all__ = ["Tables", "known_up_to", "table_sinks"]


class Tables:
    """The tables that a pipeline writes.

    Args:
        directory: The checkpoint; ``None`` for memory.
        limits: When pieces are made anew.
    """

    def __init__(self, directory: Path | None = None, limits: Limits | None = None) -> None:
        self._directory = directory
        self._limits = tables.LIMITS if limits is None else limits
        self._tables: dict[str, Table] = {}

    def begin(self, sinks: Mapping[str, object]) -> None:
        """Make the tables of queries that begin, which are empty.

        Args:
            sinks: The sinks of these queries, whatever they are.

        Raises:
            OSError: They cannot be written.
        """
        for sink in table_sinks(sinks):
            self._tables.pop(sink.query, None)
            if self._directory is not None:
                forget_table(self._directory, sink.query)  # of one that was never finished
            self._open(sink, done=0)

    def open(self, sinks: Mapping[str, object], done: int) -> None:
        """Write these tables from now on; those of sessions before go on.

        Others that were written stay as they are, to be read.

        Args:
            sinks: The sinks of all queries that there are, whatever they are.
            done: The number of the next batch.

        Raises:
            RunError: A table is damaged, or missing.
            OSError: It cannot be written.
        """
        for sink in table_sinks(sinks):
            if sink.query not in self._tables:
                self._open(sink, done, must_be_there=True)

    def _open(self, sink: TableSink, done: int, *, must_be_there: bool = False) -> None:
        store: Store = MemoryTable()
        if self._directory is not None:
            store = files = TableFiles(
                table_place(self._directory, sink.query),
                by_values=sink.shape.form is Form.SIGNED,
            )
            if must_be_there and not files.is_there:
                raise damaged(f'table "{sink.query}"', "its files are missing")
        try:
            table = Table(
                store,
                sink.schema,
                sink.keep,
                done=done,
                key=sink.key,
                limits=self._limits,
                form=sink.shape.form,
            )
        except DamagedError as error:
            raise damaged(f'table "{sink.query}"', error) from error
        self._tables[sink.query] = table

    def take(
        self,
        batch: int,
        table: str,
        batches: Sequence[Batch],
        *,
        known: Time,
        read: int | None,
    ) -> None:
        """Take in what a batch has changed of a table.

        Args:
            batch: The number of the batch.
            table: The table.
            batches: The changes, in signed form, or rows with their ends.
            known: Up to when it is known then.
            read: The time of the latest row that was read for it.

        Raises:
            RunError: It is damaged.
            OSError: It cannot be written.
        """
        found = self._tables[table]
        columns = [*found.schema.names, *time_columns(found.form)]
        rows = pl.concat([pick(one, columns) for one in batches]) if batches else None
        try:
            found.take(batch, rows, known=known, read=read)
        except (DamagedError, GoneError) as error:
            raise damaged(f'table "{table}"', error) from error

    def publish(self) -> None:
        """Let readers see what was taken: the batch is done."""
        for table in self._tables.values():
            table.publish()

    def view(self, name: str) -> TableView | None:
        """A table as it is now; ``None`` if there is none of this name."""
        table = self._tables.get(name)
        if table is None:
            return None
        return TableView(name, table.schema, table.keep, table.state, table.store)

    def answer(self, sink: TableSink) -> Answer | None:
        """What is kept of a table, as an answer; ``None`` if it is not there.

        Raises:
            RunError: It is damaged, or is written faster than it can be read.
        """
        for _ in range(_TRIES):
            view = self.view(sink.query)
            if view is None:
                return None
            answer = Answer(sink.schema, is_whole=not view.since)
            try:
                answer.add([view.changes()])
            except GoneError:
                continue  # a batch was done meanwhile
            except DamagedError as error:
                raise damaged(f'table "{sink.query}"', error) from error
            read = view.state.read
            answer.known, answer.last_read = view.known, None if read is None else Time(read)
            return answer
        raise RunError(
            f'table "{sink.query}" was written faster than it could be read', hint="ask again"
        )


def table_sinks(sinks: Mapping[str, object]) -> Iterator[TableSink]:
    """Those that are tables."""
    return (sink for sink in sinks.values() if isinstance(sink, TableSink))


def known_up_to(instances: Collection[tuple[Cut | None, Time]]) -> Time:
    """Up to when a table is known that several instances give rows to.

    What an instance gives from some instant on counts when it has come; what waits has not.

    Args:
        instances: Of each, which instants are wanted, and up to when its answer is known.
    """
    furthest = max((known for _, known in instances), default=Time(0))
    return Time(min([furthest, *(_given_up_to(cut, known) for cut, known in instances)]))


def _given_up_to(cut: Cut | None, known: Time) -> Time:
    """Up to when all has come that an instance is to give."""
    if cut is None:
        return known
    return min((_span_up_to(span, known) for span in cut.spans), default=END_OF_TIME)


def _span_up_to(span: Span, known: Time) -> Time:
    has_ended = known == END_OF_TIME
    if span.leaves is Leaves.KEPT or (span.leaves is Leaves.HELD and not has_ended):
        return span.since
    # What is withdrawn at an instant leaves when that instant has passed.
    is_over = has_ended or known > span.until
    return END_OF_TIME if is_over else max(span.since, known)
