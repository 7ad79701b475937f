"""Sinks: where the answers of queries go, as their statements say.

    memory              the session keeps the answer, as without INTO
    parquet, csv, json  a directory of files
    console             standard output
    callback            a function of the session
    any other name      a format of Spark's

In which form they get the rows is said in ``shapes.py``; what each of them guarantees, in
``catalog/guarantee.py``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.errors import RunError, closest, suggestion
from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.connectors import path_and_options
from tidemill.runtime.console import ConsoleSink
from tidemill.runtime.file_sink import WRITERS, FileSink
from tidemill.runtime.shapes import RESULTS, Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Schema
    from tidemill.runtime.callback import Callback

__all__ = ["KINDS", "Destination", "FormatSink", "Sink", "destination_of", "sinks_of"]

KINDS = (*WRITERS, "console", "callback", "memory")
"""The sinks that do not need Spark."""


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


Sink: TypeAlias = FileSink | ConsoleSink | CallbackSink | FormatSink


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
            kind, place = "callback", sink.name
        case FormatSink():
            kind, place = sink.format.lower(), _digest(sink)
        case _:
            assert_never(sink)
    return Destination(kind, place, sink.shape.delivered.value)


_SECRETS = ("password", "passphrase", "secret", "token", "credential", "jaas", "key", "user")
"""What is in the names of options that may change while the sink stays the same."""


def _digest(sink: FormatSink) -> str:
    said = {
        name.lower(): value
        for name, value in sink.options.items()
        if not any(word in name.lower() for word in _SECRETS)
    }
    return hashlib.sha256(repr((sink.path, sorted(said.items()))).encode()).hexdigest()[:16]


def sinks_of(queries: Iterable[QueryEntry], callbacks: Mapping[str, Callback]) -> dict[str, Sink]:
    """The sinks of the queries whose answers are not for memory, by the name of the query.

    Args:
        queries: The queries.
        callbacks: The functions of the session, by name.

    Raises:
        RunError: An argument is missing, wrong or not known, there is no such callback, or two
            queries write files to one place, or one inside the place of the other.
    """
    sinks: dict[str, Sink] = {}
    written: dict[Path, str] = {}
    for query in queries:
        if query.sink is None or query.sink.name.text.lower() == "memory":
            continue
        sink = _sink(query, query.sink, callbacks)
        sinks[query.name] = sink
        if not isinstance(sink, FileSink):
            continue
        place = Path(sink.directory).resolve()
        for other, whose in written.items():
            if place == other:
                where = "the same place"
            elif place.is_relative_to(other) or other.is_relative_to(place):
                where = "places of which one is inside the other"
            else:
                continue
            raise RunError(
                f'queries "{whose}" and "{query.name}" write to {where}',
                hint="give each its own path",
            )
        written[place] = query.name
    return sinks


def _sink(entry: QueryEntry, call: ConnectorCall, callbacks: Mapping[str, Callback]) -> Sink:
    """The sink that a statement names; a name we do not know is left to Spark."""
    query, schema, shape = entry.name, entry.plan.schema, shape_of(entry)
    call = replace(call, named=tuple(pair for pair in call.named if pair[0] != "form"))
    kind = call.name.text.lower()
    if kind == "console":
        return ConsoleSink(query, schema, _rows(query, call), shape)
    if kind == "callback":
        name = _only(query, call, "name")
        if name not in callbacks:
            raise RunError(
                f'there is no callback "{name}", which query "{query}" is to call',
                hint=closest(name, callbacks)
                or f"register it with session.callback({name!r}, function)",
            )
        return CallbackSink(query, schema, name, callbacks[name], shape, entry.time)
    if kind in WRITERS:
        # Workers, and a driver that changes its directory, must mean the same place.
        replaces, call = _replaces(query, call)
        path = str(Path(_only(query, call, "path")).absolute())
        return FileSink(query, kind, path, schema, shape, replaces)
    path, options = path_and_options(f'the sink of "{query}"', call)
    return FormatSink(query, schema, call.name.text, path, options, shape)


def _only(query: str, call: ConnectorCall, argument: str) -> str:
    """The text that is the only argument of a sink."""
    kind = call.name.text.lower()
    hint = f"write {kind}({argument} => '…')"
    value = call.positional[0] if call.positional else dict(call.named).get(argument)
    if not isinstance(value, str):
        raise RunError(f'the sink of "{query}" needs a {argument}', hint=hint)
    if len(call.positional) + len(call.named) > 1:
        raise RunError(f'the sink of "{query}" takes only a {argument} and a form', hint=hint)
    return value


def _replaces(query: str, call: ConnectorCall) -> tuple[bool, ConnectorCall]:
    """Whether a query that begins empties its directory, and what else is said."""
    value = dict(call.named).get("replace", False)
    if not isinstance(value, bool):
        raise RunError(
            f'replace of the sink of "{query}" must be true or false', hint="write replace => true"
        )
    return value, replace(call, named=tuple(pair for pair in call.named if pair[0] != "replace"))


def _rows(query: str, call: ConnectorCall) -> int:
    """How many rows of a batch a console shows."""
    hint = "write console(), or console(rows => 20)"
    if call.positional:
        raise RunError(f'the sink of "{query}" takes arguments by their names', hint=hint)
    given = dict(call.named)
    rows = given.pop("rows", 20)
    if given:
        raise RunError(
            f'the sink of "{query}" takes no argument "{next(iter(given))}"',
            hint=suggestion(next(iter(given)), ("rows",), what="arguments"),
        )
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise RunError(f'rows of the sink of "{query}" must be a positive number', hint=hint)
    return rows
