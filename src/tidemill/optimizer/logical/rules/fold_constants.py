"""Replace what can be computed now by its value.

    Filter a > 1 + 1 AND TRUE   ->   Filter a > 2
      input                            input

Condition: none, for every operator with expressions:

    f(constants)                    its value, by the reference
    f(x, NULL)                      NULL, if f is strict
    x AND TRUE, x OR FALSE          x
    x AND FALSE                     FALSE
    x OR TRUE                       TRUE
    CASE WHEN FALSE or NULL THEN …  without the branch
    CASE WHEN TRUE THEN x …         ELSE x, without the branches behind

Equal because each replacement has the value of what it replaces in three-valued logic, for every x,
NULL too, and the same type; expressions have no effects and raise no errors.
``x AND NULL`` stays: it is FALSE or NULL. Texts that are longer than ``LONGEST`` stay calls, and so
do patterns: the reference may take for ever to find them. The engine computes them once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Named
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    NamedAggregate,
    Project,
    SemiJoin,
)
from tidemill.optimizer.logical.folding import folded
from tidemill.optimizer.logical.predicates import with_condition

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["fold_constants"]


def fold_constants(plan: Plan, _context: Context) -> Plan | None:
    """The operator with its expressions simplified."""
    new: Plan
    match plan:
        case Filter(source, predicate):
            new = Filter(source, folded(predicate))
        case Project(source, columns):
            new = Project(source, tuple(Named(c.name, folded(c.expr)) for c in columns))
        case Aggregate(source, keys, aggregates):
            by = tuple(Named(key.name, folded(key.expr)) for key in keys)
            new = Aggregate(source, by, tuple(map(_folded_aggregate, aggregates)))
        case Join() | SemiJoin() | AntiJoin():
            new = with_condition(plan, plan.left, plan.right, folded(plan.condition))
        case _:
            return None
    return None if new == plan else new


def _folded_aggregate(aggregate: NamedAggregate) -> NamedAggregate:
    call = aggregate.call
    parts = (call.argument, call.condition)
    argument, condition = (None if part is None else folded(part) for part in parts)
    return NamedAggregate(aggregate.name, replace(call, argument=argument, condition=condition))
