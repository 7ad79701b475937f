"""Walking and rebuilding plans: trees are rebuilt, never edited.

A plan may be a graph: one node object below several parents. All functions visit a shared node once
and keep it shared.
"""

from __future__ import annotations

from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, assert_never

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
    Rstream,
    SemiJoin,
    Source,
    StrictDifference,
    Union,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "children",
    "once_per_node",
    "share",
    "streams_of",
    "transform_up",
    "walk",
    "with_children",
]

T = TypeVar("T")

_INPUTS = frozenset({"input", "left", "right"})


def children(plan: Plan) -> tuple[Plan, ...]:
    """The inputs of the topmost operator, left first."""
    match plan:
        case Source() | Relation():
            return ()
        case Window() | Filter() | Project() | Distinct() | Aggregate():
            return (plan.input,)
        case Istream() | Dstream() | Rstream():
            return (plan.input,)
        case Join() | SemiJoin() | AntiJoin():
            return (plan.left, plan.right)
        case Union() | MaxUnion() | Difference() | StrictDifference() | Intersect():
            return (plan.left, plan.right)
        case _:
            assert_never(plan)


def with_children(plan: Plan, new: tuple[Plan, ...]) -> Plan:
    """The same operator above other inputs."""
    match plan:
        case Source() | Relation():
            return plan
        case Window(_, spec, span, internal, relation):
            return Window(new[0], spec, span, internal, relation)
        case Filter(_, predicate):
            return Filter(new[0], predicate)
        case Project(_, columns):
            return Project(new[0], columns)
        case Aggregate(_, keys, aggregates):
            return Aggregate(new[0], keys, aggregates)
        case Distinct() | Istream() | Dstream() | Rstream():
            return type(plan)(new[0])
        case Join(_, _, kind, condition, names):
            return Join(new[0], new[1], kind, condition, names)
        case SemiJoin(_, _, condition, names):
            return SemiJoin(new[0], new[1], condition, names)
        case AntiJoin(_, _, condition, names):
            return AntiJoin(new[0], new[1], condition, names)
        case Union() | MaxUnion() | Difference() | StrictDifference() | Intersect():
            return type(plan)(new[0], new[1])
        case _:
            assert_never(plan)


def walk(plan: Plan) -> Iterator[Plan]:
    """Every node of the plan once, inputs before the operators above them."""
    seen: set[int] = set()

    def visit(node: Plan) -> Iterator[Plan]:
        if id(node) in seen:
            return
        seen.add(id(node))
        for child in children(node):
            yield from visit(child)
        yield node

    yield from visit(plan)


def streams_of(plan: Plan) -> frozenset[str]:
    """The names of the streams that the plan reads."""
    return frozenset(node.name for node in walk(plan) if isinstance(node, Source))


def transform_up(plan: Plan, rewrite: Callable[[Plan], Plan | None]) -> Plan:
    """The plan rewritten from the leaves up; what did not change is the same object."""
    done: dict[int, Plan] = {}

    def visit(node: Plan) -> Plan:
        if id(node) in done:
            return done[id(node)]
        old = children(node)
        new = tuple(visit(child) for child in old)
        changed = any(a is not b for a, b in zip(old, new, strict=True))
        rebuilt = with_children(node, new) if changed else node
        done[id(node)] = rewrite(rebuilt) or rebuilt
        return done[id(node)]

    return visit(plan)


def share(plan: Plan, known: dict[tuple[object, ...], Plan] | None = None) -> Plan:
    """The same plan as a graph in which equal sub-plans are one object (K40, step 4).

    Args:
        plan: The plan.
        known: Parts of other plans; this one is made of them where it can be, and they grow by it.
    """
    first: dict[tuple[object, ...], Plan] = {} if known is None else known

    def interned(node: Plan) -> Plan:
        # The inputs are shared already, so they are equal if and only if they are the same.
        own = (getattr(node, f.name) for f in fields(node) if f.compare and f.name not in _INPUTS)
        key = (type(node), *own, *(id(child) for child in children(node)))
        return first.setdefault(key, node)

    return transform_up(plan, interned)


_MOST_KNOWN = 10_000


def once_per_node(fact: Callable[[Plan], T]) -> Callable[[Plan], T]:
    """A recursive function on plans that looks at each node once, however often it is shared.

    Answers are kept with their plans, since the optimizer asks for each part of a plan; they are
    forgotten together when there are many.
    """
    known: dict[int, tuple[Plan, T]] = {}
    depth = 0

    @wraps(fact)
    def answer(plan: Plan) -> T:
        nonlocal depth
        depth += 1
        try:
            # As long as a plan is kept, no other one can get its id.
            if id(plan) not in known:
                known[id(plan)] = plan, fact(plan)
            return known[id(plan)][1]
        finally:
            depth -= 1
            if depth == 0 and len(known) > _MOST_KNOWN:
                known.clear()

    return answer
