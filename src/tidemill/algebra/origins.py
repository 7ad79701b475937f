"""What rows are made of, operator by operator, at one instant: ``lineage.py`` without time.

Law: what an operator makes of rows, without their origins, is what it makes of the bag in
``snapshot.py``. What the origins are is said in ``lineage.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.aggregates import aggregate
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Join,
    JoinKind,
    MaxUnion,
    Project,
    Rstream,
    SemiJoin,
    StrictDifference,
    Union,
)
from tidemill.algebra.snapshot import Bag, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.expr import Expr

__all__ = ["Made", "Origin", "apply", "combine", "is_true", "new_rows"]

Origin: TypeAlias = tuple[int, int]
"""The number of a leaf, and an element's id or the position of a relation's row."""

Made: TypeAlias = tuple[Row, frozenset[Origin]]
"""A copy of a row, and what it is made of."""

_Unary: TypeAlias = Filter | Project | Distinct | Aggregate | Rstream
_Binary: TypeAlias = (
    Join | SemiJoin | AntiJoin | Union | MaxUnion | Difference | StrictDifference | Intersect
)


def apply(plan: _Unary, rows: list[Made]) -> list[Made]:
    """What an operator with one input makes of the rows of an instant."""
    names = plan.input.schema.names
    match plan:
        case Rstream():
            return rows
        case Filter(_, predicate):
            return [made for made in rows if is_true(predicate, names, made[0])]
        case Project(_, columns):
            return [(_values([c.expr for c in columns], names, row), o) for row, o in rows]
        case Distinct():
            return _with_equals(Counter(dict.fromkeys((row for row, _ in rows), 1)), rows)
        case Aggregate(_, keys, _):
            groups: dict[Row, list[Made]] = {}
            for row, origins in rows:
                key = _values([k.expr for k in keys], names, row)
                groups.setdefault(key, []).append((row, origins))
            return [_aggregated(plan, key, group) for key, group in groups.items()]
        case _:
            assert_never(plan)


def _aggregated(plan: Aggregate, key: Row, group: list[Made]) -> Made:
    names = plan.input.schema.names
    members = [(dict(zip(names, row, strict=True)), 1) for row, _ in group]
    return (*key, *(aggregate(a.call, members) for a in plan.aggregates)), _all_origins(group)


def combine(plan: _Binary, left: list[Made], right: list[Made]) -> list[Made]:
    """What an operator with two inputs makes of the rows of an instant."""
    bags = Counter(row for row, _ in left), Counter(row for row, _ in right)
    match plan:
        case Union():
            return left + right
        case MaxUnion():
            return _with_equals(bags[0] | bags[1], left + right)
        case Intersect():
            return _with_equals(bags[0] & bags[1], left + right)
        case Difference():
            return new_rows(left, right)
        case StrictDifference():
            return _with_equals(Counter(row for row, _ in left if row not in bags[1]), left)
        case SemiJoin(_, _, condition, names):
            found = [(a, _partners(condition, names, a, right)) for a in left]
            return [(a[0], _all_origins([a, *partners])) for a, partners in found if partners]
        case AntiJoin(_, _, condition, names):
            return [a for a in left if not _partners(condition, names, a, right)]
        case Join():
            return _join(plan, left, right)
        case _:
            assert_never(plan)


def _join(plan: Join, left: list[Made], right: list[Made]) -> list[Made]:
    pairs = [(a, b) for a in left for b in _partners(plan.condition, plan.names, a, right)]
    made = [(a[0] + b[0], _all_origins([a, b])) for a, b in pairs]
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        nothing, paired = (None,) * len(plan.right.schema), {a[0] for a, _ in pairs}
        made += [(row + nothing, origins) for row, origins in left if row not in paired]
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        nothing, paired = (None,) * len(plan.left.schema), {b[0] for _, b in pairs}
        made += [(nothing + row, origins) for row, origins in right if row not in paired]
    return made


def _partners(condition: Expr, names: tuple[str, ...], one: Made, others: list[Made]) -> list[Made]:
    return [other for other in others if is_true(condition, names, one[0] + other[0])]


def new_rows(rows: list[Made], others: list[Made]) -> list[Made]:
    """The rows that are more often among the first, made of all their equals in both."""
    more = Counter(row for row, _ in rows) - Counter(row for row, _ in others)
    return _with_equals(more, rows + others)


def _with_equals(bag: Bag, rows: list[Made]) -> list[Made]:
    """Each row of a bag, made of all that is equal to it."""
    return [(row, _all_origins([m for m in rows if m[0] == row])) for row in bag.elements()]


def _all_origins(rows: Iterable[Made]) -> frozenset[Origin]:
    return frozenset(origin for _, origins in rows for origin in origins)


def _values(exprs: list[Expr], names: tuple[str, ...], row: Row) -> Row:
    values = dict(zip(names, row, strict=True))
    return tuple(evaluate(expr, values) for expr in exprs)


def is_true(predicate: Expr, names: tuple[str, ...], row: Row) -> bool:
    """Whether a predicate is true of a row, neither false nor NULL."""
    return evaluate(predicate, dict(zip(names, row, strict=True))) is True
