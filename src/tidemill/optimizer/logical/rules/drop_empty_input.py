"""Drop an input that has no rows, where the other one gives the answer alone.

    Union               ->     second (b AS a)
      Filter FALSE
        first (a)
      second (b)

Condition: one of the inputs is empty (``empty.py``), and the operator keeps the rows of the other:

    union, max-union, full join               either input is empty
    both differences, anti-join, left join    the right one
    right join                                the left one

Equal because these operators give each row of the other input as often as it is there, if there is
nothing on this side; outer joins fill it with NULLs. An input that is a registered stream gets a
window of one instant above it: a ROWS window above would count rows of one instant in the order of
their ids otherwise, and not of their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Expr, Literal, Named
from tidemill.algebra.plan import (
    AntiJoin,
    Difference,
    Join,
    JoinKind,
    MaxUnion,
    Project,
    StrictDifference,
    Union,
)
from tidemill.optimizer.logical.empty import as_derived, is_empty

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_empty_input"]

_LEFT_STAYS = (JoinKind.LEFT, JoinKind.FULL)
_RIGHT_STAYS = (JoinKind.RIGHT, JoinKind.FULL)


def drop_empty_input(plan: Plan, _context: Context) -> Plan | None:
    """What the other input gives."""
    match plan:
        case Join(left, right, kind, _, names) if kind in _LEFT_STAYS and is_empty(right):
            return _filled(plan, left, names[: len(left.schema)])
        case Join(left, right, kind, _, names) if kind in _RIGHT_STAYS and is_empty(left):
            return _filled(plan, right, names[len(left.schema) :])
        case Union(left, right) | MaxUnion(left, right) if is_empty(left):
            return _filled(plan, right, plan.schema.names)
        case Union(left, right) | MaxUnion(left, right) if is_empty(right):
            return as_derived(left)
        case Difference(left, right) | StrictDifference(left, right) if is_empty(right):
            return as_derived(left)
        case AntiJoin(left, right) if is_empty(right):
            return as_derived(left)
        case _:
            return None


def _filled(plan: Plan, kept: Plan, names: tuple[str, ...]) -> Plan:
    """The rows of an input with the columns of the plan: some of its own, the others NULL."""
    own: dict[str, Expr] = {
        name: Column(field.name, field.type) for name, field in zip(names, kept.schema, strict=True)
    }
    return Project(
        as_derived(kept),
        tuple(Named(f.name, own.get(f.name, Literal(None, f.type))) for f in plan.schema),
    )
