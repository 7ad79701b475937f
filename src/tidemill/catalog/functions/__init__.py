"""The functions of the language: their names, their types, and the calls they are bound to.

What a function means stands in ``algebra/functions``, what an aggregate means in
``algebra/aggregates.py``. The binder asks here for a typed expression: arguments are converted
where that needs no asking, aliases become one name, and some functions become other expressions
(``nullif`` a CASE, ``year`` a ``date_part``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Case, Literal
from tidemill.catalog.functions.aggregates import AGGREGATES, build_aggregate
from tidemill.catalog.functions.conditionals import CONDITIONAL_FUNCTIONS
from tidemill.catalog.functions.conversion import (
    cast,
    castable,
    common,
    convert,
    converts_without_asking,
)
from tidemill.catalog.functions.dates import DATE_FUNCTIONS
from tidemill.catalog.functions.numbers import NUMBER_FUNCTIONS
from tidemill.catalog.functions.operators import OPERATORS
from tidemill.catalog.functions.signature import Arguments
from tidemill.catalog.functions.text import TEXT_FUNCTIONS
from tidemill.errors import BindError, closest
from tidemill.model.types import BOOLEAN, NULL

if TYPE_CHECKING:
    from tidemill.algebra.expr import AggregateCall, Expr
    from tidemill.errors import Span

__all__ = [
    "FunctionInfo",
    "aggregate_call",
    "case_call",
    "cast",
    "castable",
    "common",
    "convert",
    "converts_without_asking",
    "function_list",
    "is_aggregate",
    "is_operator",
    "is_scalar",
    "scalar_call",
]

_FUNCTIONS = (
    *OPERATORS,
    *TEXT_FUNCTIONS,
    *NUMBER_FUNCTIONS,
    *CONDITIONAL_FUNCTIONS,
    *DATE_FUNCTIONS,
)
_SCALARS = {name: f for f in _FUNCTIONS for name in (f.name, *f.aliases)}
_AGGREGATES = {name: a for a in AGGREGATES for name in (a.name, *a.aliases)}
_NOT_OF_THE_INPUT = frozenset(
    {
        "current_date",
        "current_time",
        "current_timestamp",
        "gen_random_uuid",
        "localtime",
        "localtimestamp",
        "now",
        "rand",
        "random",
        "today",
        "uuid",
    }
)


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """What a user wants to know of a function: how it is written, and what it gives."""

    name: str
    signature: str
    description: str
    group: str
    aliases: tuple[str, ...] = ()


def function_list() -> tuple[FunctionInfo, ...]:
    """Every operator, function and aggregate, group by group."""
    return (
        *(FunctionInfo(f.name, f.signature, f.description, f.group, f.aliases) for f in _FUNCTIONS),
        *(
            FunctionInfo(a.name, a.signature, a.description, "aggregate", a.aliases)
            for a in AGGREGATES
        ),
    )


def is_scalar(name: str) -> bool:
    """Whether a scalar function or operator has this name."""
    return name.lower() in _SCALARS


def is_operator(name: str) -> bool:
    """Whether it is the name of an operator, which is not called like a function."""
    return name.lower() in {operator.name for operator in OPERATORS}


def is_aggregate(name: str) -> bool:
    """Whether an aggregate function has this name."""
    return name.lower() in _AGGREGATES


def scalar_call(
    name: str,
    arguments: tuple[Expr, ...],
    *,
    span: Span | None = None,
    spans: tuple[Span | None, ...] = (),
) -> Expr:
    """The typed expression that a call of a function or operator stands for.

    Args:
        name: Its name, in any case.
        arguments: What it is applied to.
        span: Where the call stands.
        spans: Where the arguments stand, as far as it is known.

    Raises:
        BindError: There is no such function, or it does not take these arguments.
    """
    function = _SCALARS.get(name.lower())
    if function is None:
        raise _unknown(name, span)
    if not function.accepts(len(arguments)):
        raise BindError(
            f'"{function.name}" does not take {_count(len(arguments))}',
            span=span,
            hint=function.signature,
        )
    return function.build(Arguments(function, arguments, span, spans))


def aggregate_call(
    name: str,
    argument: Expr | None,
    *,
    distinct: bool = False,
    condition: Expr | None = None,
    span: Span | None = None,
) -> AggregateCall:
    """The typed call of an aggregate; no argument means ``count(*)``.

    Raises:
        BindError: There is no such aggregate, or it does not take this argument.
    """
    function = _AGGREGATES.get(name.lower())
    if function is None:
        raise _unknown(name, span)
    return build_aggregate(function, argument, distinct=distinct, condition=condition, span=span)


def case_call(
    branches: tuple[tuple[Expr, Expr], ...],
    otherwise: Expr | None = None,
    *,
    span: Span | None = None,
    spans: tuple[Span | None, ...] = (),
) -> Expr:
    """``CASE WHEN condition THEN value … ELSE otherwise END``, the values of one type.

    Args:
        branches: Conditions and values.
        otherwise: The value of ELSE, if there is one.
        span: Where the whole stands.
        spans: Where the values stand, that of ELSE last.

    Raises:
        BindError: A condition is not BOOLEAN, or the values have no common type.
    """
    for condition, _ in branches:
        if not converts_without_asking(condition, BOOLEAN):
            raise BindError(
                f"the condition of WHEN is {condition.type}, not BOOLEAN",
                span=span,
                hint="compare it with something, as in … > 0",
            )
    given = (*(value for _, value in branches), otherwise or Literal(None, NULL))
    places = tuple(spans[i] if i < len(spans) else span for i in range(len(given)))
    values = common(given, spans=places, what="the values of CASE")
    conditions = tuple(convert(condition, BOOLEAN) for condition, _ in branches)
    return Case(tuple(zip(conditions, values, strict=False)), values[-1], values[-1].type)


def _unknown(name: str, span: Span | None) -> BindError:
    if name.lower() in _NOT_OF_THE_INPUT:
        return BindError(
            f'"{name}" is not available: the answer is a function of the input alone',
            span=span,
            hint="use the column of ORDERED BY for the time of a row",
        )
    if is_aggregate(name):
        return BindError(
            f'"{name}" is an aggregate, and cannot stand here',
            span=span,
            hint="aggregates stand in SELECT and HAVING",
        )
    return BindError(
        f'function "{name}" does not exist',
        span=span,
        hint=closest(name, [*_SCALARS, *_AGGREGATES]) or "SHOW FUNCTIONS lists them",
    )


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"
