"""Push Distinct below a join, to the sides that can have a row twice (10.6).

    Distinct                    Distinct
      Project a, d                Project a, d
        Join on b = c      ->       Join on b = c
          left (a, b)                 Distinct
          right (c, d)                  left (a, b)
                                      right (c, d)

Condition: a side has no known key. The candidates are Distinct on the left, on the right, and on
both. A project may stand between; a join of any kind will do.
Equal because whether a row comes out of a join, filled with NULLs or not, depends on whether rows
are there on both sides, not on how often. The Distinct above stays; if the project keeps a key of
the join, ``drop_distinct_of_unique`` takes it away.

It pays where a join multiplies copies. Elsewhere it remembers rows twice, so it goes by cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.keys import keys
from tidemill.algebra.plan import Distinct, Join, Project
from tidemill.algebra.tree import with_children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_distinct_below_join"]


def push_distinct_below_join(plan: Plan, _context: Context) -> Iterator[Plan]:
    """The Distinct above joins of distinct rows."""
    match plan:
        case Distinct(Join() as join):
            for pushed in _pushed(join):
                yield Distinct(pushed)
        case Distinct(Project(Join() as join, columns)):
            for pushed in _pushed(join):
                yield Distinct(Project(pushed, columns))
        case _:
            return


def _pushed(join: Join) -> Iterator[Plan]:
    left, right = join.left, join.right
    if not keys(left):
        yield with_children(join, (Distinct(left), right))
    if not keys(right):
        yield with_children(join, (left, Distinct(right)))
    if not (keys(left) or keys(right)):
        yield with_children(join, (Distinct(left), Distinct(right)))
