"""The text of a plan: one line an operator, its inputs indented below; the same every time.

A part that is used in several places is shown once, with a number, and referred to by it:

    Project itemID, bid_price
      SemiJoin on bid_price = max(bid_price)
        [1] Window range=10m
          Source Bid
        Aggregate max(bid_price)
          see [1]
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import TRUE, Column
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
    TimeWindow,
    Unbounded,
    Union,
    Window,
    WindowSpec,
)
from tidemill.algebra.text import aggregate_text, expr_text, name_text
from tidemill.algebra.tree import children, walk
from tidemill.model.time import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.algebra.expr import Expr, Named

__all__ = ["describe", "explain"]


def explain(plan: Plan, note: Callable[[Plan], str] | None = None) -> str:
    """The plan as text; ``note`` adds a remark to the line of each operator."""
    uses = Counter(id(child) for node in walk(plan) for child in children(node))
    numbers: dict[int, int] = {}

    def lines(node: Plan, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if id(node) in numbers:
            yield f"{indent}see [{numbers[id(node)]}]"
            return
        label = ""
        # A leaf is as short as a reference to it.
        if uses[id(node)] > 1 and children(node):
            numbers[id(node)] = len(numbers) + 1
            label = f"[{numbers[id(node)]}] "
        remark = f"  {note(node)}" if note else ""
        yield f"{indent}{label}{describe(node)}{remark}"
        for child in children(node):
            yield from lines(child, depth + 1)

    return "\n".join(lines(plan, 0))


def describe(plan: Plan) -> str:
    """The line of the topmost operator."""
    match plan:
        case Source(name, since=since):
            return f"Source {name_text(name)}{f' since {since}' if since else ''}"
        case Relation(name):
            return f"Relation {name_text(name)}"
        case Window(_, spec):
            return f"Window {_window(spec)}"
        case Filter(_, predicate):
            return f"Filter {expr_text(predicate)}"
        case Project(_, columns):
            return f"Project {_named(columns)}"
        case Aggregate(_, keys, aggregates):
            calls = ", ".join(
                aggregate_text(a.call)
                if aggregate_text(a.call) == a.name
                else f"{aggregate_text(a.call)} AS {name_text(a.name)}"
                for a in aggregates
            )
            by = f"by {_named(keys)}" if keys else ""
            return " ".join(part for part in ("Aggregate", calls, by) if part)
        case Join(_, _, kind, condition):
            return f"Join {kind.value}{_on(condition)}"
        case SemiJoin(_, _, condition) | AntiJoin(_, _, condition):
            return f"{type(plan).__name__}{_on(condition)}"
        case Distinct() | Istream() | Dstream() | Rstream():
            return type(plan).__name__
        case Union() | MaxUnion() | Difference() | StrictDifference() | Intersect():
            return type(plan).__name__
        case _:
            assert_never(plan)


def _on(condition: Expr) -> str:
    return "" if condition == TRUE else f" on {expr_text(condition)}"


def _named(columns: tuple[Named, ...]) -> str:
    return ", ".join(
        name_text(column.name)
        if isinstance(column.expr, Column) and column.expr.name == column.name
        else expr_text(column.expr)
        if expr_text(column.expr) == column.name
        else f"{expr_text(column.expr)} AS {name_text(column.name)}"
        for column in columns
    )


def _window(spec: WindowSpec) -> str:
    match spec:
        case TimeWindow(size, slide):
            moved = f" slide={duration_text(slide)}" if slide > 1 else ""
            return f"range={duration_text(size)}{moved}"
        case RowWindow(rows, slide, partition_by, unless):
            moved = f" slide={slide}" if slide > 1 else ""
            but = "" if unless is None else f" unless {expr_text(unless)}"
            return f"rows={rows}{moved}{_by(partition_by)}{but}"
        case SessionWindow(gap, partition_by):
            return f"session={duration_text(gap)}{_by(partition_by)}"
        case Unbounded():
            return "unbounded"
        case _:
            assert_never(spec)


def _by(columns: tuple[str, ...]) -> str:
    return f" by={','.join(map(name_text, columns))}" if columns else ""
