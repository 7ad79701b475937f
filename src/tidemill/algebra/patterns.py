"""Update patterns: how results of a plan expire (G-15, G-21).

    MONOTONIC  never
    WEAKEST    each a fixed time after it appeared, first in first out
    WEAK       at a time that is known when it appears
    STRICT     at a time that depends on input still to come

An edge up to WEAK can carry intervals; a STRICT one may carry signs. The pattern belongs to the
plan, not to the query: a rewrite can change it.

Three refinements of the printed rules, all by the definitions of G-15: what lives for one instant
only is WEAKEST whatever made it, since its end is known; a union of windows of different length is
WEAK, since it is not first in first out; and so is a window whose slide does not divide its size,
since of two rows that appear together one may live longer.

Law: a plan that is not constant is WEAKEST if and only if all its rows have one ``lifetime``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import assert_never

from tidemill.algebra.annotations import is_chronon, is_constant
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

__all__ = ["UpdatePattern", "lifetime", "update_pattern"]


class UpdatePattern(IntEnum):
    """The classes, from the least to the most demanding."""

    MONOTONIC = 0
    WEAKEST = 1
    WEAK = 2
    STRICT = 3


@once_per_node
def update_pattern(plan: Plan) -> UpdatePattern:
    """How the rows of the plan's answer expire."""
    if is_chronon(plan):
        return UpdatePattern.WEAKEST
    if is_constant(plan):
        return UpdatePattern.MONOTONIC
    match plan:
        case Source() | Istream() | Dstream() | Rstream():
            return UpdatePattern.WEAKEST
        case Relation():
            return UpdatePattern.WEAK
        case Window(_, spec):
            match spec:
                case Unbounded():
                    return UpdatePattern.MONOTONIC
                case TimeWindow():
                    fixed = lifetime(plan) is not None
                    return UpdatePattern.WEAKEST if fixed else UpdatePattern.WEAK
                case RowWindow() | SessionWindow():
                    return UpdatePattern.STRICT
                case _:
                    assert_never(spec)
        case Filter() | Project():
            return update_pattern(plan.input)
        case Distinct():
            return _weak(update_pattern(plan.input))
        case Union():
            return _merged(plan)
        case Join(kind=JoinKind.INNER) | SemiJoin() | AntiJoin() | Join(kind=JoinKind.LEFT) if (
            is_constant(plan.right)
        ):
            return update_pattern(plan.left)
        case Join(kind=JoinKind.INNER) | Join(kind=JoinKind.RIGHT) if is_constant(plan.left):
            return update_pattern(plan.right)
        case Join(kind=JoinKind.INNER) | SemiJoin() | Intersect() | MaxUnion():
            return _weak(update_pattern(plan.left), update_pattern(plan.right))
        case Join() | AntiJoin() | Difference() | StrictDifference() | Aggregate():
            return UpdatePattern.STRICT
        case _:
            assert_never(plan)


@once_per_node
def lifetime(plan: Plan) -> int | None:
    """How many microseconds every row of the answer lives, if that is the same for all."""
    if is_chronon(plan):
        return 1
    match plan:
        case Window(_, TimeWindow(size, slide)):
            return size if size % slide == 0 else None
        case Filter() | Project():
            return lifetime(plan.input)
        case Union():
            left, right = lifetime(plan.left), lifetime(plan.right)
            return left if left == right else None
        case Join(kind=JoinKind.INNER) | SemiJoin() | AntiJoin() | Join(kind=JoinKind.LEFT) if (
            is_constant(plan.right)
        ):
            return lifetime(plan.left)
        case Join(kind=JoinKind.INNER) | Join(kind=JoinKind.RIGHT) if is_constant(plan.left):
            return lifetime(plan.right)
        case _:
            return None


def _weak(*inputs: UpdatePattern) -> UpdatePattern:
    strongest = max(inputs)
    if strongest is UpdatePattern.MONOTONIC:
        return UpdatePattern.MONOTONIC
    return max(strongest, UpdatePattern.WEAK)


def _merged(plan: Union) -> UpdatePattern:
    left, right = update_pattern(plan.left), update_pattern(plan.right)
    if max(left, right) is UpdatePattern.WEAKEST and (
        left is not right or lifetime(plan.left) != lifetime(plan.right)
    ):
        return UpdatePattern.WEAK
    return max(left, right)
