"""What filters say of the rows that leave a plan.

Laws: each of ``conditions(plan)`` is true of every row of every snapshot of the plan. So is each
condition that ``holds``; and one that a filter above the plan would be pushed to where it is said
already, or implied, does hold. The second keeps rules that add filters from adding them for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import (
    TRUE,
    Column,
    Expr,
    Literal,
    conjuncts,
    replace_columns,
    used_columns,
    walk_expr,
)
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Rstream,
    SemiJoin,
    StrictDifference,
    Union,
    Window,
)
from tidemill.algebra.tree import once_per_node
from tidemill.optimizer.logical.conjunctions import merged
from tidemill.optimizer.logical.folding import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["conditions", "holds"]

_MOST: Final = 16
_LARGEST: Final = 12
"""So many conditions are remembered, and so large ones: more would cost more than they save."""


@once_per_node
def conditions(plan: Plan) -> tuple[Expr, ...]:
    """Conditions on single columns that are true of every row."""
    return tuple(dict.fromkeys(_conditions(plan)))[:_MOST]


def _conditions(plan: Plan) -> Iterable[Expr]:
    match plan:
        case Filter(input_, predicate):
            return (*filter(_is_small, conjuncts(predicate)), *conditions(input_))
        case Project(input_, columns):
            names = {c.expr.name: c.name for c in columns if isinstance(c.expr, Column)}
            return _renamed(conditions(input_), names)
        case Aggregate(input_, keys, _):
            names = {key.expr.name: key.name for key in keys if isinstance(key.expr, Column)}
            return _renamed(conditions(input_), names)
        case Join(left, right, kind, _, names_):
            lefts = dict(zip(left.schema.names, names_, strict=False))
            rights = dict(zip(right.schema.names, names_[len(left.schema) :], strict=True))
            return (
                *(_renamed(conditions(left), lefts) if kind in _LEFT_IS_THERE else ()),
                *(_renamed(conditions(right), rights) if kind in _RIGHT_IS_THERE else ()),
            )
        case Window() | Distinct() | Istream() | Dstream() | Rstream():
            return conditions(plan.input)
        case SemiJoin() | AntiJoin() | Difference() | StrictDifference() | Intersect():
            return conditions(plan.left)
        case _:
            return ()


_LEFT_IS_THERE: Final = (JoinKind.INNER, JoinKind.LEFT)
_RIGHT_IS_THERE: Final = (JoinKind.INNER, JoinKind.RIGHT)


def _is_small(part: Expr) -> bool:
    return len(used_columns(part)) == 1 and sum(1 for _ in walk_expr(part)) <= _LARGEST


def _renamed(parts: Iterable[Expr], names: Mapping[str, str]) -> list[Expr]:
    return [
        replace_columns(part, lambda c: Column(names[c.name], c.type))
        for part in parts
        if used_columns(part) <= names.keys()
    ]


def holds(plan: Plan, condition: Expr) -> bool:
    """Whether it is known that a condition is true of every row, from what filters say.

    It goes the way that a filter above the plan would go.
    """
    condition = folded(condition)
    if isinstance(condition, Literal):
        return condition == TRUE
    read = used_columns(condition)
    match plan:
        case Filter(input_, predicate):
            said = conjuncts(predicate)
            return merged((*said, condition)) == merged(said) or holds(input_, condition)
        case Project(input_, columns):
            return _holds_of(input_, condition, {c.name: c.expr for c in columns})
        case Aggregate(input_, keys, _):
            meaning = {key.name: key.expr for key in keys}
            return read <= meaning.keys() and _holds_of(input_, condition, meaning)
        case Join(left, right, kind, _, names):
            return (kind in _LEFT_IS_THERE and _holds_on(left, condition, names)) or (
                kind in _RIGHT_IS_THERE and _holds_on(right, condition, names[len(left.schema) :])
            )
        case Window() | Distinct() | Istream() | Dstream() | Rstream():
            return holds(plan.input, condition)
        case SemiJoin() | AntiJoin() | Difference() | StrictDifference() | Intersect():
            return holds(plan.left, condition)
        case Union(left, right) | MaxUnion(left, right):
            names = left.schema.names
            return holds(left, condition) and _holds_on(right, condition, names)
        case _:
            return False


def _holds_of(plan: Plan, condition: Expr, meaning: Mapping[str, Expr]) -> bool:
    return holds(plan, replace_columns(condition, lambda column: meaning[column.name]))


def _holds_on(plan: Plan, condition: Expr, names: tuple[str, ...]) -> bool:
    """Whether a condition holds of an input whose columns have these names above."""
    own = dict(zip(names, plan.schema.names, strict=False))
    if not used_columns(condition) <= own.keys():
        return False
    return holds(plan, replace_columns(condition, lambda c: Column(own[c.name], c.type)))
