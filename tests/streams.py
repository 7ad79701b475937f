"""Streams, plans and bags for tests that read like the paper.

The streams of the paper have one column, a letter. ``{1: "c", 2: "aaa"}`` is the logical stream
with one c at instant 1 and three a's at instant 2; ``"b[1,7) d[3,inf)"`` is the physical stream
with b valid from 1 up to 7 and d from 3 on. A bag is written in the same way: ``"aab"`` for rows
of one letter, ``"ab*6 bb"`` for rows of two, six times a and b, once b and b.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Column, Expr, Literal, Named
from tidemill.algebra.plan import Join, JoinKind, Plan, Project, Relation, Source, Validity
from tidemill.algebra.snapshot import Bag, Element, Reference, value_order
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.model.types import Value

__all__ = [
    "LETTER",
    "assert_bags",
    "assert_same",
    "bag",
    "bag_text",
    "bags",
    "both",
    "call",
    "column",
    "cross",
    "differing",
    "equal",
    "letters",
    "names_of_both",
    "number",
    "one_column",
    "periods",
    "project",
    "reference",
    "rows",
    "text",
    "valid",
    "words",
]

LETTER = Column("letter", VARCHAR)
"""The only column of a stream of letters."""

_PERIOD = re.compile(r"(\w)\[(\d+),(\d+|inf)\)")


# Inputs


def letters(stream: Mapping[int, str]) -> list[Element]:
    """The elements of a logical stream of letters, as an input of the reference."""
    flat = [(time, letter) for time, content in stream.items() for letter in content]
    return [Element(time, number, (letter,)) for number, (time, letter) in enumerate(flat)]


def valid(stream: str) -> list[tuple[Value, ...]]:
    """The rows of a temporal relation that is the physical stream; see ``periods``."""
    return [
        (letter, int(start), None if end == "inf" else int(end))
        for letter, start, end in _PERIOD.findall(stream)
    ]


def reference(**streams: Mapping[int, str] | str) -> Reference:
    """The evaluator for streams of letters, logical or physical, by name."""
    return Reference(
        {name: letters(s) for name, s in streams.items() if not isinstance(s, str)},
        {name: valid(s) for name, s in streams.items() if isinstance(s, str)},
    )


# Plans


def one_column(name: str) -> Source:
    """The plan that reads a logical stream of letters."""
    return Source(name, Schema((Field("letter", VARCHAR),)))


def periods(name: str) -> Project:
    """The plan that reads a physical stream of letters."""
    fields = (Field("letter", VARCHAR), Field("start", BIGINT), Field("end", BIGINT))
    return project(Relation(name, Schema(fields), Validity("start", "end")), letter=LETTER)


def column(plan: Plan, name: str) -> Column:
    """The column of a plan's answer, to build expressions with."""
    return Column(name, plan.schema[name].type)


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def call(function: str, *arguments: Expr) -> Call:
    """A comparison or a connective."""
    return Call(function, arguments, BOOLEAN)


def equal(left: Expr, right: Expr) -> Call:
    return call("=", left, right)


def both(left: Expr, right: Expr) -> Call:
    return call("and", left, right)


def project(plan: Plan, **columns: Expr) -> Project:
    """The columns computed from each row, by name."""
    return Project(plan, tuple(Named(name, expr) for name, expr in columns.items()))


def names_of_both(left: Plan, right: Plan) -> tuple[str, ...]:
    """Fresh names for the columns of two inputs side by side: l0, l1 and so on, then r0, r1."""
    return (
        *(f"l{i}" for i in range(len(left.schema))),
        *(f"r{i}" for i in range(len(right.schema))),
    )


def cross(left: Plan, right: Plan) -> Join:
    """All pairs of rows."""
    return Join(left, right, JoinKind.INNER, Literal(True, BOOLEAN), names_of_both(left, right))


# Bags


def rows(content: str) -> Bag:
    """The bag of rows of one letter each, as ``"aab"``."""
    return Counter((letter,) for letter in content)


def words(content: str) -> Bag:
    """The bag of rows with a letter in each column, as ``"ab*6 bb"``."""
    counted: Bag = Counter()
    for word in content.split():
        row, _, times = word.partition("*")
        counted[tuple(row)] += int(times or 1)
    return counted


def bag(reference: Reference, plan: Plan, time: int) -> Bag:
    """The snapshot at an instant."""
    return reference.snapshot(plan, time)


def bags(reference: Reference, plan: Plan, times: Iterable[int]) -> dict[int, Bag]:
    """The snapshots at some instants, without the empty ones."""
    found = {time: bag(reference, plan, time) for time in times}
    return {time: content for time, content in found.items() if content}


def bag_text(content: Bag) -> str:
    """A bag for a reader: its rows in order, with their multiplicities."""
    ordered = sorted(content, key=value_order)
    return " ".join(f"{row}*{content[row]}" for row in ordered) or "(no rows)"


def assert_bags(
    reference: Reference,
    plan: Plan,
    expected: Mapping[int, str | Bag] | str,
    times: Iterable[int] = range(20),
) -> None:
    """Fail unless the answer is as expected at every instant; instants left out are empty.

    What is expected is a logical stream of letters, a physical one, or bags by instant.
    """
    for time in times:
        if isinstance(expected, str):
            wanted = _alive(expected, time)
        else:
            content = expected.get(time, "")
            wanted = rows(content) if isinstance(content, str) else content
        _assert_equal(time, ("got", bag(reference, plan, time)), ("expected", wanted))


def assert_same(
    reference: Reference, left: Plan, right: Plan, times: Iterable[int] = range(20)
) -> None:
    """Fail unless two plans have the same answer at every instant."""
    for time in times:
        _assert_equal(
            time, ("left", bag(reference, left, time)), ("right", bag(reference, right, time))
        )


def differing(
    reference: Reference, left: Plan, right: Plan, times: Iterable[int] = range(20)
) -> list[int]:
    """The instants at which two plans have different answers."""
    return [t for t in times if bag(reference, left, t) != bag(reference, right, t)]


def _alive(stream: str, time: int) -> Bag:
    return Counter(
        (letter,)
        for letter, start, end in _PERIOD.findall(stream)
        if int(start) <= time and (end == "inf" or time < int(end))
    )


def _assert_equal(time: int, one: tuple[str, Bag], other: tuple[str, Bag]) -> None:
    assert one[1] == other[1], (
        f"at instant {time}\n  {one[0]}: {bag_text(one[1])}\n  {other[0]}: {bag_text(other[1])}"
    )
