"""Frames as rows of a schema: the declared columns with their types, and the malformed rows aside.

Columns are found by name, without regard to case; others are left out. Malformed rows are told to
the caller, with their place, what is wrong with them, and how they are written.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

import polars as pl

from tidemill.engine.ingest import FILE, LINE, PROBLEM, TEXT, Malformed
from tidemill.errors import RunError, suggestion
from tidemill.model.types import Kind
from tidemill.physical.frames import framed
from tidemill.runtime.reading.values import fit, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.model.schema import Field, Schema

__all__ = ["Broken", "Input", "Refuse", "Written", "fail", "found_columns", "shaped"]

Refuse: TypeAlias = Callable[[Malformed], None]
"""What is done with malformed rows."""

_LONG_VALUE, _LONG_TEXT = 60, 4_096
"""How much of a value is shown, and how much of a row is kept."""


_HIDDEN = "what is in it is not shown, since it is a link to another directory"


@dataclass(frozen=True, slots=True)
class Input:
    """What rows are read from.

    Attributes:
        where: What it is, for errors.
        file: Its path, if it is a file.
        unit: What its rows are counted by.
        is_shown: Whether errors may show what is in it.
    """

    where: str
    file: str | None = None
    unit: str = "line"
    is_shown: bool = True


class Broken(NamedTuple):
    """A row of which nothing can be read: its line, what is wrong, and how it is written."""

    line: int | None
    problem: str
    text: str


Written: TypeAlias = Callable[[list[int]], "list[tuple[int | None, str]]"]
"""The line and the text of rows, which are given by their places in a frame."""


def fail(found: Malformed) -> NoReturn:
    """Take malformed rows for an error.

    Raises:
        RunError: Always.
    """
    raise found.error()


def found_columns(names: Sequence[str], schema: Schema, input_: Input) -> list[str]:
    """The names under which the columns of a schema are found.

    Raises:
        RunError: One of them is not there, or more than once.
    """
    by_lower: dict[str, list[str]] = {}
    for name in names:
        by_lower.setdefault(name.lower(), []).append(name)
    for column in schema:
        found = by_lower.get(column.name.lower(), [])
        if not found:
            raise RunError(
                f'{input_.where} has no column "{column.name}"',
                hint=suggestion(column.name, names) if input_.is_shown else _HIDDEN,
            )
        if len(found) > 1:
            raise RunError(
                f'{input_.where} has {len(found)} columns "{column.name}"',
                hint="give one of them another name; case does not matter",
            )
    return [by_lower[column.name.lower()][0] for column in schema]


@dataclass(slots=True)
class _Shaping:
    """Columns of a frame as they get their types.

    Attributes:
        columns: Those that have theirs.
        bad: Which rows have a value that the type does not hold, by column.
    """

    columns: list[pl.Series] = field(default_factory=list)
    bad: dict[Field, pl.Series] = field(default_factory=dict)

    def add(
        self, column: pl.Series, declared: Field, where: str, others: Sequence[str | None] | None
    ) -> None:
        values, bad = fit(column, declared, where)
        if others is not None:
            wrong = pl.Series([other is not None for other in others])
            values = values.zip_with(~wrong, values.clear(values.len()))
            bad = wrong if bad is None else bad | wrong
        if not declared.nullable and values.null_count():
            empty = values.is_null()
            bad = empty if bad is None else bad | empty
        self.columns.append(values.rename(declared.name))
        if bad is not None:
            self.bad[declared] = bad


def shaped(  # noqa: PLR0913 — what a format knows of its rows
    found: Sequence[pl.Series],
    schema: Schema,
    input_: Input,
    refuse: Refuse,
    written: Written,
    *,
    broken: Sequence[Broken] = (),
    wrong: Mapping[str, Sequence[str | None]] | None = None,
) -> pl.DataFrame:
    """Rows with the types of a schema; malformed ones are left out and told.

    Args:
        found: The columns of the schema, in order, whatever they are called.
        schema: What was declared.
        input_: What the rows were read from.
        refuse: What is done with malformed rows.
        written: Where rows stand, and how they are written.
        broken: Rows that are not among them, because nothing can be read of them.
        wrong: What columns have instead where they have a value of another type, by their names.

    Raises:
        RunError: A column has a type that says something else, or ``refuse`` raises it.
    """
    shaping, wrong = _Shaping(), wrong or {}
    for column, declared in zip(found, schema, strict=True):
        shaping.add(column, declared, input_.where, wrong.get(declared.name))
    rows = framed(shaping.columns)
    if not shaping.bad:
        if broken:
            refuse(_malformed(rows.clear(), [], broken, input_))
        return rows
    bad = functools.reduce(operator.or_, shaping.bad.values())
    places = bad.arg_true().to_list()
    columns = dict(zip(schema.names, found, strict=True))
    problems = _problems(columns, shaping.bad, places, wrong, is_shown=input_.is_shown)
    lines = written(places)
    known = [Broken(line, p, text) for (line, text), p in zip(lines, problems, strict=True)]
    refuse(_malformed(rows.filter(bad), known, broken, input_))
    return rows.filter(~bad)


def _malformed(
    rows: pl.DataFrame, known: list[Broken], broken: Sequence[Broken], input_: Input
) -> Malformed:
    """Malformed rows by their lines; those of which nothing can be read have no values."""
    everything = [*known, *broken]
    count = len(everything)
    empty = pl.DataFrame(schema=rows.schema).clear(len(broken))
    texts = [entry.text if input_.is_shown else None for entry in everything]
    place = pl.DataFrame(
        {
            FILE: pl.repeat(input_.file, count, dtype=pl.String, eager=True),
            LINE: pl.Series([entry.line for entry in everything], dtype=pl.Int64),
            PROBLEM: pl.Series([entry.problem for entry in everything], dtype=pl.String),
            TEXT: pl.Series([t and _shortened(t, _LONG_TEXT) for t in texts], dtype=pl.String),
        }
    )
    found = pl.concat([rows, empty]).hstack(place)
    return Malformed(found.sort(LINE, maintain_order=True), input_.where, input_.unit)


def _problems(
    columns: Mapping[str, pl.Series],
    bad: Mapping[Field, pl.Series],
    places: list[int],
    wrong: Mapping[str, Sequence[str | None]],
    *,
    is_shown: bool,
) -> list[str]:
    """What is wrong with each of some rows, of which the first bad column is told."""
    problems: dict[int, str] = {}
    for declared, mask in bad.items():
        values = values_of(columns[declared.name].gather(places))
        others = wrong.get(declared.name)
        for place, value, is_bad in zip(places, values, mask.gather(places).to_list(), strict=True):
            if is_bad and place not in problems:
                other = None if others is None else others[place]
                shown = other or (None if value is None else _shown(value))
                problems[place] = _problem(declared, shown, is_shown=is_shown)
    return [problems[place] for place in places]


def _problem(declared: Field, shown: str | None, *, is_shown: bool) -> str:
    """What is wrong with a value of a column."""
    if shown is None:
        return f'column "{declared.name}" is NULL, and declared NOT NULL'
    if not is_shown:
        return f'column "{declared.name}" has no {declared.type}'
    article = "an" if declared.type.kind is Kind.INTEGER else "a"
    return f'column "{declared.name}" has {shown}, which is not {article} {declared.type}'


def _shown(value: object) -> str:
    r"""A value as an error shows it: on one line, and not too long.

    >>> _shown("a\nb"), _shown(1.5), _shown("x" * 99)[-5:]
    ('"a\\nb"', '1.5', 'xxxx…')
    """
    if isinstance(value, str):
        return _shortened(json.dumps(value, ensure_ascii=False), _LONG_VALUE)
    return _shortened(str(value), _LONG_VALUE)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
