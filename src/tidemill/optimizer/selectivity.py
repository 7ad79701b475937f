"""Selectivity: of which share of rows, or of pairs of rows, a condition is true.

What has been measured is taken. Otherwise values are assumed to be equally frequent and columns to
have nothing to do with each other; of two columns that are equated, the values of the one with
fewer are among those of the other (G-35). How many values a column has is that of all of them, not
of those valid at an instant: ``seen`` says how many of them so many rows have.

Law: a share is between 0 and 1, that of ``NOT p`` is 1 less that of ``p``, and a conjunction is no
more frequent than what it is made of.

>>> round(seen(100, 1)), round(seen(100, 100))
(1, 63)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import expm1, inf, log, log1p, prod
from typing import TYPE_CHECKING, Final, assert_never

from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Literal,
    conjuncts,
    replace_columns,
    used_columns,
)
from tidemill.algebra.text import expr_text
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.expr import Expr

__all__ = [
    "NULLS",
    "VALUES",
    "Columns",
    "condition_text",
    "harmonic",
    "seen",
    "selectivity",
    "values_of",
]

VALUES: Final = 100.0
"""How many values a column has of which nothing is known."""

NULLS: Final = 0.05
"""The share of the values of a column that are NULL, of which nothing is known."""

_EULER: Final = 0.5772156649
_RANGE: Final = 1 / 3
_LIKE: Final = 0.1
_OTHER: Final = 1 / 3

_SHARES: Final = {
    **dict.fromkeys(("<", "<=", ">", ">="), _RANGE),
    **dict.fromkeys(("like", "ilike"), _LIKE),
    "is_null": NULLS,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SYMMETRIC: Final = frozenset({"=", "<>", "is_distinct", "is_not_distinct"})


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of the columns that a condition reads.

    Attributes:
        values: How many values a column has; ``VALUES`` of others.
        origins: Where a column comes from, as ``"stream.column"``; nowhere, if it was computed.
        conditions: The shares of conditions that have been measured, by ``condition_text``.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, float] = field(default_factory=dict)


NOTHING: Final = Columns()


def selectivity(condition: Expr, columns: Columns = NOTHING) -> float:
    """The share of rows for which a condition is true."""
    known = _known(condition, columns)
    if known is not None:
        return known
    match condition:
        case _ if condition == TRUE:
            return 1.0
        case Literal():
            return 0.0  # FALSE and NULL
        case Call("and", _):
            return prod(selectivity(part, columns) for part in dict.fromkeys(conjuncts(condition)))
        case Call("or", parts):
            return 1 - prod(1 - selectivity(part, columns) for part in parts)
        case Call("not" | "is_false", (part,)):
            return 1 - selectivity(part, columns)
        case Call("is_true", (part,)):
            return selectivity(part, columns)
        case Call("=" | "is_not_distinct", (one, other)):
            return 1 / max(values_of(one, columns), values_of(other, columns))
        case Call("<>" | "is_distinct", (one, other)):
            return 1 - 1 / max(values_of(one, columns), values_of(other, columns))
        case Call("in", (one, *items)):
            return min(1.0, len(set(items)) / values_of(one, columns))
        case Call(function, _):
            return _SHARES.get(function, _OTHER)
        case Column():
            return 0.5
        case Cast() | Case():
            return _OTHER
        case _:
            assert_never(condition)


def values_of(expr: Expr, columns: Columns = NOTHING) -> float:
    """How many different values an expression has."""
    match expr:
        case Literal():
            return 1.0
        case Column(name, type_):
            known = columns.values.get(name, VALUES)
            return max(1.0, min(known, 2.0) if type_ == BOOLEAN else known)
        case Cast(input_):
            return values_of(input_, columns)
        case Call(_, _, type_) if type_ == BOOLEAN:
            return 2.0
        case Call() | Case():
            # A function of some columns has no more values than these have combinations.
            read = sorted(used_columns(expr))
            return prod(max(1.0, columns.values.get(name, VALUES)) for name in read)
        case _:
            assert_never(expr)


def seen(values: float, rows: float) -> float:
    """How many of some values, equally frequent, so many rows have (Cárdenas)."""
    if values <= 1:
        return min(1.0, rows)
    if values == inf:
        return rows
    return min(rows, -values * expm1(rows * log1p(-1 / values)))


def harmonic(count: float) -> float:
    """The sum of ``1 / i`` up to a count: how many of so many random values are records.

    It is also by how much the longest of so many random lengths is longer than the mean.
    """
    return 1.0 if count <= 1 else log(count) + _EULER + 1 / (2 * count)


def condition_text(condition: Expr, origins: Mapping[str, str]) -> str | None:
    """The canonical text of a condition over columns of streams and relations.

    Of what is equal whichever way it is written, one way is chosen: the sides of an equality are
    ordered by their texts, and a comparison has the lesser text on the left.

    Returns:
        The text; ``None`` if the condition reads a column that was computed.
    """
    if not used_columns(condition) or not used_columns(condition) <= origins.keys():
        return None
    renamed = replace_columns(condition, lambda c: Column(origins[c.name], c.type))
    return expr_text(_canonical(renamed))


def _canonical(condition: Expr) -> Expr:
    match condition:
        case Call("and" | "or" | "not" as function, parts, type_):
            return Call(function, tuple(_canonical(part) for part in parts), type_)
        case Call(function, (one, other), type_) if function in _SYMMETRIC | _MIRRORED.keys():
            if expr_text(one) <= expr_text(other):
                return condition
            return Call(_MIRRORED.get(function, function), (other, one), type_)
        case _:
            return condition


def _known(condition: Expr, columns: Columns) -> float | None:
    """What has been measured of a condition, if anything has."""
    if not columns.conditions or condition in (TRUE, FALSE):
        return None
    text = condition_text(condition, columns.origins)
    share = None if text is None else columns.conditions.get(text)
    return None if share is None else min(max(share, 0.0), 1.0)
