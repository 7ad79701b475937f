"""Push an aggregate below a join: eager aggregation (K43).

    Aggregate sum(v) by k, y         Project k, y, sum(v)
      Join on k = l             ->     Join on k = l
        left (k, v)                      Aggregate sum(v) by k
        right (l, y)                       left (k, v)
                                         right (l, y)

    Aggregate count(v) by y          Aggregate sum(count(v)) by y
      Join on k = l             ->     Join on k = l
        left (k, v)                      Aggregate count(v) by k
        right (l, y)                       left (k, v)
                                         right (l, y)

Condition: the join is inner, the aggregates read one side, and each key reads one side. This side
is grouped by its own keys and by the columns that the join's condition reads.

- *At once*: each group of the answer is made of one of these groups and of one row of the other
  side. So the keys determine, by the equalities of the condition, all columns of this side that the
  condition reads, and a key of the other side that holds at every instant. If further copies of a
  row change nothing (``duplicates.py``), the other side is made distinct first, where that gives it
  such a key.
- *In two steps*, elsewhere: counts are added up, and of extremes the extreme is taken. Sums are
  not: a part of a sum may be too large for its type where the sum is not, and sums of DOUBLE are
  rounded once.

Equal because rows of one group below meet the same partners, all of them: the condition and the
keys do not tell them apart. With one partner their aggregate is that of the answer's group; with
several, or if several groups meet, each partner brings the count of its pairs, and an extreme of
extremes is that of all.

An aggregate sends its value whenever it changes, so it may send more rows into the join than come
out of the side. It goes by cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import Aggregate, Join, JoinKind, NamedAggregate, Project
from tidemill.optimizer.logical.eager import eager_aggregate, named_expr, with_exprs
from tidemill.optimizer.logical.predicates import substituted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_aggregate_below_join"]


def push_aggregate_below_join(plan: Plan, context: Context) -> Iterator[Plan]:
    """The join above the aggregate of one side."""
    whole = _directly_above(plan, context)
    if whole is None:
        return
    for is_left in (True, False):
        eager = eager_aggregate(whole, is_left=is_left)
        pushed = None if eager is None else eager.at_once() or eager.in_two_steps()
        if pushed is not None:
            yield pushed


def _directly_above(plan: Plan, context: Context) -> Aggregate | None:
    """The aggregate directly above an inner join, a project between them being a part of it."""
    match plan:
        case Aggregate(Join(kind=JoinKind.INNER)):
            return plan
        case Aggregate(Project(Join(kind=JoinKind.INNER) as join, columns), keys, aggregates):
            meaning = {column.name: column.expr for column in columns}
        case _:
            return None
    is_too_large = False

    def meant(expr: Expr) -> Expr:
        nonlocal is_too_large
        found = substituted(expr, meaning, context)
        is_too_large |= found is None
        return found or expr

    by = tuple(named_expr(key, meant) for key in keys)
    made = tuple(NamedAggregate(a.name, with_exprs(a.call, meant)) for a in aggregates)
    return None if is_too_large else Aggregate(join, by, made)
