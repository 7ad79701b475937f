"""The operators: arithmetic, comparisons, logic.

Types of arithmetic:
- ``+ - *`` of INTEGER and BIGINT give the wider of the two. ``/`` gives DOUBLE, always.
- ``+`` and ``-`` of DECIMAL have the larger scale and room for one more digit, at most 38 in all;
  ``%`` the same without the extra digit. Operands and results that do not fit are NULL.
- ``*`` of DECIMAL adds up precisions (at most 38) and scales. If the scales add up to more than 38,
  both operands become DOUBLE.
- A DATE plus or minus a whole number of days is a DATE; the difference of two is a number of days.

Comparisons convert both sides to the type they have in common. Two DECIMALs whose common type would
lose digits are compared as they are, exactly.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.catalog.functions.conversion import common, convert, read_moments
from tidemill.catalog.functions.signature import Arguments, Family, Function, Parameter, call
from tidemill.errors import BindError
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    NULL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    as_decimal,
    common_type,
    decimal,
)

if TYPE_CHECKING:
    from tidemill.catalog.functions.signature import Builder

__all__ = ["OPERATORS", "equality"]

_A, _B = Parameter("a", Family.NUMBER), Parameter("b", Family.NUMBER)
_ANY = (Parameter("a", Family.ANY), Parameter("b", Family.ANY))
_LOGIC = (Parameter("a", BOOLEAN), Parameter("b", BOOLEAN))


def _plus(arguments: Arguments) -> Expr:
    match arguments.types:
        case (DataType(Kind.DATE), _):
            return _add_days(arguments, 0, arguments.as_(1, BIGINT))
        case (_, DataType(Kind.DATE)):
            return _add_days(arguments, 1, arguments.as_(0, BIGINT))
        case _:
            return _numeric("+", arguments, extra=1)


def _minus(arguments: Arguments) -> Expr:
    spans = (arguments.span_of(0), arguments.span_of(1))
    left, right = read_moments(arguments.exprs, spans=spans)
    if left.type == right.type == DATE:
        ends = (convert(right, TIMESTAMP), convert(left, TIMESTAMP))
        return Call("date_diff", (Literal("day", VARCHAR), *ends), BIGINT)
    if left.type.is_temporal and right.type.is_temporal:
        raise BindError(
            f'"-" does not take {left.type} and {right.type}',
            span=arguments.span,
            hint="date_diff('microsecond', start, end) gives the time between them",
        )
    if left.type == DATE:
        days = arguments.as_(1, BIGINT)
        negative = (
            Literal(-days.value, BIGINT)
            if isinstance(days, Literal) and isinstance(days.value, int)
            else Call("neg", (days,), BIGINT)
        )
        return _add_days(arguments, 0, negative)
    return _numeric("-", arguments, extra=1)


def _add_days(arguments: Arguments, day: int, count: Expr) -> Expr:
    return Call("add_days", (arguments.exprs[day], count), DATE)


def _numeric(name: str, arguments: Arguments, *, extra: int) -> Expr:
    """Both operands in the type of the result."""
    left, right = _numbers(arguments)
    type_ = _aligned(left.type, right.type, extra)
    return Call(name, (convert(left, type_), convert(right, type_)), type_)


def _numbers(arguments: Arguments) -> tuple[Expr, Expr]:
    """The two operands; a NULL has the type of the other."""
    for index in (0, 1):
        if arguments.exprs[index].type == TIMESTAMP:
            raise BindError(
                f'"{arguments.function.name}" does not take TIMESTAMP',
                span=arguments.span_of(index),
                hint="add or subtract an INTERVAL",
            )
    left, right = arguments.converted()
    if arguments.types[0] == NULL:
        left = convert(arguments.exprs[0], right.type)
    if arguments.types[1] == NULL:
        right = convert(arguments.exprs[1], left.type)
    return left, right


def _aligned(left: DataType, right: DataType, extra: int) -> DataType:
    """The common type; for DECIMAL with the larger scale and ``extra`` digits in front."""
    type_ = common_type(left, right)
    assert type_ is not None, "both are numbers"
    if type_.kind is not Kind.DECIMAL:
        return type_
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return decimal(min(whole + scale + extra, MAX_PRECISION), scale)


def _times(arguments: Arguments) -> Expr:
    left, right = _numbers(arguments)
    type_ = common_type(left.type, right.type)
    assert type_ is not None, "both are numbers"
    if type_.kind is not Kind.DECIMAL:
        return Call("*", (convert(left, type_), convert(right, type_)), type_)
    a, b = as_decimal(left.type), as_decimal(right.type)
    scale = a.scale + b.scale
    if scale > MAX_PRECISION:
        return Call("*", (convert(left, DOUBLE), convert(right, DOUBLE)), DOUBLE)
    product = decimal(min(a.precision + b.precision, MAX_PRECISION), scale)
    return Call("*", (convert(left, a), convert(right, b)), product)


def _modulo(arguments: Arguments) -> Expr:
    return _numeric("%", arguments, extra=0)


def _integer_divide(arguments: Arguments) -> Expr:
    for index, type_ in enumerate(arguments.types):
        if not type_.is_integer and type_ != NULL:
            raise BindError(
                f'argument {index + 1} of "//" is {type_}, not an integer',
                span=arguments.span_of(index),
                hint="use / or floor(a / b)",
            )
    return _numeric("//", arguments, extra=0)


def _negate(arguments: Arguments) -> Expr:
    operand = arguments.argument(0)
    match operand:
        # The literal -1 is written as a negated 1.
        case Literal(int() | float() as value, type_):
            return Literal(-value, type_)
        case Literal(Decimal() as value, type_):
            return Literal(value.copy_negate(), type_)
        case _:
            return Call("neg", (operand,), operand.type)


def _compare(name: str) -> Builder:
    return lambda arguments: Call(name, _comparable(arguments), BOOLEAN)


def _comparable(arguments: Arguments) -> tuple[Expr, ...]:
    spans = tuple(arguments.span_of(index) for index in range(len(arguments)))
    types = [type_ for type_ in arguments.types if type_ != NULL]
    if types and all(t.is_integer or t.kind is Kind.DECIMAL for t in types):
        digits = reduce(lambda a, b: _aligned(a, b, 0), types)
        if digits.kind is Kind.DECIMAL and not all(_fits(as_decimal(t), digits) for t in types):
            return tuple(
                convert(expr, digits if expr.type == NULL else as_decimal(expr.type))
                for expr in arguments.exprs
            )
    return common(arguments.exprs, spans=spans, what=f'the sides of "{arguments.function.name}"')


def _fits(source: DataType, target: DataType) -> bool:
    return source.precision - source.scale <= target.precision - target.scale


def equality(arguments: Arguments) -> Expr:
    """Whether the first two arguments are equal."""
    pair = Arguments(_EQUAL, arguments.exprs[:2], arguments.span, arguments.spans[:2])
    return _EQUAL.build(pair)


def _arithmetic(name: str, description: str, build: Builder, *aliases: str) -> Function:
    return Function(
        name, (_A, _B), description, "operator", build, aliases=aliases, form=f"a {name} b"
    )


def _comparison(name: str, description: str, form: str = "") -> Function:
    return Function(name, _ANY, description, "operator", _compare(name), form=form or f"a {name} b")


_EQUAL = _comparison("=", "whether a and b are equal")

OPERATORS = (
    _arithmetic("+", "the sum; DATE + days is a DATE", _plus),
    _arithmetic("-", "the difference; of two DATEs in days", _minus),
    _arithmetic("*", "the product", _times),
    Function(
        "/",
        (Parameter("a", DOUBLE), Parameter("b", DOUBLE)),
        "the quotient, a DOUBLE; NULL if b is zero",
        "operator",
        call(DOUBLE),
        form="a / b",
    ),
    _arithmetic(
        "//", "the quotient of integers, cut towards zero; NULL if b is zero", _integer_divide
    ),
    _arithmetic(
        "%", "the rest of a division, with the sign of a; NULL if b is zero", _modulo, "mod"
    ),
    Function("neg", (_A,), "the negated number", "operator", _negate, form="-a"),
    _EQUAL,
    _comparison("<>", "whether a and b differ"),
    _comparison("<", "whether a is less than b"),
    _comparison("<=", "whether a is at most b"),
    _comparison(">", "whether a is greater than b"),
    _comparison(">=", "whether a is at least b"),
    _comparison("is_distinct", "whether a and b differ; NULL equals NULL", "a IS DISTINCT FROM b"),
    _comparison(
        "is_not_distinct", "whether a and b are equal; NULL equals NULL", "a IS NOT DISTINCT FROM b"
    ),
    Function(
        "in",
        _ANY,
        "whether a equals one of the others",
        "operator",
        _compare("in"),
        variadic=True,
        form="a IN (b, …)",
    ),
    Function("and", _LOGIC, "whether both are true", "operator", call(BOOLEAN), form="a AND b"),
    Function("or", _LOGIC, "whether one is true", "operator", call(BOOLEAN), form="a OR b"),
    Function("not", _LOGIC[:1], "whether it is false", "operator", call(BOOLEAN), form="NOT a"),
    Function(
        "is_null", _ANY[:1], "whether it is NULL", "operator", call(BOOLEAN), form="a IS NULL"
    ),
    Function(
        "is_true",
        _LOGIC[:1],
        "whether it is true, and not NULL",
        "operator",
        call(BOOLEAN),
        form="a IS TRUE",
    ),
    Function(
        "is_false",
        _LOGIC[:1],
        "whether it is false, and not NULL",
        "operator",
        call(BOOLEAN),
        form="a IS FALSE",
    ),
)
