"""The functions of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.catalog.functions.signature import (
    Arguments,
    Family,
    Function,
    Parameter,
    call,
    call_of_common_type,
    optional,
)
from tidemill.errors import BindError
from tidemill.model.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    MAX_PRECISION,
    DataType,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NUMBER_FUNCTIONS"]

_X = Parameter("x", Family.NUMBER)
_D = Parameter("x", DOUBLE)


def _same(types: tuple[DataType, ...]) -> DataType:
    return types[0]


def _whole(types: tuple[DataType, ...]) -> DataType:
    """Integers and DOUBLE stay what they are; a DECIMAL loses its scale."""
    return decimal(types[0].precision, 0) if types[0].kind is Kind.DECIMAL else types[0]


def _round(arguments: Arguments) -> Expr:
    converted = arguments.converted()
    type_ = converted[0].type
    if type_.kind is not Kind.DECIMAL:
        return Call("round", converted, type_)
    digits = 0
    if len(arguments) > 1:
        match converted[1]:
            case Literal(int() as digits):
                pass
            case _:
                raise BindError(
                    'argument 2 of "round", digits, must be a constant for a DECIMAL',
                    span=arguments.span_of(1),
                    hint="CAST(… AS DOUBLE) rounds to a number of digits that varies",
                )
    return Call("round", converted, _rounded_type(type_, digits))


def _rounded_type(type_: DataType, digits: int) -> DataType:
    if digits >= type_.scale:
        return type_
    scale = max(digits, 0)
    room = type_.precision - type_.scale + 1 + scale  # 9.9 becomes 10
    return decimal(min(max(type_.precision, room), MAX_PRECISION), scale)


def _function(
    name: str,
    description: str,
    result: DataType | Callable[[tuple[DataType, ...]], DataType],
    *aliases: str,
) -> Function:
    return Function(name, (_X,), description, "math", call(result), aliases=aliases)


def _of_double(name: str, description: str) -> Function:
    return Function(name, (_D,), description, "math", call(DOUBLE))


NUMBER_FUNCTIONS = (
    _function("abs", "the number without its sign", _same),
    _function("ceil", "the least whole number that is not less", _whole, "ceiling"),
    _function("floor", "the greatest whole number that is not greater", _whole),
    _function("trunc", "the whole number nearer to zero", _whole),
    Function(
        "round",
        (_X, optional("digits", BIGINT)),
        "the nearest number with so many digits after the point; halves go away from zero",
        "math",
        _round,
    ),
    _function("sign", "-1, 0 or 1", INTEGER),
    _of_double("sqrt", "the square root"),
    _of_double("cbrt", "the cube root"),
    _of_double("exp", "e to the power of x"),
    _of_double("ln", "the natural logarithm"),
    _of_double("log10", "the logarithm to base 10"),
    _of_double("log2", "the logarithm to base 2"),
    Function(
        "power",
        (_D, Parameter("y", DOUBLE)),
        "x to the power of y",
        "math",
        call(DOUBLE),
        aliases=("pow",),
    ),
    Function(
        "greatest",
        (Parameter("a", Family.ANY),),
        "the greatest argument that is not NULL",
        "conditional",
        call_of_common_type("greatest"),
        variadic=True,
    ),
    Function(
        "least",
        (Parameter("a", Family.ANY),),
        "the least argument that is not NULL",
        "conditional",
        call_of_common_type("least"),
        variadic=True,
    ),
    _of_double("sin", "the sine of an angle in radians"),
    _of_double("cos", "the cosine of an angle in radians"),
    _of_double("tan", "the tangent of an angle in radians"),
    _of_double("asin", "the angle with this sine"),
    _of_double("acos", "the angle with this cosine"),
    _of_double("atan", "the angle with this tangent"),
    Function(
        "atan2", (Parameter("y", DOUBLE), _D), "the angle of the point (x, y)", "math", call(DOUBLE)
    ),
    Function("pi", (), "the number π", "math", call(DOUBLE)),
    _of_double("degrees", "an angle in radians, in degrees"),
    _of_double("radians", "an angle in degrees, in radians"),
)
