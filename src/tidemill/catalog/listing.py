"""SHOW and DESCRIBE: the catalog as rows people can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.keys import least_key
from tidemill.algebra.patterns import update_pattern
from tidemill.catalog.entries import (
    ChangingRelationEntry,
    DerivedStreamEntry,
    Entry,
    FunctionEntry,
    Kept,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    entry_schema,
)
from tidemill.catalog.functions import function_list
from tidemill.connectors.check import guarantee
from tidemill.connectors.connector import Connector, Engine, Use
from tidemill.connectors.options import default_text, type_text
from tidemill.connectors.registry import connector_names, find, listed
from tidemill.errors import BindError, closest
from tidemill.lang.statements import ObjectKind, shown_argument
from tidemill.masking import masked
from tidemill.model.time import duration_text

if TYPE_CHECKING:
    from tidemill.catalog.catalog import Catalog
    from tidemill.lang.statements import ConnectorCall, Name

__all__ = ["Listing", "describe_connector", "describe_entry", "show", "show_connectors"]

Listing: TypeAlias = dict[str, list[str]]
"""Columns by name; every cell is text."""


def show(catalog: Catalog, kind: ObjectKind) -> Listing:
    """One row for each entry of a kind, by name; functions of the language are listed too."""
    entries = list(catalog.entries(kind))
    rows = [(entry.name, *_details(entry)) for entry in entries]
    match kind:
        case ObjectKind.STREAM:
            titles = ["name", "source", "time", "late", "idle_after", "malformed", "keep"]
        case ObjectKind.RELATION:
            titles = ["name", "source", "valid", "retroactive"]
        case ObjectKind.QUERY:
            titles = ["name", "sink", "guarantee", "update_pattern", "text"]
        case ObjectKind.TABLE:
            titles = ["name", "text", "keep", "key"]
            rows = [(entry.name, *_table(entry)) for entry in entries]
        case ObjectKind.FUNCTION:
            titles = ["name", "signature", "description"]
            rows += [(f.name, f.signature, f.description) for f in function_list()]
        case _:
            assert_never(kind)
    return {title: [row[i] for row in rows] for i, title in enumerate(titles)}


def describe_entry(entry: Entry) -> Listing:
    """One row for each column of what an entry has to offer."""
    roles = _roles(entry)
    fields = list(entry_schema(entry))
    listing = {
        "column": [field.name for field in fields],
        "type": [str(field.type) for field in fields],
        "nullable": ["yes" if field.nullable else "no" for field in fields],
        "role": [roles.get(field.name, "") for field in fields],
    }
    if isinstance(entry, FunctionEntry):
        listing["role"] = ["parameter" for _ in fields]
        for title, cell in zip(listing, ("", str(entry.result.type), "yes", "result"), strict=True):
            listing[title].append(cell)
    return listing


def show_connectors() -> Listing:
    """One row for each connector, ours first; of one that cannot be used, what is wrong with it."""
    titles = (
        *("name", "source", "positions", "sink", "guarantee", "engines", "package"),
        "documentation",
    )
    rows = [
        (one.name, *("",) * 5, one.package, one.connector.message)
        if isinstance(one.connector, BindError)
        else (one.name, *_abilities(one.connector), one.package, one.connector.documentation)
        for one in listed()
    ]
    return {title: [row[i] for row in rows] for i, title in enumerate(titles)}


def describe_connector(name: Name) -> Listing:
    """One row for each option of a connector.

    Raises:
        BindError: There is no such connector, or it cannot be used.
    """
    connector = find(name)
    if connector is None:
        raise BindError(
            f'there is no connector "{name.text}"',
            span=name.span,
            hint=closest(name.text, connector_names())
            or f"the connectors are {', '.join(connector_names())}; other names are formats of "
            "Spark's, whose options Spark knows",
        )
    used = {Use.STREAM: "source", Use.SINK: "sink"}
    rows = [(option, used[use]) for use in used for option in connector.options(use) or ()]
    return {
        "name": [option.name for option, _ in rows],
        "used": [where for _, where in rows],
        "type": [type_text(option.type) for option, _ in rows],
        "default": [default_text(option) for option, _ in rows],
        "required": ["yes" if option.required else "no" for option, _ in rows],
        "documentation": [option.documentation for option, _ in rows],
    }


def _abilities(connector: Connector) -> tuple[str, ...]:
    source, sink = connector.source, connector.sink
    return (
        "" if source is None else "streams, relations" if source.relations else "streams",
        "" if source is None else source.positions.value,
        "" if sink is None else "yes",
        "" if sink is None else sink.guarantee.value,
        ", ".join(engine.value for engine in Engine if engine in connector.engines),
    )


def _table(entry: Entry) -> tuple[str, str, str]:
    """What is asked, for how long rows are kept that have gone, and by what they are known."""
    assert isinstance(entry, QueryEntry), "a table is a query"
    return masked(entry.text), _kept(entry.keep), ", ".join(_key(entry))


def _key(entry: QueryEntry) -> list[str]:
    key = least_key(entry.plan) or ()
    return [name for name in entry.plan.schema.names if name in key]


def _roles(entry: Entry) -> dict[str, str]:
    match entry:
        case QueryEntry() if entry.is_table:
            return dict.fromkeys(_key(entry), "key")
        case StreamEntry(time_column=str(column)):
            return {column: "time"}
        case RelationEntry() | ChangingRelationEntry():
            return dict.fromkeys(entry.key, "key")
        case _:
            return {}


def _details(entry: Entry) -> tuple[str, ...]:
    match entry:
        case StreamEntry():
            late = entry.late.value.lower()
            idle = "" if entry.idle_after is None else duration_text(entry.idle_after)
            malformed = entry.malformed.value.lower()
            within = f" within {duration_text(entry.within)}" if entry.within else ""
            time = f"{entry.time_column or 'arrival'}{within}"
            return _connector(entry.source), time, late, idle, malformed, _kept(entry.keep)
        case DerivedStreamEntry():
            return masked(entry.text), "", "", "", "", ""
        case RelationEntry(validity=None):
            return _connector(entry.source), "always", ""
        case RelationEntry():
            assert entry.validity is not None, "the other case has been taken"
            end = f" to {entry.validity.end}" if entry.validity.end else ""
            retroactive = "yes" if entry.retroactive else "no"
            return _connector(entry.source), f"from {entry.validity.start}{end}", retroactive
        case ChangingRelationEntry():
            but = "" if entry.deleted is None else f", unless {entry.deleted}"
            retroactive = "yes" if entry.retroactive else "no"
            last = f"last of each {', '.join(entry.key)}{but}"
            return f"stream {entry.stream}", last, retroactive
        case QueryEntry():
            sink = "memory" if entry.sink is None else _connector(entry.sink)
            sink = f"table keep {_kept(entry.keep) or 'nothing'}" if entry.is_table else sink
            pattern = update_pattern(entry.plan).name
            return sink, guarantee(entry.sink).value, pattern, masked(entry.text)
        case FunctionEntry():
            parameters = ", ".join(f"{p.name} {p.type}" for p in entry.parameters)
            return f"{entry.name}({parameters}) -> {entry.result.type}", masked(entry.text)
        case _:
            assert_never(entry)


def _kept(keep: Kept | None) -> str:
    if keep is None:
        return ""
    if keep.length == 0:
        return ""
    length = "all" if keep.length is None else duration_text(keep.length)
    return f"{length}{' by reference' * keep.by_reference}"


def _connector(call: ConnectorCall) -> str:
    """The text of a connector, without what is secret."""
    arguments = [repr(shown_argument("", value)) for value in call.positional]
    arguments += [f"{name} => {shown_argument(name, value)!r}" for name, value in call.named]
    return f"{call.name.text}({', '.join(arguments)})"
