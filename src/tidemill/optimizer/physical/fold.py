"""Folding: a plan for a pipeline that has fewer stages than the plan has exchanges in a row.

Up to the last stage everything stays as it is, and is shared with other queries. What comes there
goes into one partition, so that no exchange is needed any more. Parts above are other parts than
those of queries that fit: no other query's rows change their partition.

Numbers of rows are unique in one partition. Rows that would bring theirs there from several get
them there instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.physical.fragments import build_graph, rows_name, stages_of
from tidemill.physical.interval import NUMBER
from tidemill.physical.plan import Apply, Exchange, Input, inputs, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.physical.plan import PhysicalPlan

__all__ = ["folded", "stages_needed"]


def stages_needed(*plans: PhysicalPlan) -> int:
    """How many stages, besides that where rows come in, the plans need."""
    queries = {str(number): plan for number, plan in enumerate(plans)}
    return max(1, len(build_graph(queries).fragments) - 1)


def folded(plan: PhysicalPlan, stages: int) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """A plan with the same answer that needs no more than so many stages.

    Returns:
        The plan, and for each part of the given one the part that has the same rows, by
        fingerprint.
    """
    if stages_needed(plan) <= stages:
        return plan, {part.fingerprint: part.fingerprint for part in walk_physical([plan])}
    last = _last_parts(plan, stages)
    new: dict[str, PhysicalPlan] = {}

    def gathered(part: PhysicalPlan) -> PhysicalPlan:
        """The part as the last stage reads it."""
        made = new[part.fingerprint]
        return made if part.fingerprint in last else Exchange(made, (), part.schema)

    for part in walk_physical([plan]):
        is_last = part.fingerprint in last
        match part:
            case Input():
                new[part.fingerprint] = part
            case Exchange(input_, keys, schema):
                kept = Exchange(new[input_.fingerprint], keys, schema)
                new[part.fingerprint] = gathered(input_) if is_last else kept
            case Apply(operator, parts):
                below = (gathered(p) if is_last else new[p.fingerprint] for p in parts)
                new[part.fingerprint] = Apply(operator, tuple(below), part.epoch)
            case _:
                assert_never(part)
    return new[plan.fingerprint], {old: part.fingerprint for old, part in new.items()}


def _last_parts(plan: PhysicalPlan, stages: int) -> set[str]:
    """The parts that are to be in the last stage, by fingerprint."""
    parts = list(walk_physical([plan]))
    level = stages_of(parts)
    last = {part.fingerprint for part in parts if level[rows_name(part)] >= stages}
    before = 0
    while len(last) > before:  # each part that comes may bring others, above and below it
        before = len(last)
        for part in parts:
            below = {p.fingerprint: NUMBER in p.schema.names for p in inputs(part)}
            if not last.isdisjoint(below):
                last.add(part.fingerprint)
            if part.fingerprint in last:
                last |= {name for name, is_numbered in below.items() if is_numbered}
    return last
