"""Prune the columns that nothing above needs, down to the sources.

    Aggregate max(price)               Aggregate max(price)
      Window range=10m            ->     Window range=10m
        Source bid (item, price)           Project price
                                             Source bid (item, price)

It goes from the answer down to the sources: each operator asks its inputs for the columns it needs,
a shared one for all that somebody needs. Projects and aggregates lose columns; where another
operator would carry a column in vain, a project is put above it.

An input is asked for all its columns where the number of equal rows matters, since rows that differ
could become equal: below Distinct, the set operations other than Union, Istream and Dstream. And
below a ROWS window, unless its input carries ids: elsewhere it counts rows of one instant in the
order of their values, and a column that nothing reads is a part of that order. Keys of an
aggregate and the columns a window is partitioned by are always needed.

Everything else treats the copies of a row alike, so that rows may lose columns before it: it maps,
adds up or pairs them one by one. An operator keeps one column even if none is needed, so that there
is something to count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidemill.algebra.expr import Column, Named, used_columns
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
    Union,
    Window,
)
from tidemill.algebra.tree import children, walk, with_children
from tidemill.optimizer.physical.order import carries_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.logical.context import Context

__all__ = ["prune_columns"]

Names: TypeAlias = frozenset[str]


def prune_columns(plan: Plan, _context: Context) -> Plan | None:
    """The whole plan without columns that nothing needs; its answer has all it had."""
    needed = _needed(plan)
    done: dict[int, Plan] = {}
    for node in walk(plan):
        inputs = tuple(done[id(child)] for child in children(node))
        done[id(node)] = _narrowed(node, inputs, needed[id(node)])
    pruned = done[id(plan)]
    return None if pruned is plan else pruned


def _needed(plan: Plan) -> dict[int, Names]:
    """For each node, by its id, the columns that something above it needs; at least one."""
    needed = {id(plan): frozenset(plan.schema.names)}
    for node in reversed(list(walk(plan))):
        own = needed[id(node)] = needed[id(node)] or frozenset(node.schema.names[:1])
        for child, asked in zip(children(node), _asked(node, own), strict=True):
            needed[id(child)] = needed.get(id(child), frozenset()) | asked
    return needed


def _asked(plan: Plan, needed: Names) -> tuple[Names, ...]:
    """The columns an operator asks of each of its inputs."""
    match plan:
        case Source() | Relation():
            return ()
        case Filter(_, predicate):
            return (needed | used_columns(predicate),)
        case Project(_, columns):
            return (_used(column for column in columns if column.name in needed),)
        case Aggregate():
            return (_aggregated(plan, needed),)
        case Window(input_, RowWindow(partition_by=groups, unless=unless)):
            seen = frozenset[str]() if unless is None else used_columns(unless)
            return (needed | {*groups} | seen,) if carries_ids(input_) else (_all(input_),)
        case Window(_, SessionWindow(partition_by=groups)):
            return (needed | {*groups},)
        case Window() | Rstream():
            return (needed,)
        case Distinct(input_) | Istream(input_) | Dstream(input_):
            return (_all(input_),)
        case Join(left, right, _, condition):
            return _sides(plan, needed | used_columns(condition))
        case SemiJoin(left, right, condition) | AntiJoin(left, right, condition):
            names = dict(zip(left.schema.names, plan.names, strict=False))
            return _sides(plan, used_columns(condition) | {names[name] for name in needed})
        case Union(left, right):
            names = dict(zip(left.schema.names, right.schema.names, strict=True))
            return needed, frozenset(names[name] for name in needed)
        case MaxUnion() | Difference() | StrictDifference() | Intersect():
            return _all(plan.left), _all(plan.right)
        case _:
            assert_never(plan)


def _all(plan: Plan) -> Names:
    return frozenset(plan.schema.names)


def _used(columns: Iterable[Named]) -> Names:
    return frozenset(name for column in columns for name in used_columns(column.expr))


def _aggregated(plan: Aggregate, needed: Names) -> Names:
    calls = [a.call for a in plan.aggregates if a.name in needed]
    exprs = [expr for call in calls for expr in (call.argument, call.condition) if expr is not None]
    return _used(plan.keys).union(*map(used_columns, exprs))


def _sides(plan: Join | SemiJoin | AntiJoin, needed: Names) -> tuple[Names, Names]:
    """What is needed of both inputs of a join, in their own names."""
    width = len(plan.left.schema)
    left = zip(plan.left.schema.names, plan.names[:width], strict=True)
    right = zip(plan.right.schema.names, plan.names[width:], strict=True)
    return (
        frozenset(inner for inner, outer in left if outer in needed),
        frozenset(inner for inner, outer in right if outer in needed),
    )


def _narrowed(plan: Plan, inputs: tuple[Plan, ...], needed: Names) -> Plan:
    """The operator above inputs that have lost columns; it has what is needed, in order."""
    match plan:
        case Project(input_, columns):
            kept = tuple(column for column in columns if column.name in needed)
            same = inputs[0] is input_ and len(kept) == len(columns)
            return plan if same else Project(inputs[0], kept)
        case Filter(input_, predicate):
            # No project below a filter: one above it can drop what the predicate reads as well.
            return plan if inputs[0] is input_ else Filter(inputs[0], predicate)
        case _:
            pass
    asked = _asked(plan, needed)
    inputs = tuple(_picked(i, names) for i, names in zip(inputs, asked, strict=True))
    match plan:
        case Aggregate(_, keys, aggregates):
            made = tuple(a for a in aggregates if a.name in needed)
            same = inputs[0] is plan.input and len(made) == len(aggregates)
            return plan if same else Aggregate(inputs[0], keys, made)
        case Join() | SemiJoin() | AntiJoin():
            return _joined(plan, *inputs)
        case _:
            same = all(a is b for a, b in zip(inputs, children(plan), strict=True))
            return plan if same else with_children(plan, inputs)


def _picked(plan: Plan, names: Names) -> Plan:
    """The columns with these names, or the first if there are none."""
    kept = [field for field in plan.schema if field.name in names] or plan.schema.fields[:1]
    if len(kept) == len(plan.schema):
        return plan
    return Project(plan, tuple(Named(f.name, Column(f.name, f.type)) for f in kept))


def _joined(plan: Join | SemiJoin | AntiJoin, left: Plan, right: Plan) -> Plan:
    if left is plan.left and right is plan.right:
        return plan
    width = len(plan.left.schema)
    names = (
        *_kept_names(plan.left, left, plan.names[:width]),
        *_kept_names(plan.right, right, plan.names[width:]),
    )
    if isinstance(plan, Join):
        return Join(left, right, plan.kind, plan.condition, names)
    return type(plan)(left, right, plan.condition, names)


def _kept_names(old: Plan, new: Plan, names: tuple[str, ...]) -> tuple[str, ...]:
    outer = dict(zip(old.schema.names, names, strict=True))
    return tuple(outer[name] for name in new.schema.names)
