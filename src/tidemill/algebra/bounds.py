"""Which queries can run for ever in bounded memory (K50, and its relaxation for aggregates).

A plan *grows* when its snapshots gain rows and never lose them: an UNBOUNDED window does. Operators
that must remember what they saw cannot stand above it, except where what they remember stays small:
an aggregate that needs one value a group, or a join with a relation that never changes.

A SESSION window does not grow: its rows leave after a pause, and how long they wait for one depends
on the data, as the number of rows in a time window does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tidemill.algebra.annotations import is_constant
from tidemill.algebra.plan import (
    NOW,
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
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    Source,
    StrictDifference,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import children, once_per_node, walk

__all__ = ["UnboundedState", "endless_input", "growing_window", "unbounded_state"]

HOLISTIC = frozenset({"median"})


@dataclass(frozen=True, slots=True)
class UnboundedState:
    """An operator that would have to remember every row, and the window that makes it so."""

    operator: Plan
    window: Window


def unbounded_state(plan: Plan) -> UnboundedState | None:
    """The first operator, from the leaves up, whose state could not be bounded."""
    for node in walk(plan):
        if not _remembers(node):
            continue
        for child in children(node):
            if (window := growing_window(child)) is not None:
                return UnboundedState(node, window)
    return None


@once_per_node
def growing_window(plan: Plan) -> Window | None:
    """The window that lets the plan's snapshots grow without bound, if there is one."""
    match plan:
        case Source() | Relation() | Aggregate() | Istream() | Dstream():
            return None
        case Window(_, Unbounded()):
            return plan
        case Window(_, RowWindow()):
            return None
        case Window() | Filter() | Project() | Distinct() | Rstream():
            return growing_window(plan.input)
        case SemiJoin() | AntiJoin() | Difference() | StrictDifference():
            return growing_window(plan.left)
        case Join() | Union() | MaxUnion() | Intersect():
            return growing_window(plan.left) or growing_window(plan.right)
        case _:
            assert_never(plan)


def endless_input(plan: Plan) -> tuple[Window, Plan] | None:
    """A window over rows that may never end, and what makes them so.

    Every instant of such a row is an element of its own, so at the end of the streams there would
    be elements without end.
    """
    for node in walk(plan):
        if not isinstance(node, Window) or node.spec == NOW:
            continue
        if (cause := _lasting(node.input)) is not None:
            return node, cause
    return None


@once_per_node
def _lasting(plan: Plan) -> Plan | None:
    """What lets rows of the plan last for ever, if something does."""
    match plan:
        case Source() | Istream() | Dstream():
            return None
        case Relation() | Window(_, Unbounded() | RowWindow()):
            return plan
        case Window(input_, spec):
            return _lasting(input_) if spec == NOW else None
        case Filter() | Project() | Distinct() | Aggregate() | Rstream():
            return _lasting(plan.input)
        case Join(kind=JoinKind.INNER) | SemiJoin() | Intersect():
            return _lasting(plan.left) and _lasting(plan.right)
        case Join(kind=JoinKind.RIGHT):
            return _lasting(plan.right)
        case Join(kind=JoinKind.FULL) | Union() | MaxUnion():
            return _lasting(plan.left) or _lasting(plan.right)
        case Join() | AntiJoin() | Difference() | StrictDifference():
            return _lasting(plan.left)
        case _:
            assert_never(plan)


def _remembers(plan: Plan) -> bool:
    """Whether the operator keeps the rows of a growing input."""
    match plan:
        case Source() | Relation() | Filter() | Project() | Union() | Istream() | Dstream():
            return False
        case Aggregate(_, _, aggregates):
            return any(a.call.distinct or a.call.function in HOLISTIC for a in aggregates)
        case Join() | SemiJoin() | AntiJoin():
            return not (is_constant(plan.left) or is_constant(plan.right))
        case Window() | Distinct() | Rstream():
            return True
        case MaxUnion() | Difference() | StrictDifference() | Intersect():
            return True
        case _:
            assert_never(plan)
