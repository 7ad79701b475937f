"""Facts about a plan's stream that its operators imply: reducible, chronon, end-ordered.

The rules are Table 12.1 of Krämer (KB05, KB07), with the derived operators added.
"""

from __future__ import annotations

from typing import assert_never

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
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import once_per_node

__all__ = ["is_chronon", "is_constant", "is_end_ordered", "is_snapshot_reducible"]


def is_snapshot_reducible(plan: Plan) -> bool:
    """Whether the topmost operator looks at its inputs' snapshots of one instant only (K41)."""
    match plan:
        case Window(_, spec):
            return spec == NOW
        case Istream() | Dstream() | Rstream():
            # Rstream keeps every snapshot but makes each instant a new element, as a window does.
            return False
        case _:
            return True


@once_per_node
def is_constant(plan: Plan) -> bool:
    """Whether every snapshot is the same bag, known before any stream element arrives (KB35)."""
    match plan:
        case Relation(validity=validity):
            return validity is None
        case Source() | Window() | Istream() | Dstream() | Rstream():
            return False
        case Filter() | Project() | Distinct() | Aggregate():
            return is_constant(plan.input)
        case _:
            return is_constant(plan.left) and is_constant(plan.right)


@once_per_node
def is_chronon(plan: Plan) -> bool:
    """Whether every element is valid for exactly one instant, so that a window needs no split."""
    match plan:
        case Source() | Istream() | Dstream() | Rstream():
            return True
        case Relation():
            return False
        case Window(input_, spec):
            return spec == NOW and is_chronon(input_)
        case Filter() | Project() | Distinct() | Aggregate():
            return is_chronon(plan.input)
        case Union() | MaxUnion() | Join(kind=JoinKind.FULL):
            return is_chronon(plan.left) and is_chronon(plan.right)
        case Intersect() | Join(kind=JoinKind.INNER):
            return is_chronon(plan.left) or is_chronon(plan.right)
        case Join(kind=JoinKind.RIGHT):
            return is_chronon(plan.right)
        case Join() | SemiJoin() | AntiJoin() | Difference() | StrictDifference():
            return is_chronon(plan.left)
        case _:
            assert_never(plan)


@once_per_node
def is_end_ordered(plan: Plan) -> bool:
    """Whether elements in the order of their starts are in the order of their ends too."""
    match plan:
        case Window(_, TimeWindow() | Unbounded()):
            return True
        case Window(_, RowWindow(partition_by=by) | SessionWindow(partition_by=by)):
            return not by
        case Relation(validity=validity):
            return validity is None
        case Filter() | Project():
            return is_end_ordered(plan.input)
        case Aggregate(keys=()):
            return True
        case _:
            return is_chronon(plan)
