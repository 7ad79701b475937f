"""The value of an expression in a row: the reference, one row at a time.

NULL is ``None``. Every result is a value of the declared type (``algebra/values.py``); where an
expression has no value (overflow, division by zero, a CAST that fails), it is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.casts import cast_value
from tidemill.algebra.expr import Call, Case, Cast, Column, Expr, Literal
from tidemill.algebra.functions import NULL_AWARE, STRICT
from tidemill.algebra.values import conform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.model.types import Value

__all__ = ["evaluate"]


def evaluate(expr: Expr, row: Mapping[str, Value]) -> Value:
    """The value of ``expr`` in the row with these columns.

    >>> from tidemill.model.types import INTEGER
    >>> total = Call("+", (Column("a", INTEGER), Literal(1, INTEGER)), INTEGER)
    >>> evaluate(total, {"a": 2}), evaluate(total, {"a": None}), evaluate(total, {"a": 2**31 - 1})
    (3, None, None)
    """
    match expr:
        case Column(name, type_):
            return conform(row[name], type_)
        case Literal(value, type_):
            return conform(value, type_)
        case Cast(input_, type_):
            return cast_value(evaluate(input_, row), type_)
        case Case(branches, otherwise):
            for condition, result in branches:
                if evaluate(condition, row) is True:
                    return evaluate(result, row)
            return evaluate(otherwise, row)
        case Call(function, arguments, type_):
            return conform(_call(function, [evaluate(part, row) for part in arguments]), type_)
        case _:
            assert_never(expr)


def _call(function: str, values: list[Value]) -> Value:
    if function in NULL_AWARE:
        return NULL_AWARE[function](*values)
    return None if None in values else STRICT[function](*values)
