"""Canonical names: columns are called after what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import AggregateCall
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import children, once_per_node
from tidemill.optimizer.logical.spelling import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan

__all__ = ["aggregate_shape", "names_of_both", "names_of_columns"]

_LONGEST: Final = 60


def names_of_columns(exprs: Sequence[Expr | AggregateCall]) -> tuple[str, ...]:
    """A name for each of some expressions, of which none has another's.

    >>> from tidemill.algebra.expr import AggregateCall, Column
    >>> from tidemill.model.types import BIGINT
    >>> price = Column("price", BIGINT)
    >>> names_of_columns([price, AggregateCall("sum", price, BIGINT), price])
    ('price', 'sum(price)', 'price_1')
    """
    return _different(
        aggregate_shape(expr) if isinstance(expr, AggregateCall) else shape(expr) for expr in exprs
    )


def aggregate_shape(call: AggregateCall) -> str:
    """What an aggregate looks like, whatever the constants in it are."""
    argument = "*" if call.argument is None else shape(call.argument)
    distinct = "DISTINCT " if call.distinct else ""
    condition = "" if call.condition is None else f" FILTER(WHERE {shape(call.condition)})"
    return f"{call.function}({distinct}{argument}){condition}"


def names_of_both(left: Plan, right: Plan) -> tuple[str, ...]:
    """A name for each column of two inputs: its own, or with its stream where both have it."""
    both = set(left.schema.names) & set(right.schema.names)

    def named(side: Plan, name: str) -> str:
        origin = _origin(side)
        return f"{origin}.{name}" if name in both and origin and "." not in name else name

    return _different(named(side, name) for side in (left, right) for name in side.schema.names)


@once_per_node
def _origin(plan: Plan) -> str | None:
    """The stream or relation that a plan reads, if it is only one."""
    match plan:
        case Source(name) | Relation(name):
            return name
        case _:
            origins = {_origin(child) for child in children(plan)}
            return origins.pop() if len(origins) == 1 else None


def _different(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with a number behind those that are taken."""
    found: dict[str, None] = {}
    for name in names:
        short = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        fresh, number = short, 0
        while fresh in found:
            number += 1
            fresh = f"{short}_{number}"
        found[fresh] = None
    return tuple(found)
