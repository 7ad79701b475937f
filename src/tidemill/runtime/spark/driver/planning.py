"""Planning for a pipeline: physical plans that fit its partitions and stages.

The first part of a scalar aggregate in two parts may take a stage of its own. The number of stages
is fixed for the life of a checkpoint. So a query that would need too many is planned with its
aggregates in one part, as where there is only one partition, and if that is not enough, folded.
This depends on the query and on what never changes in a checkpoint, not on the other queries: after
a restart it has the same plan, and finds its state.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidemill.engine.folding import folded, stages_needed
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.entries import QueryEntry
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.spark.driver.settings import SparkSettings

__all__ = ["physical_plans", "stages_of_new"]


def stages_of_new(settings: SparkSettings, partitions: int) -> int | None:
    """How many stages a new pipeline has; ``None`` for as many as its queries need.

    In one partition nothing is exchanged, and each stage costs a batch some time.
    """
    if settings.stages is None and partitions == 1:
        return 1
    return settings.stages


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
        made = partial(settings.planning.physical, query.plan, answer=answer_form(query))
        plan = made()
        if partitions == 1 or (stages is not None and stages_needed(plan) > stages):
            plan = made(split=False)
        plans[query.name] = plan if stages is None else folded(plan, stages)
    return plans
