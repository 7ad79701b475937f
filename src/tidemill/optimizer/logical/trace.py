"""The text of EXPLAIN TRACE: which rule changed what, step by step.

What a step has left as it was is shown by its first line only:

    push_filter_through_window
      Filter bid_price > 1.0
        Window range=10m
          Source Bid
    =>
      Window range=10m
        Filter bid_price > 1.0
          Source Bid
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.explain import describe
from tidemill.algebra.tree import children, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.rewrite import Step

__all__ = ["trace_text"]


def trace_text(steps: Sequence[Step]) -> str:
    """The steps, each with the node before and after it."""
    if not steps:
        return "(no rule applies)"
    return "\n\n".join(map(_step, steps))


def _step(step: Step) -> str:
    kept = {id(node) for node in walk(step.before)} & {id(node) for node in walk(step.after)}
    return "\n".join((step.rule, *_lines(step.before, kept, 1), "=>", *_lines(step.after, kept, 1)))


def _lines(plan: Plan, known: set[int], depth: int) -> Iterator[str]:
    known = set(known)  # what has been shown above is known too

    def lines(node: Plan, depth: int) -> Iterator[str]:
        cut = id(node) in known and bool(children(node))
        yield f"{'  ' * depth}{describe(node)}{' …' if cut else ''}"
        known.add(id(node))
        if not cut:
            for child in children(node):
                yield from lines(child, depth + 1)

    return lines(plan, depth)
