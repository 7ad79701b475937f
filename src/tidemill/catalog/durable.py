"""The durable catalog: what a log of statements means.

    create 1  STREAM bid      CREATE STREAM bid (…)
    create 2  QUERY query_1   SELECT …
    drop   3  QUERY query_1   DROP QUERY query_1
    done   3
    create 4  QUERY q         CREATE QUERY q AS …
    undo   4

A statement is written before it takes effect. One that is then refused is undone; the drop of a
query is marked as done when its state has been given up, so that one that was cut off is carried
out later, and no other.

Law: the statements that hold after any sequence of statements are those of a catalog that has
carried them out, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidemill.lang.parse import parse_one
from tidemill.lang.statements import CreateQuery, CreateTable, ObjectKind
from tidemill.lang.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Done",
    "Key",
    "LogEntry",
    "Undone",
    "Written",
    "key_of",
    "question",
    "standing",
    "unfinished_drops",
]

Key: TypeAlias = tuple[bool, str]
"""What tells one thing from another: whether it is a function, and its name in lower case."""


@dataclass(frozen=True, slots=True)
class Written:
    """A statement that changes the catalog.

    Attributes:
        number: Its number, from 1.
        kind: What it creates or drops.
        name: The name of that; one that was given to it, if it is a SELECT.
        text: The statement, in normal form.
        is_drop: Whether it drops it.
    """

    number: int
    kind: ObjectKind
    name: str
    text: str
    is_drop: bool = False

    @property
    def is_of_query(self) -> bool:
        """Whether it creates or drops a query, which has state; a table is one."""
        return self.kind in (ObjectKind.QUERY, ObjectKind.TABLE)

    @property
    def key(self) -> Key:
        """What it creates or drops."""
        return key_of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Undone:
    """A statement was refused after it was written."""

    number: int


@dataclass(frozen=True, slots=True)
class Done:
    """All that a statement is to change has been changed."""

    number: int


LogEntry: TypeAlias = Written | Undone | Done


def key_of(kind: ObjectKind, name: str) -> Key:
    """What tells a thing from others."""
    return kind is ObjectKind.FUNCTION, name.lower()


def standing(entries: Iterable[LogEntry]) -> list[Written]:
    """The statements that hold: what was created and not dropped, in the order of creation.

    What was created once more is as the last statement says, in the place of the first: others were
    created after it that need it.
    """
    held: dict[Key, Written] = {}
    for written in _carried_out(entries):
        if written.is_drop:
            held.pop(written.key, None)
        else:
            held[written.key] = written
    return list(held.values())


def unfinished_drops(entries: Iterable[LogEntry]) -> list[Written]:
    """The drops of queries that were written, and of which it is not known that they were done.

    One whose name was given again was done: the state is that of the new query.
    """
    entries = list(entries)
    done = {entry.number for entry in entries if isinstance(entry, Done)}
    open_: dict[Key, Written] = {}
    for one in _carried_out(entries):
        open_.pop(one.key, None)
        if one.is_drop and one.is_of_query and one.number not in done:
            open_[one.key] = one
    return list(open_.values())


def question(text: str) -> str:
    """What the statement of a query asks, whatever name and sink it gives it.

    >>> question("CREATE QUERY q AS SELECT * FROM bid [NOW]"), question("SELECT * FROM bid [NOW]")
    ('SELECT * FROM bid [NOW]', 'SELECT * FROM bid [NOW]')
    """
    statement = parse_one(text)
    return unparse(statement.query) if isinstance(statement, CreateQuery | CreateTable) else text


def _carried_out(entries: Iterable[LogEntry]) -> list[Written]:
    entries = list(entries)
    undone = {entry.number for entry in entries if isinstance(entry, Undone)}
    return [e for e in entries if isinstance(e, Written) and e.number not in undone]
