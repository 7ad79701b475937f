"""The text of EXPLAIN TRACE: which rule or phase changed what, step by step.

What a rule has left as it was is shown by its first line only:

    push_filter_through_window
      Filter bid_price > 1.0
        Window range=10m
          Source Bid
    =>
      Window range=10m
        Filter bid_price > 1.0
          Source Bid

A phase changes a physical plan in many places at once: lines that are gone begin with ``-``, new
ones with ``+``.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from tidemill.algebra.explain import describe, explain
from tidemill.algebra.tree import children, walk
from tidemill.optimizer.explain.physical import explain_physical
from tidemill.optimizer.logical.rewrite import Step
from tidemill.optimizer.physical.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.algebra.codec.values import Json
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.planned import PhysicalStep

__all__ = ["trace_json", "trace_text"]


def trace_text(steps: Sequence[Step | PhysicalStep]) -> str:
    """The steps, each with the node before and after it."""
    if not steps:
        return "(no rule applies)"
    return "\n\n".join(
        _step(step) if isinstance(step, Step) else "\n".join((step.phase, *_difference(step)))
        for step in steps
    )


def trace_json(steps: Sequence[Step | PhysicalStep]) -> Json:
    """The steps for ``json``."""
    return [
        {
            "rule": step.rule,
            "before": explain(step.before).splitlines(),
            "after": explain(step.after).splitlines(),
        }
        if isinstance(step, Step)
        else {"phase": step.phase, "change": list(_difference(step))}
        for step in steps
    ]


def _difference(step: PhysicalStep) -> Iterator[str]:
    """The lines of a physical plan that have gone and come."""
    before, after = (
        explain_physical(plan, Labels()).splitlines() for plan in (step.before, step.after)
    )
    matcher = SequenceMatcher(a=before, b=after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            yield from (f"  - {line}" for line in before[start:end])
            yield from (f"  + {line}" for line in after[new_start:new_end])


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
