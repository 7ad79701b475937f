"""Conversions between types: those made without asking, and those asked for with CAST.

Without asking, a value becomes one of a wider type (``model/types.py``), and a quoted literal
beside a DATE or TIMESTAMP is read as one. A constant is converted when the query is bound: one that
has no value of the other type is an error, not NULL in every row.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tidemill.algebra.casts import cast_value
from tidemill.algebra.expr import Cast, Expr, Literal
from tidemill.errors import BindError
from tidemill.model.types import (
    DATE,
    INTEGER,
    NULL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    common_type,
    converts,
)

if TYPE_CHECKING:
    from tidemill.errors import Span

__all__ = ["cast", "castable", "common", "convert", "converts_without_asking", "read_moments"]


def cast(expr: Expr, target: DataType, *, span: Span | None = None) -> Expr:
    """``CAST(expr AS target)``; the expression itself if it has that type.

    Raises:
        BindError: No value of the one type is a value of the other, or the constant is none.
    """
    if not castable(expr.type, target):
        raise BindError(
            f"{expr.type} cannot be converted to {target}",
            span=span,
            hint="numbers, texts and times convert among themselves, and all to VARCHAR",
        )
    return _converted(expr, target, span)


def castable(source: DataType, target: DataType) -> bool:
    """Whether CAST between the types makes sense."""
    if NULL in (source, target):
        return source == NULL
    if VARCHAR in (source, target) or source == target:
        return True
    if source.is_temporal or target.is_temporal:
        return source.is_temporal and target.is_temporal
    return True  # numbers and BOOLEAN


def converts_without_asking(expr: Expr, target: DataType) -> bool:
    """Whether the expression becomes a ``target`` where one is wanted."""
    return converts(expr.type, target) or (_is_text(expr) and target.is_temporal)


def convert(expr: Expr, target: DataType, *, span: Span | None = None) -> Expr:
    """The expression as a ``target``, which it converts to without asking."""
    if target == DATE and isinstance(expr, Literal) and isinstance(expr.value, str):
        # Beside a DATE, a text with a time of day is a mistake; CAST would cut it off.
        moment = cast_value(expr.value, TIMESTAMP)
        if moment != cast_value(cast_value(moment, DATE), TIMESTAMP):
            raise _no_value(expr, target, span)
    return _converted(expr, target, span)


def _converted(expr: Expr, target: DataType, span: Span | None) -> Expr:
    if expr.type == target:
        return expr
    match expr:
        case Literal(None):
            return Literal(None, target)
        case Literal(value):
            constant = Literal(cast_value(value, target), target)
            if constant.value is None:
                raise _no_value(expr, target, span)
            return constant
        case _:
            return Cast(expr, target)


def common(
    exprs: tuple[Expr, ...], *, spans: tuple[Span | None, ...], what: str
) -> tuple[Expr, ...]:
    """The expressions, converted to the smallest type they all convert to.

    Args:
        exprs: At least one expression.
        spans: Where they stand, one for each.
        what: What they are, for the error: ``the arguments of "coalesce"``.

    Raises:
        BindError: They have no type in common.
    """
    exprs = read_moments(exprs, spans=spans)
    type_: DataType = NULL
    for expr, span in zip(exprs, spans, strict=True):
        wider = common_type(type_, expr.type)
        if wider is None:
            raise BindError(
                f"{what} have no common type: {type_} and {expr.type}",
                span=span,
                hint=_way_on(type_, expr.type),
            )
        type_ = wider
    target = INTEGER if type_ == NULL else type_
    return tuple(convert(e, target, span=s) for e, s in zip(exprs, spans, strict=True))


def read_moments(exprs: tuple[Expr, ...], *, spans: tuple[Span | None, ...]) -> tuple[Expr, ...]:
    """The expressions, quoted literals read as the DATE or TIMESTAMP they stand beside."""
    moments = [expr.type for expr in exprs if expr.type.is_temporal]
    if not moments:
        return exprs
    target = reduce(lambda a, b: a if a == b else TIMESTAMP, moments)
    return tuple(
        convert(expr, target, span=span) if _is_text(expr) else expr
        for expr, span in zip(exprs, spans, strict=True)
    )


def _way_on(left: DataType, right: DataType) -> str | None:
    other = left if right == VARCHAR else right
    return f"convert one of them: CAST(… AS {other})" if castable(left, right) else None


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, str)


def _no_value(literal: Literal, target: DataType, span: Span | None) -> BindError:
    text = f"'{literal.value}'" if literal.type == VARCHAR else str(literal.value)
    forms = {Kind.DATE: "'2024-05-06'", Kind.TIMESTAMP: "'2024-05-06 07:08:09.123456'"}
    return BindError(
        f"{text} is not a value of type {target}",
        span=span,
        hint=f"write it as {forms[target.kind]}"
        if target.kind in forms
        else "TRY_CAST gives NULL instead",
    )
