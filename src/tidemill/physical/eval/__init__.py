"""Expressions over columns: a bound expression as one over the columns of a Polars frame.

Law: on every row, ``compile_expr(expr)`` is ``evaluate(expr, row)``, and no row is an error: where
the expression has no value, it is NULL. Only memory has an end: where the texts of a batch would
take too much of it, that is an error (``growth.py``).

The columns of the frame have the names of the expression's columns, and the types that
``model.batch.polars_type`` gives them. The result has the height of the frame, also where the
expression reads no column; it is named by the caller (``.alias``).
"""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import polars as pl
from polars import selectors

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Call, Case, Cast, Column, Expr, Literal, transform_expr
from tidemill.algebra.functions import STRICT
from tidemill.algebra.functions.text import PATTERNS, grown_length
from tidemill.algebra.parameters import ValueWantedError
from tidemill.model.types import Kind
from tidemill.physical.eval import dates, logic, numbers, text
from tidemill.physical.eval.binding import Compiler, column_type, let, one_zero, typed
from tidemill.physical.eval.casts import compile_cast
from tidemill.physical.limits import check_texts

__all__ = ["compile_expr", "compile_predicate"]

_TEXT = "@text"

_COMPILERS: dict[str, Compiler] = {
    **logic.COMPILERS,
    **numbers.COMPILERS,
    **text.COMPILERS,
    **dates.COMPILERS,
}

_WITHOUT_NEGATIVE_ZERO = frozenset({"+", "abs", "coalesce", "exp", "greatest", "least", "sqrt"})
"""Calls of DOUBLE that do not make -0.0 of other arguments; Polars' 0.0 - 0.0 may be -0.0."""


def compile_expr(expr: Expr) -> pl.Expr:
    """The expression over the columns of a frame, for ``select``, ``with_columns`` and ``filter``.

    >>> from tidemill.model.types import INTEGER
    >>> total = Call("+", (Column("a", INTEGER), Literal(1, INTEGER)), INTEGER)
    >>> frame = pl.DataFrame({"a": [2, None, 2**31 - 1]}, schema={"a": pl.Int32})
    >>> frame.select(compile_expr(total)).to_series().to_list()
    [3, None, None]

    Raises:
        PlanError: A pattern cannot be run on columns.
        TooLargeError: A constant text would be too large.
    """
    try:
        folded = transform_expr(expr, _fold)
        if isinstance(folded, Literal):
            value = typed(folded.value, folded.type)
            return pl.repeat(value, pl.len(), dtype=column_type(folded.type))
        return _compile(folded)
    except ValueWantedError:  # it is of a plan that is not run before its constants are known
        return pl.lit(None, dtype=column_type(expr.type))


def compile_predicate(expr: Expr) -> pl.Expr:
    """The condition over the columns of a frame, false where it is NULL."""
    return compile_expr(expr).fill_null(value=False)


def _fold(expr: Expr) -> Expr | None:
    """A constant for what reads no column; the arguments have been folded.

    So the others are left with arguments of which one is a column, and strict ones with constants
    that are not NULL.
    """
    match expr:
        case Column() | Literal():
            return None
        case Call(function, arguments, type_) if function in STRICT and any(
            isinstance(argument, Literal) and argument.value is None for argument in arguments
        ):
            return Literal(None, type_)
        case Call("concat_ws", (Literal(None), *_), type_):
            return Literal(None, type_)
        case Call(_, arguments):
            parts: tuple[Expr, ...] = arguments
        case Cast(input_):
            parts = (input_,)
        case Case(branches, otherwise):
            return _fold_case(branches, otherwise, expr)
        case _:
            assert_never(expr)
    return _constant(expr) if all(isinstance(part, Literal) for part in parts) else None


def _fold_case(branches: tuple[tuple[Expr, Expr], ...], otherwise: Expr, expr: Case) -> Expr | None:
    open_: list[tuple[Expr, Expr]] = []
    for condition, result in branches:
        if isinstance(condition, Literal):
            if condition.value is not True:
                continue
            otherwise = result
            break
        open_.append((condition, result))
    if not open_:
        return otherwise
    return Case(tuple(open_), otherwise, expr.type) if len(open_) < len(branches) else None


def _constant(expr: Expr) -> Literal:
    if isinstance(expr, Call):
        values = [part.value for part in expr.arguments if isinstance(part, Literal)]
        check_texts(expr.function, grown_length(expr.function, values))
        if expr.function in PATTERNS:
            return _found(expr)
    return Literal(evaluate(expr, {}), expr.type)


def _found(call: Call) -> Literal:
    """The value of a pattern in a constant text: a row of its own is asked."""
    text = call.arguments[0]
    assert isinstance(text, Literal), "all arguments are constants"
    row = pl.DataFrame({_TEXT: [text.value]}, schema={_TEXT: pl.String})
    of_column = Call(call.function, (Column(_TEXT, text.type), *call.arguments[1:]), call.type)
    return Literal(row.select(_compile(of_column)).item(), call.type)


def _compile(expr: Expr) -> pl.Expr:
    match expr:
        case Column(name, type_):
            column = _column(name)
            return one_zero(column) if type_.kind is Kind.DOUBLE else column
        case Literal(value, type_):
            return typed(value, type_)
        case Cast(input_):
            return compile_cast(expr, _compile(input_))
        case Case(branches, otherwise):
            pairs = [(_compile(condition), _compile(result)) for condition, result in branches]
            return reduce(
                lambda rest, pair: pl.when(pair[0]).then(pair[1]).otherwise(rest),
                reversed(pairs),
                _compile(otherwise),
            )
        case Call(function, arguments, type_):
            compiled = tuple(_compile(argument) for argument in arguments)
            result = _COMPILERS[function](expr, compiled)
            signed = type_.kind is Kind.DOUBLE and function not in _WITHOUT_NEGATIVE_ZERO
            return let(result, body=one_zero) if signed else result
        case _:
            assert_never(expr)


def _column(name: str) -> pl.Expr:
    # To Polars, a name between ^ and $ is a pattern, and * means all columns.
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return selectors.by_name(name).as_expr()
    return pl.col(name)
