"""One spelling for expressions that say the same.

    5 < price                       price > 5
    at = item                       at = item                 arguments in one order
    NOT (a > 5 AND b)               NOT b OR a <= 5
    a = 7 OR a = 3, a IN (7, 3)     a IN (3, 7)

Law: an expression has the value of its one spelling for every row, NULL where that is NULL; and an
expression with the parts of AND, OR, IN, of comparisons, sums and products in another order has the
same one.

Equal because comparisons order all values, NaN too, so that of ``a > b`` and ``a <= b`` exactly one
is true unless one side is NULL; AND and OR are associative, commutative, idempotent and dual in
three-valued logic; IN is defined by ``=`` and OR; and sums and products are commutative in every
type, though associative in few.

Where parts differ in constants only, their order is that of their constants, or the one they have,
if these are not to be looked at: plans are made for many queries at once (``templates.py``), whose
constants have been put in order before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from tidemill.algebra.expr import Call, Case, Cast, Column, Expr, Literal, Named, chained
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    NamedAggregate,
    Project,
    SemiJoin,
)
from tidemill.algebra.text import expr_text
from tidemill.algebra.tree import share, transform_up
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.logical.predicates import with_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidemill.algebra.expr import AggregateCall
    from tidemill.algebra.plan import Plan

__all__ = ["respelled", "shape", "spelled", "spelled_aggregate"]

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE: Final = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "=": "<>",
    "<>": "=",
    "is_distinct": "is_not_distinct",
    "is_not_distinct": "is_distinct",
}
_COMMUTATIVE: Final = frozenset({"=", "<>", "is_distinct", "is_not_distinct", "+", "*"})
_DUAL: Final = {"and": "or", "or": "and"}


def respelled(plan: Plan) -> Plan:
    """The plan with its expressions spelled in one way, constants in order."""
    return share(transform_up(plan, _respelled))


def spelled(expr: Expr, *, exactly: bool = True) -> Expr:
    """The one spelling of an expression.

    Args:
        expr: The expression.
        exactly: Whether constants are looked at.
    """
    again = partial(spelled, exactly=exactly)
    match expr:
        case Column() | Literal():
            return expr
        case Cast(input_, type_):
            return Cast(again(input_), type_)
        case Case(branches, otherwise, type_):
            new = tuple((again(condition), again(value)) for condition, value in branches)
            return Case(new, again(otherwise), type_)
        case Call("and" | "or" as function):
            return _chain(function, [again(part) for part in _parts(expr, function)], exactly)
        case Call("not", (inner,)):
            return _negated(again(inner), exactly)
        case Call("in", (tested, *items)):
            return _one_of(again(tested), [again(item) for item in items], exactly)
        case Call(function, arguments, type_):
            return _call(function, [again(argument) for argument in arguments], expr, exactly)
        case _:
            assert_never(expr)


def shape(expr: Expr) -> str:
    """What an expression looks like, whatever its constants are; these come last in an order."""
    match expr:
        case Column(name):
            return name
        case Literal(type=type_):
            return f"~{type_}"
        case Cast(input_, type_):
            return f"CAST({shape(input_)} AS {type_})"
        case Case(branches, otherwise):
            parts = ", ".join(f"{shape(c)}: {shape(v)}" for c, v in branches)
            return f"CASE({parts}, {shape(otherwise)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(shape, arguments))})"
        case _:
            assert_never(expr)


def spelled_aggregate(call: AggregateCall, *, exactly: bool = True) -> AggregateCall:
    """The aggregate of the same, spelled in one way."""
    parts = (call.argument, call.condition)
    argument, condition = (p if p is None else spelled(p, exactly=exactly) for p in parts)
    return replace(call, argument=argument, condition=condition)


# Calls


def _call(function: str, arguments: Sequence[Expr], expr: Call, exactly: bool) -> Expr:  # noqa: FBT001
    if len(arguments) == 2:  # noqa: PLR2004 — the operators that can be turned round
        one, other = arguments
        can_turn = function in _MIRRORED or (function in _COMMUTATIVE and one.type == other.type)
        if can_turn and _in_order(arguments, exactly) != [one, other]:
            return Call(_MIRRORED.get(function, function), (other, one), expr.type)
    return Call(function, tuple(arguments), expr.type)


def _negated(expr: Expr, exactly: bool) -> Expr:  # noqa: FBT001
    """What is true where a spelled condition is FALSE, and NULL where it is."""
    match expr:
        case Call("not", (inner,)):
            return inner
        case Call(function, arguments, type_) if function in _OPPOSITE:
            return Call(_OPPOSITE[function], arguments, type_)
        case Call("and" | "or" as function):
            parts = [_negated(part, exactly) for part in _parts(expr, function)]
            return _chain(_DUAL[function], parts, exactly)
        case _:
            return Call("not", (expr,), BOOLEAN)


def _one_of(tested: Expr, items: Sequence[Expr], exactly: bool) -> Expr:  # noqa: FBT001
    """Whether a value is one of several."""
    different = _in_order(dict.fromkeys(items), exactly)
    if len(different) == 1 and different[0].type == tested.type:
        return _call("=", (tested, different[0]), Call("=", (), BOOLEAN), exactly)
    return Call("in", (tested, *different), BOOLEAN)


def _chain(function: str, parts: Iterable[Expr], exactly: bool) -> Expr:  # noqa: FBT001
    """AND or OR of spelled parts."""
    flat = [inner for part in parts for inner in _parts(part, function)]
    if function == "or":
        flat = _merged(flat, exactly)
    return chained(function, _in_order(dict.fromkeys(flat), exactly))


def _parts(expr: Expr, function: str) -> list[Expr]:
    """The parts of a chain of calls of one function, from left to right."""
    found, todo = [], [expr]
    while todo:
        part = todo.pop()
        if isinstance(part, Call) and part.function == function:
            todo += reversed(part.arguments)
        else:
            found.append(part)
    return found


def _merged(parts: Iterable[Expr], exactly: bool) -> list[Expr]:  # noqa: FBT001
    """The parts, with those that ask whether one thing is a constant as one part."""
    rest: list[Expr] = []
    items: dict[Expr, list[Expr]] = {}
    for part in parts:
        match part:
            case Call("=" | "in", (tested, *others)) if not isinstance(tested, Literal) and all(
                isinstance(one, Literal) and one.type == tested.type for one in others
            ):
                items.setdefault(tested, []).extend(others)
            case _:
                rest.append(part)
    return [*rest, *(_one_of(tested, found, exactly) for tested, found in items.items())]


def _in_order(exprs: Iterable[Expr], exactly: bool) -> list[Expr]:  # noqa: FBT001
    """Expressions in an order that does not depend on the one they have."""

    def place(expr: Expr) -> tuple[bool, str, str]:
        return isinstance(expr, Literal), shape(expr), expr_text(expr) if exactly else ""

    return sorted(exprs, key=place)


# Plans


def _respelled(plan: Plan) -> Plan | None:
    new: Plan
    match plan:
        case Filter(source, predicate):
            new = Filter(source, spelled(predicate))
        case Project(source, columns):
            new = Project(source, tuple(Named(c.name, spelled(c.expr)) for c in columns))
        case Aggregate(source, keys, aggregates):
            by = tuple(Named(key.name, spelled(key.expr)) for key in keys)
            values = (NamedAggregate(a.name, spelled_aggregate(a.call)) for a in aggregates)
            new = Aggregate(source, by, tuple(values))
        case Join() | SemiJoin() | AntiJoin():
            new = with_condition(plan, plan.left, plan.right, spelled(plan.condition))
        case _:
            return None
    return None if new == plan else new
