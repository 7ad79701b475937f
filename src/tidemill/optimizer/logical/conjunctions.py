"""Conjunctions: what their parts say together.

Law: a row for which all parts are true is one for which all ``merged`` parts are, and the reverse.
How it is done is said in ``rules/merge_conditions.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    replace_columns,
    used_columns,
)
from tidemill.model.types import BOOLEAN, DOUBLE
from tidemill.optimizer.logical.folding import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["merged"]

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def merged(parts: Iterable[Expr]) -> tuple[Expr, ...]:
    """The parts that decide, in their order; FALSE alone if they cannot be true together."""
    different = tuple(dict.fromkeys(parts))
    if any(isinstance(part, Literal) and part != TRUE for part in different):
        return (FALSE,)
    return _within_bounds(_known_apart(different))


def _known_apart(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The parts without those that a known column decides; FALSE if one decides against it."""
    known: dict[str, Literal] = {}
    saying: set[Expr] = set()
    for part in parts:
        if (found := _constant(part)) is not None and found[0] not in known:
            known[found[0]] = found[1]
            saying.add(part)
    if not known:
        return parts
    left: list[Expr] = []
    for part in parts:
        told = part if part in saying else _told(part, known)
        if isinstance(told, Literal) and told != TRUE:
            return (FALSE,)
        if told != TRUE:
            left.append(part)
    return tuple(left)


def _constant(part: Expr) -> tuple[str, Literal] | None:
    """The column that is a constant where a condition is true, and the constant."""
    match part:
        case Call("=", (Column() as column, Literal() as value)):
            pass
        case Call("=", (Literal() as value, Column() as column)):
            pass
        case Call("is_null", (Column(name, type_),)):
            return name, Literal(None, type_)
        case _:
            return None
    is_same = value.value is not None and column.type == value.type != DOUBLE
    return (column.name, value) if is_same else None


def _told(part: Expr, known: Mapping[str, Literal]) -> Expr:
    """The condition with constants in the place of what is known."""
    if used_columns(part).isdisjoint(known):
        return part
    return folded(replace_columns(part, lambda column: known.get(column.name, column)))


def _within_bounds(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The parts without bounds that others imply; FALSE if no value is between them."""
    lowest: dict[Expr, Expr] = {}
    highest: dict[Expr, Expr] = {}
    implied: set[Expr] = set()
    for part in parts:
        if (bound := _bound(part)) is None:
            continue
        term, is_lower = bound[0], bound[1].startswith(">")
        bounds = lowest if is_lower else highest
        other = bounds.setdefault(term, part)
        if other is not part:
            weaker = other if _is_stronger(part, other) else part
            bounds[term] = part if weaker is other else other
            implied.add(weaker)
    if any(_is_apart(low, highest[term]) for term, low in lowest.items() if term in highest):
        return (FALSE,)
    return tuple(part for part in parts if part not in implied)


def _bound(part: Expr) -> tuple[Expr, str, Literal] | None:
    """What a condition compares with a constant, how, and the constant."""
    match part:
        case Call(sign, (Literal(), Literal())) if sign in _MIRRORED:
            return None
        case Call(sign, (term, Literal() as value)) if sign in _MIRRORED:
            return term, sign, value
        case Call(sign, (Literal() as value, term)) if sign in _MIRRORED:
            return term, _MIRRORED[sign], value
        case _:
            return None


def _is_stronger(one: Expr, other: Expr) -> bool:
    """Whether what meets a bound meets another one, on the same side."""
    (_, sign, value), (_, other_sign, other_value) = _both(one, other)
    if _holds("=", value, other_value):
        return other_sign.endswith("=") or not sign.endswith("=")
    return _holds(sign[0], value, other_value)


def _is_apart(low: Expr, high: Expr) -> bool:
    """Whether no value is above one bound and below the other."""
    (_, sign, value), (_, other_sign, other_value) = _both(low, high)
    if _holds("=", value, other_value):
        return not (sign.endswith("=") and other_sign.endswith("="))
    return _holds(">", value, other_value)


def _both(*parts: Expr) -> Iterable[tuple[Expr, str, Literal]]:
    return [bound for part in parts if (bound := _bound(part)) is not None]


def _holds(sign: str, one: Literal, other: Literal) -> bool:
    return evaluate(Call(sign, (one, other), BOOLEAN), {}) is True
