"""The functions that choose between values."""

from __future__ import annotations

from tidemill.algebra.expr import Case, Expr, Literal
from tidemill.catalog.functions.conversion import common, convert
from tidemill.catalog.functions.operators import equality
from tidemill.catalog.functions.signature import (
    Arguments,
    Family,
    Function,
    Parameter,
    call_of_common_type,
)
from tidemill.model.types import BOOLEAN, INTEGER, NULL

__all__ = ["CONDITIONAL_FUNCTIONS"]

_A, _B = Parameter("a", Family.ANY), Parameter("b", Family.ANY)


def _nullif(arguments: Arguments) -> Expr:
    first = arguments.exprs[0]
    first = convert(first, INTEGER) if first.type == NULL else first
    return Case(((equality(arguments), Literal(None, first.type)),), first, first.type)


def _if(arguments: Arguments) -> Expr:
    spans = (arguments.span_of(1), arguments.span_of(2))
    what = f'the results of "{arguments.function.name}"'
    then, otherwise = common(arguments.exprs[1:], spans=spans, what=what)
    return Case(((arguments.argument(0), then),), otherwise, then.type)


CONDITIONAL_FUNCTIONS = (
    Function(
        "coalesce",
        (_A,),
        "the first argument that is not NULL",
        "conditional",
        call_of_common_type("coalesce"),
        variadic=True,
    ),
    Function(
        "ifnull",
        (_A, _B),
        "a, or b where a is NULL",
        "conditional",
        call_of_common_type("coalesce"),
    ),
    Function("nullif", (_A, _B), "a, but NULL where it equals b", "conditional", _nullif),
    Function(
        "if",
        (Parameter("condition", BOOLEAN), _A, _B),
        "a where the condition is true, else b",
        "conditional",
        _if,
        aliases=("iff",),
    ),
)
