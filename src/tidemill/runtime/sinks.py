"""Sinks: where the answers of queries go, as their statements say.

What a statement says was checked when it was created (``connectors/check.py``); here it becomes a
sink that takes rows. In which form it gets them is said in ``shapes.py``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.keys import least_key
from tidemill.catalog.records import user_name
from tidemill.connectors.check import arguments_of, guarantee
from tidemill.connectors.connector import Guarantee, Use
from tidemill.connectors.spark_format import SPARK_FORMAT
from tidemill.connectors.table import TABLE
from tidemill.errors import RunError, closest
from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.connectors import failure, passed_options, shown_cause
from tidemill.runtime.console import ConsoleSink
from tidemill.runtime.file_sink import WRITERS, FileSink
from tidemill.runtime.shapes import RESULTS, Delivered, Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tidemill.catalog.entries import Kept, QueryEntry
    from tidemill.connectors.check import Arguments
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Schema
    from tidemill.runtime.callback import Callback

__all__ = [
    "Destination",
    "FormatSink",
    "Sink",
    "TableSink",
    "destination_of",
    "is_first",
    "may_change",
    "owned_since",
    "refuse_shared_places",
    "sinks_of",
]


@dataclass(frozen=True, slots=True)
class FormatSink:
    """A format of Spark's, to which the new rows of each batch are appended.

    Attributes:
        query: Whose answer it holds.
        schema: The columns of the answer; those of time are written as well.
        format: What Spark calls it.
        path: Where, if the format has a path.
        options: What else Spark is told; not in the ``repr``, as some are secret.
        shape: In which form the rows are.
    """

    query: str
    schema: Schema
    format: str
    path: str
    options: Mapping[str, str] = field(repr=False)
    shape: Shape = RESULTS


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table, which the engine keeps.

    Attributes:
        query: Its name.
        schema: Its columns.
        keep: For how long rows are kept that have gone.
        key: The columns that tell its rows apart; none if none are known to do so.
        shape: In which form it gets them.
    """

    query: str
    schema: Schema
    keep: Kept
    key: tuple[str, ...] = ()
    shape: Shape = Shape(Delivered.CHANGES)  # noqa: RUF009 — it is frozen


Sink: TypeAlias = FileSink | ConsoleSink | CallbackSink | FormatSink | TableSink


@dataclass(frozen=True, slots=True)
class Destination:
    """What makes a sink this sink, without any secrets.

    Attributes:
        kind: What kind of sink.
        place: Where: a directory, the name of a function; of a format of Spark's, a digest.
        form: In which form it gets rows.
    """

    kind: str = "memory"
    place: str = ""
    form: str = ""

    def __str__(self) -> str:
        place = f'("{self.place}")' if self.place else ""
        return f"{self.kind}{place}{f' as {self.form}' if self.form else ''}"


def destination_of(sink: Sink | None) -> Destination:
    """Where an answer goes; without a sink it stays in memory."""
    match sink:
        case None:
            return Destination()
        case FileSink():
            kind, place = sink.kind, sink.directory
        case ConsoleSink():
            kind, place = "console", ""
        case CallbackSink():
            kind, place = sink.kind, sink.name
        case TableSink():
            kind, place = "table", ""
        case FormatSink():
            kind, place = sink.format.lower(), _digest(sink.path, sink.options)
        case _:
            assert_never(sink)
    return Destination(kind, place, sink.shape.delivered.value)


_SECRETS = ("password", "passphrase", "secret", "token", "credential", "jaas", "key", "user")
"""What is in the names of options that may change while the sink stays the same."""


def may_change(option: str) -> bool:
    """Whether a sink stays the same when an option of it has another value."""
    return option == "replace" or _logs_in(option)


def _logs_in(option: str) -> bool:
    return any(word in option.lower() for word in _SECRETS)


def _digest(path: str, options: Mapping[str, str]) -> str:
    said = {name.lower(): value for name, value in options.items() if not _logs_in(name)}
    return hashlib.sha256(repr((path, sorted(said.items()))).encode()).hexdigest()[:16]


def sinks_of(queries: Iterable[QueryEntry], callbacks: Mapping[str, Callback]) -> dict[str, Sink]:
    """The sinks of the queries whose answers are not for memory, by the name of the query.

    All instances of a query have one sink, which is that of the query that people know.

    Args:
        queries: The queries, or their instances.
        callbacks: The functions of the session, by name.

    Raises:
        RunError: There is no such callback, or two queries write files to one place, or one inside
            the place of the other.
    """
    asked = list(queries)
    refuse_shared_places(asked)
    return {
        query.name: _sink(query, query.sink, callbacks)
        for query in asked
        if query.sink is not None and guarantee(query.sink) is not Guarantee.SESSION
    }


def is_first(instance: str) -> bool:
    """Whether an instance is the first of its query, which takes the directory of its sink."""
    return user_name(instance) == instance


def owned_since(instance: str, sink: FileSink, pipeline: str, epoch: int) -> int:
    """The epoch in which the query began that the directory of a sink belongs to.

    Later instances of a query go on in the directory that the first one took. While there are any,
    no other query of this pipeline has had the name.

    Args:
        instance: The instance.
        sink: Its sink.
        pipeline: The identity of the checkpoint.
        epoch: When the instance began.
    """
    found = None if is_first(instance) else sink.found_owner()
    is_own = found is not None and (found.pipeline, found.query) == (pipeline, sink.query.lower())
    return found.epoch if found is not None and is_own else epoch


def refuse_shared_places(queries: Iterable[QueryEntry]) -> None:
    """Refuse queries that would write files over each other.

    Raises:
        RunError: Two of them write to one place, or one inside the place of the other.
    """
    written: dict[Path, str] = {}
    for query in queries:
        name = user_name(query.name)
        said = None if query.sink is None else arguments_of(query.sink, Use.SINK)
        if said is None or said.connector.name not in WRITERS:
            continue
        place = Path(said.text("path")).resolve()
        for other, whose in written.items():
            if whose == name:
                continue
            if place == other:
                where = "the same place"
            elif place.is_relative_to(other) or other.is_relative_to(place):
                where = "places of which one is inside the other"
            else:
                continue
            raise RunError(
                f'queries "{whose}" and "{name}" write to {where}',
                hint="give each its own path",
            )
        written[place] = name


def _sink(entry: QueryEntry, call: ConnectorCall, callbacks: Mapping[str, Callback]) -> Sink:
    """The sink that a statement names, which was checked."""
    arguments = arguments_of(call, Use.SINK)
    make = _SINKS.get(arguments.connector.name, _installed)
    return make(_Wanted(entry, shape_of(entry), arguments, callbacks))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is known of a sink: its query, the columns and form of the answer, and what is said."""

    entry: QueryEntry
    shape: Shape
    said: Arguments
    callbacks: Mapping[str, Callback]

    @property
    def query(self) -> str:
        """The name of the query."""
        return user_name(self.entry.name)

    @property
    def schema(self) -> Schema:
        """The columns of its answer."""
        return self.entry.plan.schema

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown of what is said."""
        return frozenset() if self.entry.sink is None else self.entry.sink.secrets()


def _console(wanted: _Wanted) -> ConsoleSink:
    return ConsoleSink(wanted.query, wanted.schema, wanted.said.whole("rows"), wanted.shape)


def _callback(wanted: _Wanted) -> CallbackSink:
    name, callbacks = wanted.said.text("name"), wanted.callbacks
    if name not in callbacks:
        raise RunError(
            f'there is no callback "{name}", which query "{wanted.query}" is to call',
            hint=closest(name, callbacks)
            or f"register it with session.callback({name!r}, function)",
        )
    time = wanted.entry.time
    return CallbackSink(wanted.query, wanted.schema, name, callbacks[name], wanted.shape, time)


def _files(wanted: _Wanted) -> FileSink:
    said = wanted.said
    # Workers, and a driver that changes its directory, must mean the same place.
    path = str(Path(said.text("path")).absolute())
    kind, replaces = said.connector.name, said.flag("replace")
    return FileSink(wanted.query, kind, path, wanted.schema, wanted.shape, replaces)


def _table(wanted: _Wanted) -> TableSink:
    keep = wanted.entry.keep
    assert keep is not None, "it is a table"
    key = tuple(sorted(least_key(wanted.entry.plan) or ()))
    return TableSink(wanted.query, wanted.schema, keep, key, wanted.shape)


def _format(wanted: _Wanted) -> FormatSink:
    said = wanted.said
    format_, path = said.text("format"), said.text("path")
    return FormatSink(wanted.query, wanted.schema, format_, path, said.passed, wanted.shape)


def _installed(wanted: _Wanted) -> CallbackSink | FormatSink:
    """The sink of a connector of another package."""
    connector = wanted.said.connector
    assert connector.sink is not None, "it was checked"
    options = passed_options(wanted.said)
    options.pop("form", None)
    if connector.sink.open is None:
        format_ = connector.sink.format
        assert format_ is not None, "it was checked when it was loaded"
        return FormatSink(wanted.query, wanted.schema, format_, "", options, wanted.shape)
    kind, place, secrets = connector.name, _digest("", options), wanted.secrets
    try:
        take = connector.sink.open(wanted.said.values())
    except Exception as error:  # noqa: BLE001 — code that is not ours
        what = f'connector "{kind}", the sink of "{wanted.query}", cannot be opened'
        told = failure(what, error, secrets, hint="fix what it says, and run again")
        raise told from shown_cause(error, secrets)
    return CallbackSink(
        wanted.query, wanted.schema, place, take, wanted.shape, kind=kind, secrets=secrets
    )


_SINKS: Mapping[str, Callable[[_Wanted], Sink]] = {
    **dict.fromkeys(WRITERS, _files),
    "console": _console,
    "callback": _callback,
    TABLE.name: _table,
    SPARK_FORMAT.name: _format,
}
"""What the sink of each connector is; that of ``memory`` is none, as the session keeps answers."""
