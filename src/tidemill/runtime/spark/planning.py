"""Planning for a pipeline: physical plans that fit its partitions and stages.

The first part of a scalar aggregate in two parts may take a stage of its own. The number of stages
is fixed for the life of a checkpoint, and what needs more of them runs in one partition. So a query
that would need too many is planned with its aggregates in one part, as where there is only one
partition. Whether it is depends on the query and on what never changes in a checkpoint, not on the
other queries: after a restart it has the same plan, and finds its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.engine.fragments import build_graph
from tidemill.optimizer.implement import implement
from tidemill.optimizer.rewrite import optimize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.spark.settings import SparkSettings

__all__ = ["physical_plans", "stages_for"]


def physical_plans(
    queries: Iterable[QueryEntry],
    settings: SparkSettings,
    *,
    partitions: int,
    stages: int | None,
) -> dict[str, PhysicalPlan]:
    """The physical plan of each query.

    Args:
        queries: The queries.
        settings: How to run.
        partitions: How many partitions there are.
        stages: How many stages there are; ``None`` for as many as are needed.
    """
    plans: dict[str, PhysicalPlan] = {}
    for query in queries:
        logical = optimize(query.plan) if settings.optimized else query.plan
        plan = implement(logical, max_delay=settings.max_delay)
        if partitions == 1 or (stages is not None and stages_for({query.name: plan}) > stages):
            plan = implement(logical, max_delay=settings.max_delay, split=False)
        plans[query.name] = plan
    return plans


def stages_for(plans: Mapping[str, PhysicalPlan]) -> int:
    """How many stages the plans need."""
    return max(1, len(build_graph(plans).fragments) - 1)
