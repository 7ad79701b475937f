"""Scenarios: queries on small streams with the answer written out, the same for every runner.

A file is a list of blocks with blank lines between them; lines that begin with # are comments.

    create                                  statements that register streams, relations and views
    CREATE STREAM s (v VARCHAR, t BIGINT) SOURCE memory('s') ORDERED BY t;

    input s                                 the elements: instant | the other columns [*copies]
    2 | a *3

    query the last two instants             a query, and its answer: elements valid in [start, end)
    SELECT v FROM s [RANGE 2]
    ----
    2 4 | a *3

The rows of a relation have no instant. Strings with blanks stand in quotes; NULL is NULL; ``inf``
is the end of time. An answer is right if the bags of rows are equal at every instant; how it is cut
into intervals is free.
"""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import tidemill
from tidemill.algebra.snapshot import Element
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.model.time import END_OF_TIME, to_datetime
from tidemill.model.types import TIMESTAMP, DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.types import Value

__all__ = ["Answer", "Scenario", "Timed", "scenarios"]

Answer: TypeAlias = list["Timed"]

_READ: dict[Kind, Callable[[str], Value]] = {
    Kind.BOOLEAN: lambda text: {"true": True, "false": False}[text],
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.VARCHAR: str,
    Kind.DATE: date.fromisoformat,
    Kind.TIMESTAMP: datetime.fromisoformat,
}


@dataclass(frozen=True, slots=True)
class Timed:
    """A row of an answer, valid in [start, end), so many times."""

    start: int
    end: int
    row: Row
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """One query of a file with everything it needs."""

    path: Path
    line: int
    title: str
    session: tidemill.Session
    streams: dict[str, list[Element]]
    relations: dict[str, list[Row]]
    query: str
    expected: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line} {self.title}"

    def answer(self, types: Iterable[DataType]) -> Answer:
        """The expected answer, read by the types of the query's columns."""
        kinds = list(types)
        answer = []
        for line in self.expected:
            period, _, values = line.partition("|")
            start, end = (END_OF_TIME if t == "inf" else int(t) for t in period.split())
            row, copies = _row(values, kinds, line)
            answer.append(Timed(start, end, row, copies))
        return answer

    def instants(self) -> range:
        """All instants at which the answer can be new, and a few more."""
        times = [e.time for elements in self.streams.values() for e in elements]
        for line in self.expected:
            times += [int(t) for t in line.partition("|")[0].split() if t != "inf"]
        return range(max(times, default=0) + 3)


def snapshot(answer: Answer, time: int) -> Bag:
    """The bag of rows of an answer at an instant."""
    bag: Bag = Counter()
    for timed in answer:
        if timed.start <= time < timed.end:
            bag[timed.row] += timed.copies
    return bag


def scenarios(path: Path) -> list[Scenario]:
    """The queries of a file, in order."""
    session = tidemill.connect()
    streams: dict[str, list[Element]] = {}
    relations: dict[str, list[Row]] = {}
    found: list[Scenario] = []
    for line, head, body in _blocks(path):
        word, _, title = head.partition(" ")
        match word:
            case "create":
                session.sql("\n".join(body))
            case "input":
                entry = session.catalog.find(title)
                if isinstance(entry, StreamEntry):
                    streams[entry.name] = _elements(entry, body)
                else:
                    assert isinstance(entry, RelationEntry), f"{path}:{line}: no input for {title}"
                    relations[entry.name] = _rows(entry, body)
            case "query":
                rule = body.index("----")
                text, expected = "\n".join(body[:rule]), tuple(body[rule + 1 :])
                found.append(
                    Scenario(path, line, title, session, streams, relations, text, expected)
                )
            case _:
                raise AssertionError(f"{path}:{line}: no such block: {word}")
    return found


def _blocks(path: Path) -> Iterable[tuple[int, str, list[str]]]:
    block: list[str] = []
    start = 0
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            yield start, block[0], block[1:]
            block = []


def _elements(entry: StreamEntry, lines: list[str]) -> list[Element]:
    elements: list[Element] = []
    kinds = [f.type for f in entry.schema if f.name != entry.time_column]
    for line in lines:
        instant, _, values = line.partition("|")
        time = int(instant)
        row, copies = _row(values, kinds, line)
        if entry.time_column is not None:
            at = entry.schema.names.index(entry.time_column)
            moment = to_datetime(time) if entry.schema.types[at] == TIMESTAMP else time
            row = (*row[:at], moment, *row[at:])
        elements += [Element(time, len(elements) + i, row) for i in range(copies)]
    return elements


def _rows(entry: RelationEntry, lines: list[str]) -> list[Row]:
    read = [_row(line, list(entry.schema.types), line) for line in lines]
    return [row for row, copies in read for _ in range(copies)]


def _row(text: str, types: list[DataType], line: str) -> tuple[Row, int]:
    words = shlex.split(text)
    copies = int(words.pop()[1:]) if words and words[-1].startswith("*") else 1
    assert len(words) == len(types), f"{len(types)} values are needed: {line}"
    values = (
        None if word == "NULL" else _READ[type_.kind](word)
        for word, type_ in zip(words, types, strict=True)
    )
    return tuple(values), copies
