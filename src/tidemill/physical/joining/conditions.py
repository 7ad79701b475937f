"""Join conditions taken apart: equalities of the two sides, for looking up, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Expr, conjunction, conjuncts, used_columns

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Equality", "split_condition"]


@dataclass(frozen=True, slots=True)
class Equality:
    """An expression over the left columns that must equal one over the right columns.

    Attributes:
        left: The expression over left columns.
        right: The one over right columns, of the same type.
        null_safe: Whether NULL equals NULL (``IS NOT DISTINCT FROM``); otherwise it equals nothing.
    """

    left: Expr
    right: Expr
    null_safe: bool


def split_condition(
    condition: Expr, left_names: Collection[str], right_names: Collection[str]
) -> tuple[tuple[Equality, ...], Expr]:
    """The equalities between the two sides, and what else must be true.

    A pair of rows meets the condition if and only if it meets all of both.
    """
    equalities: list[Equality] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        equality = _equality(part, frozenset(left_names), frozenset(right_names))
        if equality is None:
            rest.append(part)
        elif equality not in equalities:
            equalities.append(equality)
    return tuple(equalities), conjunction(*rest)


def _equality(part: Expr, left: frozenset[str], right: frozenset[str]) -> Equality | None:
    match part:
        case Call("=" | "is_not_distinct" as function, (one, other)) if one.type == other.type:
            null_safe = function == "is_not_distinct"
            if _reads_only(one, left) and _reads_only(other, right):
                return Equality(one, other, null_safe)
            if _reads_only(one, right) and _reads_only(other, left):
                return Equality(other, one, null_safe)
            return None
        case _:
            return None


def _reads_only(expr: Expr, names: frozenset[str]) -> bool:
    """Whether it reads columns, all of them among ``names``."""
    used = used_columns(expr)
    return bool(used) and used <= names
