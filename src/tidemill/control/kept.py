"""The catalog of a checkpoint: what its sessions have created, and what has become of it.

    statements.jsonl    what was created and dropped (``runtime/statement_log.py``)
    queries.json        what has become of queries that were changed (``runtime/records_file.py``)
    lock                who has it (``runtime/lock.py``)

A statement is written before it takes effect, so that a session that is killed in between finds it
when it is opened again. A session has the lock while it reads or writes, and from the start of a
job to its end; what another session has written meanwhile is never overwritten.

Law: the catalog that is loaded is the one that the sessions before have made.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tidemill.binder.definitions import Definition, define
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.durable import Done, Undone, Written, key_of, standing, unfinished_drops
from tidemill.catalog.entries import QueryEntry, StreamEntry, kind_of
from tidemill.catalog.records import owner_name, user_name
from tidemill.connectors.check import refuse_literal_secrets
from tidemill.control.amended import amends
from tidemill.control.missing import refuse_missing
from tidemill.control.stored import records_of, with_records
from tidemill.errors import BindError, RunError, TidemillError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import (
    ConnectorCall,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    Drop,
    ObjectKind,
    Select,
)
from tidemill.lang.unparse import unparse
from tidemill.lang.words import quote_name
from tidemill.runtime.damage import telling_where
from tidemill.runtime.lock import SharedLock
from tidemill.runtime.opening import forget_queries, is_checkpoint, make_place
from tidemill.runtime.record import RECORD, read_record
from tidemill.runtime.records_file import RecordKeeper
from tidemill.runtime.statement_log import StatementLog
from tidemill.runtime.table_files import forget_recordings, forget_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import polars as pl

    from tidemill.catalog.durable import Key, LogEntry
    from tidemill.catalog.entries import Entry
    from tidemill.connectors.connector import Engine
    from tidemill.errors import Span
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.lock import Lock
    from tidemill.runtime.records_file import StoredRecord

__all__ = ["KeptCatalog"]

_LOOKS = 10
"""How often it is looked again if a session writes meanwhile."""


class KeptCatalog:
    """What a checkpoint keeps of the catalog of its sessions.

    Args:
        directory: The checkpoint, which need not be there yet.
        engine: Where the queries run.

    Attributes:
        directory: The checkpoint.
    """

    def __init__(self, directory: Path, engine: Engine) -> None:
        self.directory = directory.resolve()
        self._engine = engine
        self._lock = SharedLock()
        self._log = StatementLog(self.directory)
        self._records = RecordKeeper(self.directory)
        self._seen: Mapping[str, StoredRecord] = {}
        self._texts: dict[Key, str] = {}
        self._untaken: list[tuple[str, str]] = []  # texts and names of SELECTs of other sessions
        self._unparsed: tuple[Definition, str] | None = None  # the statement that came last

    # Ownership

    def take(self, directory: Path) -> Lock:
        """A share of the lock, for a job of this session."""
        return self._lock.take(directory)

    def own(self) -> Lock:
        """Have the checkpoint, which is made if it is not there, until the lock is released.

        Raises:
            RunError: Another session has it, or has changed it since this one was connected.
        """
        make_place(self.directory)
        lock = self._lock.take(self.directory)
        try:
            self._require_unchanged()
        except BaseException:
            lock.release()
            raise
        return lock

    def _require_unchanged(self) -> None:
        """Refuse to go on from what is not there any more."""
        with telling_where(self.directory):
            if self._log.is_unchanged() and self._records.read() == self._seen:
                return
        raise RunError(
            f'another session has changed the checkpoint "{self.directory}" since this one was'
            " connected",
            hint="connect again: the new session knows what has changed",
        )

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Have the checkpoint for a while, if it is there."""
        if not is_checkpoint(self.directory):
            yield
            return
        lock = self.own()
        try:
            yield
        finally:
            lock.release()

    # Reading

    def load(self) -> Catalog:
        """The catalog that the sessions before have left; empty if there were none.

        Raises:
            RunError: Another session has the checkpoint, it is damaged, or a statement of it
                cannot be taken up.
        """
        if not is_checkpoint(self.directory):
            return Catalog()
        lock = self._lock.take(self.directory)
        try:
            with telling_where(self.directory):
                return self._loaded()
        finally:
            lock.release()

    def _loaded(self) -> Catalog:
        entries = self._log.read()
        if entries and (self.directory / RECORD).is_file():
            read_record(self.directory, self._engine.value)  # it fits this version and engine
        for drop in unfinished_drops(entries):
            self._forget(drop.name)
            forget_table(self.directory, drop.name)
            forget_recordings(self.directory, drop.name)
            self._log.append(Done(drop.number))
        catalog = Catalog()
        for written in standing(entries):
            catalog = self._with(catalog, written)
            self._texts[written.key] = written.text
        self._seen = self._records.read()
        return with_records(catalog, self._seen, self._engine)

    def look(self) -> Catalog:
        """The catalog that the sessions before have left, without a lock; nothing is written.

        Raises:
            RunError: It is damaged, or a statement of it cannot be taken up.
        """
        with telling_where(self.directory):
            for _ in range(_LOOKS):
                entries, records = self._log.read(), self._records.read()
                if self._log.is_unchanged():
                    break  # both files are of one moment
            catalog = Catalog()
            for written in standing(entries):
                catalog = self._with(catalog, written)
            return with_records(catalog, records, self._engine)

    def _with(self, catalog: Catalog, written: Written) -> Catalog:
        """The catalog with what a statement has created."""
        try:
            statement = parse_one(written.text)
            assert isinstance(statement, Definition), "these are written down"
            # What is in the environment is looked up when it is used.
            entry = define(
                statement, catalog, allow_unbounded=True, engine=self._engine, looks_up=False
            )
            if isinstance(statement, Select):
                assert isinstance(entry, QueryEntry), "a SELECT is a query"
                entry = replace(entry, name=written.name)
                self._untaken.append((written.text, written.name))
            return catalog.added(entry)
        except TidemillError as error:
            raise RunError(
                f'statement {written.number} of the checkpoint "{self.directory}" cannot be taken'
                f" up: {error.message}: {written.text}",
                hint=f"{error.hint}, or go on with the version and the packages that wrote it"
                if error.hint
                else "go on with the version and the packages that wrote it",
            ) from None

    def read_records(self) -> Mapping[str, StoredRecord]:
        """What has become of queries that were changed."""
        return self._seen

    def find(self, statement: Definition, catalog: Catalog) -> Entry | None:
        """What a statement is to have created already; ``None`` if it is a new one.

        It is what an equal statement has created, or the same with a few things that may change.

        Raises:
            BindError: The name stands for something else in this checkpoint, or a secret would be
                written down.
        """
        _refuse_secrets(statement)
        text = self._text(statement)
        if isinstance(statement, Select):
            return self._take_select(text, catalog)
        kind, name = _kind(statement), statement.name
        stored = self._texts.get(key_of(kind, name.text))
        is_function = kind is ObjectKind.FUNCTION
        entry = catalog.find_function(name.text) if is_function else catalog.find(name.text)
        if stored is None or entry is None or kind_of(entry) is not kind:
            return None
        texts = [stored]
        if isinstance(entry, QueryEntry) and entry.record is not None:
            texts += [version.text for version in entry.record.versions]
        if text in texts:
            return entry
        new = define(statement, catalog, allow_unbounded=True, engine=self._engine)
        if _lets_go(entry, new):
            raise BindError(
                f'stream "{entry.name}" keeps its past in this checkpoint, and without KEEP what it'
                " has kept would be removed",
                span=name.span,
                hint="write KEEP behind it; to let go of what is kept, a shorter one, or DROP"
                f" STREAM {quote_name(entry.name)} first",
            )
        if not amends(entry, new):
            raise _another(entry, texts[-1], text, name.span)
        return new

    def _text(self, statement: Definition) -> str:
        """The canonical text of a statement, which is asked for twice."""
        if self._unparsed is None or self._unparsed[0] is not statement:
            self._unparsed = statement, unparse(statement)
        return self._unparsed[1]

    def _take_select(self, text: str, catalog: Catalog) -> Entry | None:
        """The first SELECT of an earlier session with this text that was not asked for again."""
        found = next((one for one in self._untaken if one[0] == text), None)
        if found is None:
            return None
        self._untaken.remove(found)
        return catalog.find(found[1])

    # Writing

    @contextmanager
    def creating(self, statement: Definition, entry: Entry) -> Iterator[None]:
        """Write down that something is created, before it is; undo that if it is refused."""
        kind = kind_of(entry)
        with self._writing(Written(self._log.next, kind, entry.name, self._text(statement))):
            yield

    @contextmanager
    def dropping(self, statement: Drop, entry: Entry) -> Iterator[None]:
        """Write down that something is dropped, before it is; undo that if it is refused."""
        text = unparse(replace(statement, if_exists=False))
        drop = Written(self._log.next, statement.kind, entry.name, text, is_drop=True)
        with self._writing(drop):
            yield

    @contextmanager
    def _writing(self, written: Written) -> Iterator[None]:
        lock = self.own()
        try:
            self._append(written)
            try:
                yield
            except BaseException:
                self._append(Undone(written.number))
                raise
            if written.is_drop:
                self._texts.pop(written.key, None)
                self._untaken = [one for one in self._untaken if one[1] != written.name]
            else:
                self._texts[written.key] = written.text
            if written.is_drop and written.is_of_query:
                forget_table(self.directory, written.name)
                forget_recordings(self.directory, written.name)
                self._append(Done(written.number))
        finally:
            lock.release()

    def _append(self, entry: LogEntry) -> None:
        with telling_where(self.directory):
            self._log.append(entry)

    def write_records(self, catalog: Catalog) -> None:
        """Write down what has become of the queries of a catalog, before it takes effect."""
        lock = self.own()
        try:
            with telling_where(self.directory):
                records = records_of(catalog)
                self._records.write(records)
                self._seen = records
        finally:
            lock.release()

    def forget(self, query: str) -> bool:
        """Give up the state of a query while nothing runs; whether there was any.

        Raises:
            RunError: Another session has the checkpoint, or it cannot be read or written.
        """
        if not is_checkpoint(self.directory):
            return False
        lock = self.own()
        try:
            with telling_where(self.directory):
                return self._forget(query)
        finally:
            lock.release()

    def _forget(self, query: str) -> bool:
        name, records = query.lower(), self._records.read()
        record = records.pop(name, None)
        if record is not None:
            self._records.write(records)
        self._seen = records
        # What is known by an instance's name is known of its query.
        is_known = forget_queries(
            self.directory, self._engine.value, lambda known: owner_name(known) == name
        )
        return is_known or record is not None

    def let_go(self, catalog: Catalog, runs: Catalog) -> None:
        """Give up instances that are over, as the records say: a kill may have come before that.

        Args:
            catalog: What people have registered.
            runs: The instances that are to run.

        Raises:
            RunError: The checkpoint cannot be read or written.
        """
        queries = (e for e in catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry))
        changed = {query.name.lower() for query in queries if query.record is not None}
        stay = {query.name.lower() for query in runs.entries(ObjectKind.QUERY)}
        with telling_where(self.directory):
            forget_queries(
                self.directory,
                self._engine.value,
                lambda known: owner_name(known) in changed and known not in stay,
            )

    # Asking

    def has_run(self, query: str) -> bool:
        """Whether a query has state in the checkpoint."""
        return query.lower() in self.known()

    def known(self) -> frozenset[str]:
        """The queries that have state in the checkpoint, by their names in lower case."""
        if not (self.directory / RECORD).is_file():
            return frozenset()
        return frozenset(map(user_name, read_record(self.directory, self._engine.value).queries))

    def require_given(
        self,
        catalog: Catalog,
        frames: Mapping[str, pl.DataFrame],
        callbacks: Mapping[str, Callback],
    ) -> None:
        """Refuse to start without what only this process can give.

        Raises:
            RunError: A callback, or a frame that is not kept, is missing.
        """
        refuse_missing(catalog, frames, callbacks, self.directory)


def _lets_go(old: Entry, new: Entry) -> bool:
    """Whether a stream that keeps its past would not keep it any more."""
    match old, new:
        case StreamEntry(keep=before), StreamEntry(keep=after):
            return before is not None and after is None
        case _:
            return False


def _another(entry: Entry, stored: str, text: str, span: Span | None) -> BindError:
    """The error that says that a name stands for something else."""
    kind, name = kind_of(entry), quote_name(entry.name)
    change = f", or ALTER QUERY {name} AS …" if isinstance(entry, QueryEntry) else ""
    return BindError(
        f'{kind.value.lower()} "{entry.name}" is another one in this checkpoint: that one is'
        f" {stored}, and this one {text}",
        span=span,
        hint=f"write DROP {kind.value} {name} first{change}, or choose another name",
    )


def _refuse_secrets(statement: Definition) -> None:
    """Refuse a secret that would be written down."""
    match statement:
        case CreateStream(source=call) | CreateRelation(source=call):
            refuse_literal_secrets(call)
        case CreateQuery(sink=ConnectorCall() as call):
            refuse_literal_secrets(call)
        case _:
            pass


def _kind(statement: Definition) -> ObjectKind:
    match statement:
        case CreateStream() | CreateDerivedStream():
            return ObjectKind.STREAM
        case CreateRelation() | CreateChangingRelation():
            return ObjectKind.RELATION
        case CreateFunction():
            return ObjectKind.FUNCTION
        case CreateQuery() | Select():
            return ObjectKind.QUERY
        case CreateTable():
            return ObjectKind.TABLE
        case _:
            assert_never(statement)
