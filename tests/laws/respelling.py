"""Other spellings of expressions and plans: other words, other orders, the same meaning.

What may differ between two texts of one query: the order of the parts of conditions and how they
are put, the order of FROM, of UNION and of GROUP BY, and all names but those of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tidemill.algebra.expr import Call, Case, Cast, Column, Expr, Literal, Named, replace_columns
from tidemill.algebra.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    Project,
    SemiJoin,
    Union,
    Window,
)
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

__all__ = ["exprs_respelled", "plans_respelled"]

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SAME_TURNED = ("=", "<>", "is_distinct", "is_not_distinct", "+", "and", "or")
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_OTHER_KIND = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}


@st.composite
def exprs_respelled(draw: DrawFn, expr: Expr) -> Expr:
    """The expression in other words."""
    return _expr(draw, expr)


def _expr(draw: DrawFn, expr: Expr) -> Expr:
    match expr:
        case Column() | Literal():
            return expr
        case Cast(input_, type_):
            return Cast(_expr(draw, input_), type_)
        case Case(branches, otherwise, type_):
            new = tuple((_expr(draw, c), _expr(draw, v)) for c, v in branches)
            return Case(new, _expr(draw, otherwise), type_)
        case Call(function, arguments, type_):
            return _call(draw, function, [_expr(draw, one) for one in arguments], expr)


def _call(draw: DrawFn, function: str, arguments: list[Expr], expr: Call) -> Expr:
    how = draw(st.integers(0, 3))
    if function in _TURNED and how == 1:
        return Call(_TURNED[function], tuple(reversed(arguments)), expr.type)
    if function in _SAME_TURNED and how == 1:
        return Call(function, tuple(reversed(arguments)), expr.type)
    if function in ("and", "or") and how == 2:
        other = "or" if function == "and" else "and"
        inner = Call(other, tuple(Call("not", (one,), BOOLEAN) for one in arguments), BOOLEAN)
        return Call("not", (inner,), BOOLEAN)
    if function in ("and", "or") and how == 3:
        return Call(function, (Call(function, tuple(arguments), BOOLEAN), arguments[0]), BOOLEAN)
    if function in _NEGATED and how == 2:
        return Call("not", (Call(_NEGATED[function], tuple(arguments), BOOLEAN),), BOOLEAN)
    if function == "in" and how == 1:
        items = draw(st.permutations(arguments[1:]))
        return Call("in", (arguments[0], *items), expr.type)
    return Call(function, tuple(arguments), expr.type)


@st.composite
def plans_respelled(draw: DrawFn, plan: Plan) -> Plan:
    """A plan with a project on top, in other words; the project's names stay."""
    return _Speller(draw).named(plan)


class _Speller:
    """Respells a plan from the leaves up; each part with the new names of its columns."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw
        self._fresh = 0

    def named(self, plan: Plan) -> Plan:
        """A part whose columns keep their order and their names."""
        made, new = self._plan(plan)
        types = {field.name: field.type for field in made.schema}
        columns = (Named(f.name, Column(new[f.name], types[new[f.name]])) for f in plan.schema)
        return Project(made, tuple(columns))

    def _name(self, name: str) -> str:
        self._fresh += 1
        return f"n{self._fresh}" if self._draw(st.booleans()) else f"{name}.{self._fresh}"

    def _expr(self, expr: Expr, new: Mapping[str, str]) -> Expr:
        renamed = replace_columns(expr, lambda column: Column(new[column.name], column.type))
        return self._draw(exprs_respelled(renamed))

    def _plan(self, plan: Plan) -> tuple[Plan, Mapping[str, str]]:
        match plan:
            case Filter(input_, predicate):
                below, new = self._plan(input_)
                return Filter(below, self._expr(predicate, new)), new
            case Distinct(input_):
                below, new = self._plan(input_)
                return Distinct(below), new
            case Window(input_, spec) if input_.schema.names:
                made = Window(self.named(input_), spec)
                return made, {name: name for name in plan.schema.names}
            case Project(input_, columns):
                below, old = self._plan(input_)
                new = {column.name: self._name(column.name) for column in columns}
                named = (Named(new[c.name], self._expr(c.expr, old)) for c in columns)
                return Project(below, tuple(named)), new
            case Aggregate():
                return self._aggregate(plan)
            case Join():
                return self._join(plan)
            case SemiJoin(left, right, condition, names):
                (one, lefts), (other, rights) = self._plan(left), self._plan(right)
                pairs = [*zip(names, (lefts[n] for n in left.schema.names), strict=False)]
                own = {name: self._name(name) for name in names}
                by_left = {now: own[was] for was, now in pairs}
                by_right = {
                    rights[n]: own[was]
                    for was, n in zip(names[len(pairs) :], right.schema.names, strict=True)
                }
                all_names = (
                    *(by_left[n] for n in one.schema.names),
                    *(by_right[n] for n in other.schema.names),
                )
                return SemiJoin(one, other, self._expr(condition, own), all_names), lefts
            case Union(left, right):
                sides = self._draw(st.permutations([left, right]))
                both = Union(*(self.named(side) for side in sides))
                return both, dict(zip(plan.schema.names, both.schema.names, strict=True))
            case _:
                return plan, {name: name for name in plan.schema.names}

    def _aggregate(self, plan: Aggregate) -> tuple[Plan, Mapping[str, str]]:
        below, old = self._plan(plan.input)
        new = {name: self._name(name) for name in plan.schema.names}
        keys = [Named(new[key.name], self._expr(key.expr, old)) for key in plan.keys]
        values = []
        for one in plan.aggregates:
            call = one.call
            parts = [
                None if p is None else self._expr(p, old) for p in (call.argument, call.condition)
            ]
            again = type(call)(call.function, parts[0], call.type, call.distinct, parts[1])
            values.append(NamedAggregate(new[one.name], again))
        return Aggregate(below, tuple(self._draw(st.permutations(keys))), tuple(values)), new

    def _join(self, plan: Join) -> tuple[Plan, Mapping[str, str]]:
        (left, lefts), (right, rights) = self._plan(plan.left), self._plan(plan.right)
        own = {name: self._name(name) for name in plan.names}
        width = len(plan.left.schema)
        by_left = dict(zip((lefts[n] for n in plan.left.schema.names), plan.names, strict=False))
        by_right = dict(
            zip((rights[n] for n in plan.right.schema.names), plan.names[width:], strict=True)
        )
        of_left = tuple(own[by_left[n]] for n in left.schema.names)
        of_right = tuple(own[by_right[n]] for n in right.schema.names)
        condition = self._expr(plan.condition, own)
        if self._draw(st.booleans()):
            kind = _OTHER_KIND.get(plan.kind, plan.kind)
            return Join(right, left, kind, condition, (*of_right, *of_left)), own
        return Join(left, right, plan.kind, condition, (*of_left, *of_right)), own
