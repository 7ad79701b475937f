"""From expressions in the text to bound, typed expressions.

``ExpressionBinder`` turns one syntax node into one expression. What a clause treats in its own way
(aggregates, subqueries, group keys) comes in as ``special``: it sees every node first and may
answer for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import Cast, Expr, Literal
from tidemill.binder.literals import bind_literal, bind_number
from tidemill.binder.scope import Scope, ScopeColumn
from tidemill.binder.types import bind_type
from tidemill.catalog.entries import function_use
from tidemill.catalog.functions import (
    case_call,
    cast,
    castable,
    convert,
    converts_without_asking,
    is_aggregate,
    is_operator,
    scalar_call,
)
from tidemill.errors import BindError, PlanError
from tidemill.lang.calls import SAYS_ALL
from tidemill.lang.spans import span_of
from tidemill.lang.unparse import unparse
from tidemill.lang.words import OVER_HINT
from tidemill.model.time import END_OF_TIME, UNITS
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    VARCHAR,
    Kind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.binder.context import Context
    from tidemill.catalog.entries import FunctionEntry

__all__ = ["ExpressionBinder", "aggregate_calls", "no_special"]

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is_not_distinct",
    exp.NullSafeNEQ: "is_distinct",
    exp.And: "and",
    exp.Or: "or",
}
_LONG_CHAIN = 32
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def no_special(_: exp.Expr) -> Expr | None:
    """The hook of a place where nothing is special."""
    return None


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds expressions over one scope."""

    scope: Scope
    context: Context
    special: Callable[[exp.Expr], Expr | None] = no_special

    def predicate(self, node: exp.Expr, clause: str) -> Expr:
        """A condition.

        Raises:
            BindError: It is not BOOLEAN.
        """
        expr = self.bind(node)
        if expr.type.kind is Kind.NULL:
            return Cast(expr, BOOLEAN)
        if expr.type != BOOLEAN:
            raise BindError(
                f"{clause} needs a condition, this is {expr.type}",
                span=span_of(node),
                hint="compare it with something, as in … > 0",
            )
        return expr

    def bind(self, node: exp.Expr) -> Expr:
        """The expression a node means.

        Raises:
            BindError: A name, a type or a number of arguments does not fit.
            PlanError: It is much larger than what was written.
        """
        answer = self.special(node)
        if answer is None:
            answer = self._bind(node)
        self.context.sizes.check(answer, node)
        return answer

    def _bind(self, node: exp.Expr) -> Expr:
        if type(node) in _BINARY:
            return self._binary(node)
        match node:
            case exp.Paren():
                return self.bind(node.this)
            case exp.Column():
                if isinstance(node.this, exp.Star):
                    raise _star(node)
                return self.scope.resolve(node)
            case exp.Literal() | exp.Null() | exp.Boolean():
                return bind_literal(node)
            case exp.Neg():
                return self._negative(node)
            case exp.Not():
                return self._call(node, "not", node.this)
            case exp.Is():
                return self._is(node)
            case exp.Like() | exp.ILike() | exp.Escape():
                return self._like(node)
            case exp.Between():
                return self._between(node)
            case exp.In() if not node.args.get("query"):
                return self._call(node, "in", node.this, *node.expressions)
            case exp.Case():
                return self._case(node)
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Extract():
                unit = Literal(node.this.name.lower(), VARCHAR)
                value = self.bind(node.expression)
                spans = (span_of(node.this), span_of(node.expression))
                return scalar_call("date_part", (unit, value), span=span_of(node), spans=spans)
            case exp.Anonymous():
                return self._function(node)
            case exp.Star():
                raise _star(node)
            case _:
                raise BindError(
                    f"{_kind(node)} cannot stand here",
                    span=span_of(node),
                    hint=_HINTS.get(type(node), _SUBQUERY_PLACES),
                )

    def _call(self, node: exp.Expr, name: str, *arguments: exp.Expr) -> Expr:
        bound = tuple(self.bind(argument) for argument in arguments)
        spans = tuple(span_of(argument) for argument in arguments)
        return scalar_call(name, bound, span=span_of(node), spans=spans)

    def _binary(self, node: exp.Expr) -> Expr:
        left, right = node.this, node.expression
        if isinstance(node, exp.Add | exp.Sub):
            sign = 1 if isinstance(node, exp.Add) else -1
            if isinstance(right, exp.Interval):
                return self._shift(node, left, right, sign)
            if isinstance(left, exp.Interval) and sign == 1:
                return self._shift(node, right, left, sign)
        operands = _chain(node)
        if isinstance(node, exp.And | exp.Or) and len(operands) > _LONG_CHAIN:
            return self._balanced(_BINARY[type(node)], operands)
        return self._call(node, _BINARY[type(node)], left, right)

    def _balanced(self, name: str, operands: list[exp.Expr]) -> Expr:
        """A long chain of AND or OR, which associate, as a tree of little depth."""
        if len(operands) == 1:
            return self.bind(operands[0])
        half = len(operands) // 2
        parts = operands[:half], operands[half:]
        bound = tuple(self._balanced(name, part) for part in parts)
        return scalar_call(name, bound, spans=tuple(span_of(part[0]) for part in parts))

    def _shift(self, node: exp.Expr, moment: exp.Expr, interval: exp.Interval, sign: int) -> Expr:
        unit = interval.text("unit").upper()
        name = "add_months" if unit in _MONTHS else "add_microseconds"
        amount = sign * Decimal(interval.this.name) * {**_MONTHS, **UNITS}[unit]
        if amount != int(amount) or abs(amount) >= END_OF_TIME:
            raise BindError(
                "the INTERVAL is too long, or not a whole number of months or microseconds",
                span=span_of(interval),
                hint="write it in another unit",
            )
        shift = Literal(int(amount), BIGINT)
        value = self.bind(moment)
        if not value.type.is_temporal and value.type.kind is not Kind.NULL:
            raise BindError(
                f"an INTERVAL moves a TIMESTAMP or DATE, this is {value.type}",
                span=span_of(moment),
                hint="a BIGINT of microseconds is moved by a number"
                if value.type.is_integer
                else "write CAST(… AS TIMESTAMP)",
            )
        return scalar_call(
            name,
            (value, shift),
            span=span_of(node),
            spans=(span_of(moment), span_of(interval)),
        )

    def _negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return bind_number("-" + node.this.name, node)
        return self._call(node, "neg", node.this)

    def _is(self, node: exp.Is) -> Expr:
        match node.expression:
            case exp.Null():
                return self._call(node, "is_null", node.this)
            case exp.Boolean():
                name = "is_true" if node.expression.this else "is_false"
                return self._call(node, name, node.this)
            case other:
                raise BindError(
                    "IS takes NULL, TRUE or FALSE",
                    span=span_of(other),
                    hint="to compare two values, NULLs included, write IS NOT DISTINCT FROM",
                )

    def _like(self, node: exp.Expr) -> Expr:
        like, escape = (
            (node.this, [node.expression]) if isinstance(node, exp.Escape) else (node, [])
        )
        name = "ilike" if isinstance(like, exp.ILike) else "like"
        call = self._call(node, name, like.this, like.expression, *escape)
        negated = like.args.get("negate")
        return scalar_call("not", (call,), span=span_of(node)) if negated else call

    def _between(self, node: exp.Between) -> Expr:
        value, low, high = self.bind(node.this), node.args["low"], node.args["high"]
        spans = (span_of(node.this), span_of(low)), (span_of(node.this), span_of(high))
        above = scalar_call(">=", (value, self.bind(low)), span=span_of(node), spans=spans[0])
        below = scalar_call("<=", (value, self.bind(high)), span=span_of(node), spans=spans[1])
        return scalar_call("and", (above, below), span=span_of(node))

    def _case(self, node: exp.Case) -> Expr:
        branches: list[tuple[Expr, Expr]] = []
        operand = None if node.this is None else self.bind(node.this)
        for branch in node.args["ifs"]:
            if operand is None:
                condition = self.predicate(branch.this, "WHEN")
            else:
                condition = scalar_call(
                    "=",
                    (operand, self.bind(branch.this)),
                    span=span_of(branch.this),
                    spans=(span_of(node.this), span_of(branch.this)),
                )
            branches.append((condition, self.bind(branch.args["true"])))
        default = node.args.get("default")
        otherwise = None if default is None else self.bind(default)
        places = [*(branch.args["true"] for branch in node.args["ifs"]), default or node]
        spans = tuple(span_of(place) for place in places)
        return case_call(tuple(branches), otherwise, span=span_of(node), spans=spans)

    def _cast(self, node: exp.Cast | exp.TryCast) -> Expr:
        value, target = self.bind(node.this), bind_type(node.args["to"])
        if isinstance(node, exp.TryCast) and castable(value.type, target):
            # CAST of a constant that has no such value is a mistake; TRY_CAST asks for NULL.
            return value if value.type == target else Cast(value, target)
        return cast(value, target, span=span_of(node))

    def _function(self, node: exp.Anonymous) -> Expr:
        name = node.name
        if is_operator(name):
            raise BindError(
                f'function "{name}" does not exist',
                span=span_of(node),
                hint="it is an operator; write it between or before its operands",
            )
        if is_aggregate(name):
            raise BindError(
                f"aggregate {name.upper()} is not allowed here",
                span=span_of(node),
                hint="aggregates stand in SELECT and HAVING; a condition on one goes into HAVING",
            )
        distinct = next((a for a in node.expressions if isinstance(a, exp.Distinct)), None)
        if distinct is not None:
            raise BindError(
                f"DISTINCT has no meaning in {name}, which is not an aggregate",
                span=span_of(distinct) or span_of(node),
                hint="leave DISTINCT out",
            )
        if node.meta_get(SAYS_ALL):
            raise BindError(
                f"ALL has no meaning in {name}, which is not an aggregate",
                span=span_of(node),
                hint="leave ALL out",
            )
        defined = self.context.catalog.find_function(name)
        if defined is not None:
            return self._expanded(node, defined)
        return self._call(node, name, *node.expressions)

    def _expanded(self, node: exp.Anonymous, function: FunctionEntry) -> Expr:
        """The body of a function people defined, with its parameters replaced by the arguments."""
        self.context.uses.add(function_use(function.name))
        wanted = function.parameters
        signature = ", ".join(f"{p.name} {p.type}" for p in wanted)
        if len(node.expressions) != len(wanted):
            raise BindError(
                f"{function.name} takes {_arguments(len(wanted))}, not {len(node.expressions)}",
                span=span_of(node),
                hint=f"it is {function.name}({signature})",
            )
        columns = []
        for parameter, argument in zip(wanted, node.expressions, strict=True):
            value = self.bind(argument)
            if not converts_without_asking(value, parameter.type):
                raise BindError(
                    f'{function.name} wants {parameter.type} for "{parameter.name}", this is '
                    f"{value.type}",
                    span=span_of(argument),
                    hint=f"write CAST(… AS {parameter.type})",
                )
            converted = convert(value, parameter.type, span=span_of(argument))
            columns.append(ScopeColumn(None, None, parameter.name, converted))
        inner = ExpressionBinder(Scope(tuple(columns)), self.context)
        try:
            return cast(inner.bind(function.body), function.result.type)
        except BindError as error:
            # Places in the body are places in another text.
            raise BindError(
                f"in {function.name}: {error.message}", span=span_of(node), hint=error.hint
            ) from None
        except PlanError as error:
            raise PlanError(error.message, span=span_of(node), hint=error.hint) from None


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of one operator, from left to right."""
    kind, operands = type(node), []
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def aggregate_calls(node: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregate calls of an expression, with their FILTER, outside of subqueries."""
    if isinstance(node, exp.Filter):
        return [node]
    if isinstance(node, exp.Anonymous) and is_aggregate(node.name):
        return [node]
    if isinstance(node, exp.Query):
        return []
    return [call for child in node.iter_expressions() for call in aggregate_calls(child)]


_SUBQUERY_PLACES = "subqueries stand in SELECT, FROM, WHERE and HAVING"
_HINTS: dict[type[exp.Expr], str] = {
    exp.Interval: "an INTERVAL can only be added to or taken from a TIMESTAMP or DATE",
    exp.Window: OVER_HINT,
}


def _arguments(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _kind(node: exp.Expr) -> str:
    return "a function with OVER" if isinstance(node, exp.Window) else f'"{unparse(node)}"'


def _star(node: exp.Expr) -> BindError:
    return BindError(
        "* cannot stand here",
        span=span_of(node),
        hint="it stands in the SELECT list or in COUNT(*)",
    )
