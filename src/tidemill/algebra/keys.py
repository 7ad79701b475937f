"""Keys: sets of columns no two rows of one snapshot agree on.

Law: for every key k of a plan and every instant t, the snapshot at t has no two rows, and no row
twice, with equal values in k. NULLs are equal here. The empty key says: at most one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.expr import Call, Column, conjuncts
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
    Source,
    StrictDifference,
    Union,
    Window,
)
from tidemill.algebra.tree import once_per_node

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Key", "keys", "least_key"]

Key: TypeAlias = frozenset[str]


@once_per_node
def keys(plan: Plan) -> frozenset[Key]:
    """The smallest keys that follow from the operators; there may be more."""
    return _smallest(_keys(plan))


def least_key(plan: Plan) -> Key | None:
    """The key of the fewest columns, the same one every time; ``None`` if no key is known."""
    return min(keys(plan), key=lambda key: (len(key), sorted(key)), default=None)


def _keys(plan: Plan) -> Iterable[Key]:
    match plan:
        case Source() | Relation() | Union():
            return ()
        case Window(_, RowWindow(rows=1, partition_by=partition_by)):
            return (frozenset(partition_by),)
        case Window():
            return ()
        case Aggregate():
            return (frozenset(key.name for key in plan.keys),)
        case Distinct(input_):
            return (*keys(input_), frozenset(plan.schema.names))
        case Project(input_):
            return _projected(plan, keys(input_))
        case Filter() | Istream() | Dstream() | Rstream():
            return keys(plan.input)
        case SemiJoin() | AntiJoin() | Difference() | StrictDifference():
            return keys(plan.left)
        case Intersect():
            # A row is in both inputs at most as often as in either; the names are the left ones.
            renamed = dict(zip(plan.right.schema.names, plan.left.schema.names, strict=True))
            return (*keys(plan.left), *(_renamed(key, renamed) for key in keys(plan.right)))
        case MaxUnion():
            return ()
        case Join():
            return _joined(plan)
        case _:
            assert_never(plan)


def _projected(plan: Project, inner: Iterable[Key]) -> Iterable[Key]:
    kept = {c.expr.name: c.name for c in plan.columns if isinstance(c.expr, Column)}
    return [_renamed(key, kept) for key in inner if key <= kept.keys()]


def _joined(plan: Join) -> Iterable[Key]:
    width = len(plan.left.schema)
    left_names = dict(zip(plan.left.schema.names, plan.names[:width], strict=True))
    right_names = dict(zip(plan.right.schema.names, plan.names[width:], strict=True))
    left = [_renamed(key, left_names) for key in keys(plan.left)]
    right = [_renamed(key, right_names) for key in keys(plan.right)]
    if plan.kind is not JoinKind.FULL:  # two lonely rows can both be all NULL in their keys
        yield from (a | b for a in left for b in right)
    if plan.kind in (JoinKind.INNER, JoinKind.LEFT) and _at_most_one(plan, right, right_names):
        yield from left
    if plan.kind in (JoinKind.INNER, JoinKind.RIGHT) and _at_most_one(plan, left, left_names):
        yield from right


def _at_most_one(plan: Join, side: list[Key], names: dict[str, str]) -> bool:
    """Whether each row of the other side finds at most one partner on this side."""
    equal: set[str] = set()
    for part in conjuncts(plan.condition):
        match part:
            case Call("=" | "is_not_distinct", (Column(a), Column(b))):
                if (a in names.values()) != (b in names.values()):
                    equal.add(a if a in names.values() else b)
    return any(key <= equal for key in side)


def _renamed(key: Key, names: dict[str, str]) -> Key:
    return frozenset(names[name] for name in key)


def _smallest(found: Iterable[Key]) -> frozenset[Key]:
    every = frozenset(found)
    return frozenset(key for key in every if not any(other < key for other in every))
