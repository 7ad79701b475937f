"""Folding: a plan for a pipeline that has fewer stages than the plan has exchanges in a row.

Up to the last stage everything stays as it is, and is shared with other queries. What comes there
goes into one partition, so that no exchange is needed any more. Parts above are other parts than
those of queries that fit: no other query's rows change their partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.physical.fragments import build_graph, rows_name, stages_of
from tidemill.physical.plan import Apply, Exchange, Input, walk_physical

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
    level = stages_of(list(walk_physical([plan])))
    new: dict[str, PhysicalPlan] = {}

    def gathered(part: PhysicalPlan) -> PhysicalPlan:
        """The part as the last stage reads it."""
        made = new[part.fingerprint]
        return made if level[rows_name(part)] >= stages else Exchange(made, (), part.schema)

    for part in walk_physical([plan]):
        is_last = level[rows_name(part)] >= stages
        match part:
            case Input():
                new[part.fingerprint] = part
            case Exchange(below, keys, schema):
                kept = Exchange(new[below.fingerprint], keys, schema)
                new[part.fingerprint] = gathered(below) if is_last else kept
            case Apply(operator, parts):
                inputs = (gathered(p) if is_last else new[p.fingerprint] for p in parts)
                new[part.fingerprint] = Apply(operator, tuple(inputs), part.epoch)
            case _:
                assert_never(part)
    return new[plan.fingerprint], {old: part.fingerprint for old, part in new.items()}
