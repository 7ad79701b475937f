"""Columns that have the same values in every row, whatever the rows: one of them is enough."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Column
from tidemill.algebra.plan import (
    AntiJoin,
    Filter,
    Join,
    Plan,
    Project,
    Rstream,
    SemiJoin,
    Union,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["same_columns"]

_Origin: TypeAlias = "int | tuple[_Origin, _Origin]"
"""What a column is a copy of; columns that are copies of one have the same values."""


def same_columns(plan: Plan) -> dict[str, str]:
    """For each column of a plan the first one that always has its values."""
    origins = _origins(plan, count())
    first: dict[_Origin, str] = {}
    for name in plan.schema.names:
        first.setdefault(origins[name], name)
    return {name: first[origins[name]] for name in plan.schema.names}


def _origins(plan: Plan, fresh: Iterator[int]) -> dict[str, _Origin]:
    match plan:
        case Project(input_, columns):
            below = _origins(input_, fresh)
            return {
                one.name: below[one.expr.name] if isinstance(one.expr, Column) else next(fresh)
                for one in columns
            }
        case Filter() | Window() | Rstream():
            return _origins(plan.input, fresh)
        case Join(left, right):
            sides = [*_origins(left, fresh).values(), *_origins(right, fresh).values()]
            return dict(zip(plan.schema.names, sides, strict=True))
        case SemiJoin(left) | AntiJoin(left):
            return dict(zip(plan.schema.names, _origins(left, fresh).values(), strict=True))
        case Union(left, right):
            pairs = zip(
                _origins(left, fresh).values(), _origins(right, fresh).values(), strict=True
            )
            return dict(zip(plan.schema.names, pairs, strict=True))
        case _:
            return {name: next(fresh) for name in plan.schema.names}
