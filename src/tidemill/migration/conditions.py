"""Conditions that hold for some rows, and what follows from them.

Columns that are equal are one: whatever is said of one of them is said of all. So conditions are
compared after each column has been replaced by the first of those that it equals.

Law: a condition that is implied is true for every row for which all the conditions are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Column, Expr, conjuncts, replace_columns
from tidemill.model.types import DOUBLE
from tidemill.optimizer.logical.conjunctions import merged
from tidemill.optimizer.logical.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Conditions"]

_COMPARES = frozenset({"=", "<", "<=", ">", ">=", "<>"})


class Conditions:
    """What is known of rows for which conditions are true.

    Args:
        parts: The conditions.

    Attributes:
        classes: The columns that are equal, of those that equal another one.
        facts: What else is true of them.
    """

    __slots__ = ("_first", "classes", "facts")

    def __init__(self, parts: Iterable[Expr]) -> None:
        every = tuple(part for whole in parts for part in conjuncts(spelled(whole)))
        self.classes = _classes(every)
        self._first = {
            column: min(class_, key=_by_name) for class_ in self.classes for column in class_
        }
        told = {self.rewritten(part) for part in every if _equal(part) is None}
        self.facts = frozenset(merged(sorted(told, key=repr)))

    def rewritten(self, expr: Expr) -> Expr:
        """An expression of the same value that equals others if they say the same of the rows."""
        return spelled(replace_columns(expr, lambda column: self._first.get(column, column)))

    def imply(self, condition: Expr) -> bool:
        """Whether a condition is known to be true."""
        return all(self._implies(part) for part in conjuncts(spelled(condition)))

    def require(self, expr: Expr) -> bool:
        """Whether an expression is known not to be NULL."""
        found = self.rewritten(expr)
        if any(found in map(self.rewritten, class_) for class_ in self.classes):
            return True
        return any(
            isinstance(fact, Call) and fact.function in _COMPARES and found in fact.arguments
            for fact in self.facts
        )

    def _implies(self, part: Expr) -> bool:
        if (both := _equal(part)) is not None:
            one, other = (self._first.get(column) for column in both)
            return one is not None and one == other
        rewritten = self.rewritten(part)
        if rewritten in self.facts:
            return True
        return set(merged((*sorted(self.facts, key=repr), rewritten))) == set(self.facts)


def _equal(part: Expr) -> tuple[Column, Column] | None:
    """The columns that a condition says to be equal, so that one stands for the other."""
    match part:
        case Call("=", (Column() as one, Column() as other)) if one.type == other.type != DOUBLE:
            return one, other
        case _:
            return None


def _classes(parts: Iterable[Expr]) -> tuple[frozenset[Column], ...]:
    classes: list[frozenset[Column]] = []
    for part in parts:
        if (both := _equal(part)) is not None:
            met = [class_ for class_ in classes if not class_.isdisjoint(both)]
            classes = [class_ for class_ in classes if class_ not in met]
            classes.append(frozenset(both).union(*met))
    return tuple(sorted(classes, key=lambda class_: sorted(column.name for column in class_)))


def _by_name(column: Column) -> str:
    return column.name
