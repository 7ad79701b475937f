"""Push Distinct below a union, to the sides that can have a row twice.

    Distinct              Distinct
      Union          ->     Union
        left                  Distinct
        right                   left
                              right

Condition: a side has no known key. The candidates are Distinct on the left, on the right, and on
both. In the other direction, they are the union without a Distinct that a side has.
Equal because a row is in the union if it is on one of the sides, however often.

Both directions are candidates, and the cost decides: a side with many copies of few rows sends less
to the union so, but what is distinct is found out, and remembered, once more.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tidemill.algebra.keys import keys
from tidemill.algebra.plan import Distinct, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_distinct_below_union"]


def push_distinct_below_union(plan: Plan, _context: Context) -> Iterator[Plan]:
    """The Distinct above unions of distinct rows, or of other ones."""
    match plan:
        case Distinct(Union(left, right)):
            for one, other in product(_forms(left), _forms(right)):
                if one is not left or other is not right:
                    yield Distinct(Union(one, other))
        case _:
            return


def _forms(side: Plan) -> tuple[Plan, ...]:
    """A side as it is, and as it can be."""
    if isinstance(side, Distinct):
        return side, side.input
    return (side,) if keys(side) else (side, Distinct(side))
