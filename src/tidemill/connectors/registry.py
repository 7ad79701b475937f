"""The registry: connectors by name, ours and those of other packages.

A package brings connectors by the entry-point group ``tidemill.connectors``:

    [project.entry-points."tidemill.connectors"]
    kafka = "tidemill_kafka:KAFKA"

The object is a ``Connector`` of that name. It is loaded when it is used first. A connector that
cannot be loaded, or has a name that is taken, is an error that names the package; other connectors
work all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from tidemill.connectors import CONNECTORS
from tidemill.connectors.connector import Connector, Engine, Guarantee, Use
from tidemill.connectors.forms import FORM
from tidemill.connectors.options import fault
from tidemill.connectors.table import TABLE
from tidemill.errors import BindError
from tidemill.masking import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint

    from tidemill.connectors.options import Option
    from tidemill.errors import Span
    from tidemill.lang.statements import Name

__all__ = ["GROUP", "Listed", "connector_names", "faults", "find", "installed", "listed", "near"]

GROUP = "tidemill.connectors"

_OURS = {connector.name: connector for connector in CONNECTORS}

_SHORT = 4
"""Names of so many letters are mistyped by one letter, longer ones by two."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A connector as SHOW CONNECTORS lists it.

    Attributes:
        name: Its name.
        package: The package it is from.
        connector: The connector, or the error that it cannot be used for.
    """

    name: str
    package: str
    connector: Connector | BindError


@cache
def installed() -> dict[str, tuple[EntryPoint, ...]]:
    """What other packages bring, by name in lower case; nothing is loaded."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=GROUP), key=_package):
        name = entry.name.lower()
        found[name] = (*found.get(name, ()), entry)
    return found


def connector_names() -> tuple[str, ...]:
    """The names of all connectors, ours first."""
    return tuple(dict.fromkeys((*_OURS, *sorted(installed()))))


def find(name: Name) -> Connector | None:
    """The connector of a name; ``None`` if there is none.

    Raises:
        BindError: A package has a connector of this name that cannot be used.
    """
    return _find(name.text.lower(), name.span)


def listed() -> Iterator[Listed]:
    """All connectors, ours first."""
    for name in connector_names():
        package = ", ".join(map(_package, installed().get(name, ()))) or "tidemill"
        try:
            found: Connector | BindError | None = _find(name, None)
        except BindError as error:
            found = error
        assert found is not None, "it was listed"
        yield Listed(name, package, found)


def near(name: str) -> str | None:
    """The connector whose name this one probably is, mistyped.

    >>> near("parqet"), near("JSNO"), near("orc"), near("kafka")
    ('parquet', 'json', None, None)
    """
    found = [
        (distance, known)
        for known in connector_names()
        if (distance := _distance(name.lower(), known)) <= (1 if len(known) <= _SHORT else 2)
    ]
    return min(found)[1] if found else None


def faults(connector: Connector) -> Iterator[str]:
    """What is wrong with a connector of another package, as far as it can be told without use."""
    if connector.source is None and connector.sink is None:
        yield "it is neither a source nor a sink"
    if not connector.engines:
        yield "no engine has it"
    if connector.sink is not None and connector.sink.guarantee is Guarantee.SESSION:
        yield "only the session keeps answers in this session; nothing would be written"
    for use in (Use.STREAM, Use.SINK):
        options = connector.options(use) or ()
        names = [option.name for option in options]
        if len(set(names)) < len(names):
            yield "two of its options have one name"
        for option in options:
            yield from _faults_of(option)
            if use is Use.SINK and option.name == FORM.name and option.type != FORM.type:
                yield 'option "form" of a sink must be FORM of tidemill.connectors.forms'
    source, sink = connector.source, connector.sink
    if source is not None:
        if Engine.LOCAL in connector.engines and source.read is None:
            yield "the local engine has it, but it does not say how to read it"
        if Engine.SPARK in connector.engines and source.format is None:
            yield "Spark has it, but it does not say which format reads it"
        if source.relations and source.read is None:
            yield "relations can be read from it, but it does not say how to read it"
    if sink is not None and sink.open is None:
        if Engine.LOCAL in connector.engines:
            yield "the local engine has it, but it does not say how to write it"
        if Engine.SPARK in connector.engines and sink.format is None:
            yield "Spark has it, but it does not say how to write it"


def _faults_of(option: Option) -> Iterator[str]:
    if option.secret != is_secret(option.name):
        yield f'option "{option.name}" must be secret if and only if its name says so'
    if option.secret and option.positional:
        yield f'option "{option.name}" is secret, so its name must stand before its value'
    if option.default is None:
        return
    if option.required:
        yield f'option "{option.name}" must be given, so it has no default'
    wrong = fault(option.type, option.default)
    if wrong is not None:
        yield f'the default of option "{option.name}" {wrong}'


def _find(name: str, span: Span | None) -> Connector | None:
    entries = installed().get(name, ())
    packages = " and ".join(f'"{_package(entry)}"' for entry in entries)
    if not entries:
        return TABLE if name == TABLE.name else _OURS.get(name)
    if name in _OURS:
        raise BindError(
            f'package {packages} has a connector "{name}", which is a name of Tidemill\'s',
            span=span,
            hint="remove the package, or ask its authors for another name",
        )
    if len(entries) > 1:
        raise BindError(
            f'packages {packages} all have a connector "{name}"',
            span=span,
            hint="remove all of them but one",
        )
    try:
        return _load(entries[0])
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BindError(
            f'connector "{name}" of package {packages} cannot be used: {reason}',
            span=span,
            hint="install the package again, in a version that fits, or remove it",
        ) from error


def _load(entry: EntryPoint) -> Connector:
    found = entry.load()
    if not isinstance(found, Connector):
        raise TypeError(f'"{entry.value}" is no Connector')
    if found.name != entry.name.lower():
        raise ValueError(f'"{entry.value}" is called "{found.name}"')
    wrong = next(faults(found), None)
    if wrong is not None:
        raise ValueError(wrong)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name


def _distance(one: str, other: str) -> int:
    """How many letters are changed, added, left out, or exchanged with their neighbours."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
            if i > 1 and j > 1 and one[i - 2 : i] == b + other[j - 2]:
                row[j] = min(row[j], earlier[j - 2] + 1)
    return row[-1]
