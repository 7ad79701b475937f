"""INTERNAL windows and output windows: what is made of the insertions of a query (G-17, G-18).

    SELECT … FROM s [RANGE 5 INTERNAL]     the query with its windows as usual, its insertions kept
                                           for ever: Window(Istream(query), Unbounded)
    WSTREAM[ROWS 100](query)               the last hundred insertions: Window(Istream(query), rows)

A window over a subquery with INTERNAL windows stands on the insertions themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.annotations import is_constant
from tidemill.algebra.negation import negation
from tidemill.algebra.plan import (
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    StrictDifference,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import children, with_children
from tidemill.errors import BindError
from tidemill.lang.spans import span_of, value_span
from tidemill.lang.windows import WindowClause, Windowed

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.errors import Span

__all__ = ["insertions", "internal_window", "keep_insertions", "output_of", "refuse_internal"]

_WORDS: Final[dict[type[Plan], str]] = {
    Distinct: "DISTINCT",
    AntiJoin: "NOT IN, ALL or NOT EXISTS",
    Difference: "EXCEPT ALL",
    StrictDifference: "EXCEPT",
    Join: "an outer join, or a subquery as a value,",
}


def internal_window(select: exp.Select) -> WindowClause | None:
    """The first INTERNAL window of a query block, if it has any.

    Raises:
        BindError: Another window of the block is not INTERNAL.
    """
    clause = select.args.get("from_")
    items = [] if clause is None else [clause, *(select.args.get("joins") or [])]
    windows = [item.this.window for item in items if isinstance(item.this, Windowed)]
    internal = next((window for window in windows if window.internal), None)
    # NOW says the same as no window at all.
    other = next((w for w in windows if not w.internal and w.frame != "NOW"), None)
    if internal is not None and other is not None:
        raise BindError(
            "this window is not INTERNAL, but another one of the same SELECT is",
            span=span_of(other),
            hint="write INTERNAL in all windows of a SELECT or in none",
        )
    return internal


def refuse_internal(select: exp.Select) -> None:
    """Refuse INTERNAL windows in a subquery that is part of an expression.

    Raises:
        BindError: It has some.
    """
    if (window := internal_window(select)) is not None:
        raise BindError(
            "a subquery in an expression cannot have INTERNAL windows",
            span=value_span(window, "internal"),
            hint="its rows count while they are there; leave INTERNAL out",
        )


def keep_insertions(plan: Plan, window: WindowClause) -> Plan:
    """The answer of a query block with INTERNAL windows.

    Raises:
        BindError: What it keeps would contradict the query.
    """
    found = negation(plan)
    if found is not None:
        raise _contradiction(
            found, "an INTERNAL window", value_span(window, "internal"), "leave INTERNAL out"
        )
    return Window(Istream(plan), Unbounded(), span_of(window), internal=True)


def output_of(plan: Plan, span: Span | None) -> Plan:
    """What an output window stands on: the insertions of a query.

    Raises:
        BindError: What the window keeps would contradict the query.
    """
    found = negation(plan)
    if found is not None:
        raise _contradiction(
            found, "an output window", span, "write ISTREAM(…) for its insertions alone"
        )
    return insertions(plan) or Istream(plan)


def insertions(plan: Plan) -> Plan | None:
    """The stream that a plan keeps for ever because of INTERNAL windows, if that is all it keeps.

    What looks at one row at a time can look at it before it is kept.
    """
    match plan:
        case Window(input_, internal=True):
            return input_
        case Filter() | Project() | Union():
            below = [insertions(child) for child in children(plan)]
        case Join(left, right, JoinKind.INNER) if is_constant(left) or is_constant(right):
            below = [side if is_constant(side) else insertions(side) for side in (left, right)]
        case _:
            return None
    known = tuple(child for child in below if child is not None)
    return with_children(plan, known) if len(known) == len(below) else None


def _contradiction(found: Plan, what: str, span: Span | None, hint: str) -> BindError:
    return BindError(
        f"{_WORDS[type(found)]} does not go with {what}: "
        "a result that is kept would contradict it later",
        span=span,
        hint=hint,
    )
