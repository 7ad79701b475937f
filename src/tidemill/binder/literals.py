"""From constants in the text to typed literals.

A whole number is INTEGER or, if it is too large, BIGINT; with a point it is DECIMAL, with an
exponent DOUBLE.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sqlglot import exp

from tidemill.algebra.expr import Literal
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    MAX_PRECISION,
    NULL,
    VARCHAR,
    decimal,
)

__all__ = ["bind_literal", "bind_number"]

_INT_LIMIT, _BIGINT_LIMIT = 2**31, 2**63
_LONGEST = 400


def bind_literal(node: exp.Expr) -> Literal:
    """The constant a node stands for."""
    match node:
        case exp.Null():
            return Literal(None, NULL)
        case exp.Boolean():
            return Literal(bool(node.this), BOOLEAN)
        case exp.Literal(is_string=True):
            return Literal(node.name, VARCHAR)
        case _:
            return bind_number(node.name, node)


def bind_number(text: str, node: exp.Expr) -> Literal:
    """The number a text stands for.

    Raises:
        BindError: It has too many digits.
    """
    literal = _number(text) if len(text) <= _LONGEST else None
    if literal is None:
        raise BindError(
            "the number is too large",
            span=span_of(node),
            hint="BIGINT goes to 9223372036854775807, DECIMAL has 38 digits, and a DOUBLE, written "
            "as 1e30, goes to 1.8e308",
        )
    return literal


def _number(text: str) -> Literal | None:
    if "e" in text.lower():
        return Literal(float(text), DOUBLE) if math.isfinite(float(text)) else None
    if "." in text:
        value, scale = Decimal(text), len(text.partition(".")[2])
        precision = max(len(value.as_tuple().digits), scale, 1)
        return Literal(value, decimal(precision, scale)) if precision <= MAX_PRECISION else None
    if -_INT_LIMIT <= int(text) < _INT_LIMIT:
        return Literal(int(text), INTEGER)
    if -_BIGINT_LIMIT <= int(text) < _BIGINT_LIMIT:
        return Literal(int(text), BIGINT)
    return None
