"""The canonical order of plans: by what they read, then by what they look like.

Constants are looked at only where plans differ in nothing else.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from tidemill.algebra.explain import explain
from tidemill.algebra.marked import ROW, is_marked
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    Project,
    Relation,
    RowWindow,
    SemiJoin,
    SessionWindow,
    Source,
    Window,
)
from tidemill.algebra.tree import children, share
from tidemill.optimizer.logical.canonical_names import aggregate_shape
from tidemill.optimizer.logical.spelling import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan

__all__ = ["Places"]


class Places:
    """Where plans stand in an order; each part is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, tuple[str, str]]] = {}  # a kept plan keeps its id
        self._parts: dict[tuple[object, ...], Plan] = {}

    def compare(self, one: Plan, other: Plan) -> int:
        """Less than 0 if a plan comes before another one, 0 if they are equal."""
        first, second = self._place(one), self._place(other)
        if first == second:
            if share(one, self._parts) is share(other, self._parts):
                return 0
            first, second = ("", explain(one)), ("", explain(other))
        return -1 if first < second else int(first > second)

    def _place(self, plan: Plan) -> tuple[str, str]:
        """The first name that a plan reads, and a hash of what it looks like."""
        known = self._known.get(id(plan))
        if known is None:
            below = [self._place(child) for child in children(plan)]
            name = min((name for name, _ in below), default=next(_looks(plan), ""))
            text = "\n".join([type(plan).__name__, *_looks(plan), *(digest for _, digest in below)])
            found = name, blake2b(text.encode(), digest_size=16).hexdigest()
            known = self._known[id(plan)] = plan, found
        return known[1]


def _looks(plan: Plan) -> Iterator[str]:
    """What an operator looks like, constants aside."""
    match plan:
        case Source(name) | Relation(name):
            yield f"{name} {ROW}" if is_marked(plan) else name
        case Filter(_, predicate):
            yield shape(predicate)
        case Project(_, columns):
            yield from (f"{column.name}: {shape(column.expr)}" for column in columns)
        case Aggregate(_, keys, aggregates):
            yield from (shape(key.expr) for key in keys)
            yield from (aggregate_shape(one.call) for one in aggregates)
        case Window(spec=spec):
            yield type(spec).__name__
            if isinstance(spec, RowWindow | SessionWindow):
                yield from spec.partition_by
        case Join() | SemiJoin() | AntiJoin():
            yield shape(plan.condition)
        case _:
            yield ""
