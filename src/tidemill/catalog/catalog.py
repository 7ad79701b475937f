"""The catalog: an immutable map from names to entries.

A change gives a new catalog and leaves the old one as it was, so a statement that fails half-way
has changed nothing. Names are found without regard to case and kept as they were written. There is
one space of names for everything that has rows (streams, relations, queries) and one for functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.catalog.entries import (
    Entry,
    FunctionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    connector_of,
    function_use,
    is_of,
    kind_of,
    object_use,
    uses_of,
)
from tidemill.errors import BindError, suggestion
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.errors import Span
    from tidemill.lang.statements import Name

__all__ = ["Catalog"]


_PLURALS = {
    ObjectKind.STREAM: "streams",
    ObjectKind.RELATION: "relations",
    ObjectKind.QUERY: "queries",
    ObjectKind.TABLE: "tables",
    ObjectKind.FUNCTION: "functions of your own",
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that is registered."""

    objects: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}))
    functions: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}))

    def entries(self, kind: ObjectKind) -> Iterator[Entry]:
        """The entries of one kind, in the order of their names; tables are queries as well."""
        found = (e for e in (*self.objects.values(), *self.functions.values()) if is_of(e, kind))
        yield from sorted(found, key=lambda entry: entry.name.lower())

    def find(self, name: str) -> Entry | None:
        """The stream, relation or query with this name."""
        return self.objects.get(name.lower())

    def find_function(self, name: str) -> FunctionEntry | None:
        """The function people have defined under this name."""
        entry = self.functions.get(name.lower())
        assert entry is None or isinstance(entry, FunctionEntry), "only functions are kept here"
        return entry

    def is_free(self, name: str, kind: ObjectKind) -> bool:
        """Whether nothing has this name among the things of this kind and those it is told from."""
        return (
            self.find_function(name) if kind is ObjectKind.FUNCTION else self.find(name)
        ) is None

    def get(self, name: Name) -> Entry:
        """The stream, relation, query or function with this name.

        Raises:
            BindError: There is none.
        """
        entry = self.find(name.text) or self.find_function(name.text)
        if entry is None:
            raise BindError(
                f'there is no stream, relation, query or function "{name.text}"',
                span=name.span,
                hint=suggestion(name.text, self._names(), what="names"),
            )
        return entry

    def added(self, entry: Entry, *, span: Span | None = None) -> Catalog:
        """The catalog with one more entry.

        Raises:
            BindError: The name is taken.
        """
        old = self.functions.get(entry.name.lower())
        if not isinstance(entry, FunctionEntry):
            old = self.find(entry.name)
        if old is not None:
            kind = kind_of(old).value
            raise BindError(
                f'there is a {kind.lower()} "{old.name}" already',
                span=span,
                hint=f"choose another name, or DROP {kind} {old.name} first",
            )
        return self._changed(entry.name, entry, is_function=isinstance(entry, FunctionEntry))

    def replaced(self, entry: QueryEntry | StreamEntry | RelationEntry) -> Catalog:
        """The catalog with another entry for something that is there."""
        assert type(self.find(entry.name)) is type(entry), "it is there"
        return self._changed(entry.name, entry, is_function=False)

    def replaced_by(self, query: QueryEntry, others: Iterable[QueryEntry]) -> Catalog:
        """The catalog with other queries in the place of one; one of them may have its name."""
        entries = {key: entry for key, entry in self.objects.items() if key != query.name.lower()}
        entries |= {other.name.lower(): other for other in others}
        return replace(self, objects=MappingProxyType(entries))

    def dropped(self, name: Name, kind: ObjectKind) -> Catalog:
        """The catalog without an entry.

        Raises:
            BindError: There is none of this kind, or others depend on it.
        """
        is_function = kind is ObjectKind.FUNCTION
        entry = self.find_function(name.text) if is_function else self.find(name.text)
        if entry is None or kind_of(entry) is not kind:
            raise self._not_there(name, kind, entry)
        dependants = self.dependants(entry)
        if dependants:
            raise BindError(
                f'{kind.value.lower()} "{entry.name}" is used by {", ".join(dependants)}',
                span=name.span,
                hint="drop what depends on it first",
            )
        return self._changed(entry.name, None, is_function=is_function)

    def dependants(self, entry: Entry) -> list[str]:
        """What refers to an entry, with its kind, in the order of that."""
        is_function = isinstance(entry, FunctionEntry)
        use = function_use(entry.name) if is_function else object_use(entry.name)
        return sorted(
            f'{kind_of(other).value.lower()} "{other.name}"'
            for other in (*self.objects.values(), *self.functions.values())
            if use in uses_of(other)
        )

    def _not_there(self, name: Name, kind: ObjectKind, entry: Entry | None) -> BindError:
        word = kind.value.lower()
        if entry is not None:
            other = kind_of(entry).value
            return BindError(
                f'"{entry.name}" is a {other.lower()}, not a {word}',
                span=name.span,
                hint=f"DROP {other} {entry.name}",
            )
        known = [entry.name for entry in self.entries(kind)]
        return BindError(
            f'there is no {word} "{name.text}"',
            span=name.span,
            hint=suggestion(name.text, known, what=_PLURALS[kind]),
        )

    def _changed(self, name: str, entry: Entry | None, *, is_function: bool) -> Catalog:
        entries = dict(self.functions if is_function else self.objects)
        if entry is None:
            del entries[name.lower()]
        else:
            entries[name.lower()] = entry
        view = MappingProxyType(entries)
        return replace(self, functions=view) if is_function else replace(self, objects=view)

    def _names(self) -> Iterator[str]:
        yield from (entry.name for entry in self.objects.values())
        yield from (entry.name for entry in self.functions.values())

    def secrets(self) -> frozenset[str]:
        """What must not be shown of the options of sources and sinks."""
        calls = (connector_of(entry) for entry in self.objects.values())
        return frozenset(secret for call in calls if call is not None for secret in call.secrets())

    def unused_query_name(self) -> str:
        """A name for a query that was not given one."""
        taken = set(self.objects)
        number = 1 + sum(isinstance(entry, QueryEntry) for entry in self.objects.values())
        while f"query_{number}" in taken:
            number += 1
        return f"query_{number}"
