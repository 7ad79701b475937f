"""Expressions over the columns of one row: bound to names that exist, and typed.

Operators and functions are calls by name (``+``, ``=``, ``and``, ``upper``): ``algebra/functions``
says what each means, ``catalog/functions.py`` which types it takes. Implicit conversions have been
made explicit: the arguments of a call have exactly the types the function wants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.model.types import BOOLEAN, DataType, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "FALSE",
    "TRUE",
    "AggregateCall",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Expr",
    "Literal",
    "Named",
    "chained",
    "conjunction",
    "conjuncts",
    "expr_children",
    "replace_columns",
    "transform_expr",
    "used_columns",
    "walk_expr",
]


@dataclass(frozen=True, slots=True)
class Column:
    """The value of one input column."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value
    type: DataType

    @property
    def is_null(self) -> bool:
        """Whether it is NULL."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function or operator applied to arguments."""

    function: str
    arguments: tuple[Expr, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """A value converted to another type; NULL where it has no value of that type."""

    input: Expr
    type: DataType


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that is true, else ``otherwise``."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: DataType


Expr: TypeAlias = Column | Literal | Call | Cast | Case


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function over the rows of a group.

    Attributes:
        function: Its name, as ``sum``; ``count`` without an argument counts rows.
        argument: What is aggregated; NULLs are left out.
        type: The type of the result.
        distinct: Whether equal arguments count once.
        condition: Only rows for which it is true take part.
    """

    function: str
    argument: Expr | None
    type: DataType
    distinct: bool = False
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """An expression with the name of the column it makes."""

    name: str
    expr: Expr


_LONG_CHAIN = 32

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def expr_children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below ``expr``, from left to right."""
    match expr:
        case Column() | Literal():
            return ()
        case Call(_, arguments):
            return arguments
        case Cast(input_):
            return (input_,)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            assert_never(expr)


def _with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    match expr:
        case Column() | Literal():
            return expr
        case Call(function, _, type_):
            return Call(function, new, type_)
        case Cast(_, type_):
            return Cast(new[0], type_)
        case Case(_, _, type_):
            return Case(tuple(zip(new[:-1:2], new[1:-1:2], strict=True)), new[-1], type_)
        case _:
            assert_never(expr)


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """Every expression in ``expr``, itself last."""
    for child in expr_children(expr):
        yield from walk_expr(child)
    yield expr


def transform_expr(expr: Expr, rewrite: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` rewritten from the leaves up; what did not change is the same object."""
    old = expr_children(expr)
    new = tuple(transform_expr(child, rewrite) for child in old)
    if any(a is not b for a, b in zip(old, new, strict=True)):
        expr = _with_children(expr, new)
    return rewrite(expr) or expr


def replace_columns(expr: Expr, replacement: Callable[[Column], Expr]) -> Expr:
    """``expr`` with each column replaced."""
    return transform_expr(expr, lambda e: replacement(e) if isinstance(e, Column) else None)


def used_columns(expr: Expr) -> frozenset[str]:
    """The input columns whose values can change the result of ``expr``."""
    return frozenset(e.name for e in walk_expr(expr) if isinstance(e, Column))


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """The parts of a predicate that must all be true; none for TRUE."""
    match predicate:
        case Call("and", (left, right)):
            return (*conjuncts(left), *conjuncts(right))
        case _:
            return () if predicate == TRUE else (predicate,)


def conjunction(*predicates: Expr) -> Expr:
    """The predicate that is true when all are; TRUE for none."""
    parts = [part for predicate in predicates for part in conjuncts(predicate)]
    return chained("and", parts) if parts else TRUE


def chained(function: str, parts: Sequence[Expr]) -> Expr:
    """AND or OR of conditions, at least of one."""
    if len(parts) > _LONG_CHAIN:
        # They associate: a long chain as a tree of little depth.
        half = len(parts) // 2
        return Call(
            function, (chained(function, parts[:half]), chained(function, parts[half:])), BOOLEAN
        )
    return reduce(lambda left, right: Call(function, (left, right), BOOLEAN), parts)
