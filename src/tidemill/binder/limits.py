"""Limits: how large a query may become while names are replaced by what they stand for.

A function is replaced by its body and a view by its plan. Where a body uses its parameter twice,
forty functions on top of each other would make 2**40 parts of one: that is refused before it is
made. What a user has written out is never refused for its length alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import expr_children
from tidemill.algebra.tree import children, walk
from tidemill.errors import PlanError
from tidemill.lang.spans import span_of

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan

__all__ = [
    "DEEPEST_PLAN",
    "MOST_COLUMNS",
    "MOST_OPERATORS",
    "MOST_PARTS",
    "Sizes",
    "check_columns",
    "check_plan",
]

MOST_PARTS: Final = 10_000
"""How many parts an expression may have beyond those that are written out."""

MOST_COLUMNS: Final = 2_000
"""How many columns a query, and what it reads in FROM, may have."""

MOST_OPERATORS: Final = 1_000
"""How many operators a plan may have, with those of its views; shared ones count once."""

DEEPEST_PLAN: Final = 300
"""How many operators may stand on top of each other."""


class Sizes:
    """How many parts expressions have, those that are shared counted as often as they stand."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, int]] = {}

    def check(self, expr: Expr, node: exp.Expr) -> None:
        """Refuse an expression that is much larger than what was written.

        Raises:
            PlanError: It has too many parts.
        """
        if self._size(expr) <= MOST_PARTS:
            return
        written = sum(1 for _ in node.walk())
        if self._size(expr) > MOST_PARTS + 4 * written:
            raise PlanError(
                f"the expression would have more than {MOST_PARTS:,} parts, once functions are "
                "replaced by their bodies",
                span=span_of(node),
                hint="name a part that is used more than once: "
                "SELECT … FROM (SELECT …, part AS name FROM …)",
            )

    def _size(self, expr: Expr) -> int:
        # As long as an expression is kept, no other one can get its id.
        if id(expr) not in self._known:
            size = 1 + sum(self._size(child) for child in expr_children(expr))
            self._known[id(expr)] = expr, size
        return self._known[id(expr)][1]


def check_columns(number: int, node: exp.Expr) -> None:
    """Refuse a query with too many columns.

    Raises:
        PlanError: There are too many.
    """
    if number > MOST_COLUMNS:
        raise PlanError(
            f"there would be more than {MOST_COLUMNS:,} columns",
            span=span_of(node),
            hint="name the columns that are needed instead of *",
        )


def check_plan(plan: Plan, node: exp.Expr) -> None:
    """Refuse a plan that is too large or too deep.

    Raises:
        PlanError: It is.
    """
    heights: dict[int, int] = {}
    for part in walk(plan):
        heights[id(part)] = 1 + max((heights[id(child)] for child in children(part)), default=0)
    if len(heights) > MOST_OPERATORS:
        raise PlanError(
            f"the query has {len(heights):,} operators with those of its views, "
            f"more than {MOST_OPERATORS:,}",
            span=span_of(node),
            hint="write it as several queries, each INTO a sink that the next one reads",
        )
    if heights[id(plan)] > DEEPEST_PLAN:
        raise PlanError(
            f"the query has {heights[id(plan)]:,} operators on top of each other, with those of "
            f"its views, more than {DEEPEST_PLAN}",
            span=span_of(node),
            hint="write it as several queries, each INTO a sink that the next one reads",
        )
