"""Planning for a runtime: the query with its sink, for the partitions and stages there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.optimizer.planner import Context, Target, plan, resume
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.planner import Planned
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.record import Facts

__all__ = ["KeptPlan", "outdated_in", "plan_entry"]


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan that a query runs with already.

    Attributes:
        physical: Its operators.
        decisions: What was chosen when it was made.
    """

    physical: PhysicalPlan
    decisions: tuple[Decision, ...] = ()


def plan_entry(  # noqa: PLR0913 — what a plan is made for
    query: QueryEntry,
    planning: Planning = PLANNING,
    *,
    partitions: int | None = None,
    stages: int | None = None,
    epoch: int = 0,
    kept: KeptPlan | None = None,
    now: int | None = None,
) -> Planned:
    """The plan of a query.

    Args:
        query: The query.
        planning: The settings.
        partitions: How many partitions there are; ``None`` for any number.
        stages: How many stages there are; ``None`` for as many as are needed.
        epoch: When it begins.
        kept: The plan that it runs with already.
        now: The epoch that begins now, if other instants are wanted of a query that runs; ``None``
            for that in which it began.

    Raises:
        RunError: Its sink says a form that it cannot have.
    """
    form, replays = answer_form(query), query.replays
    target = Target(partitions, stages, form, epoch=epoch, cut=query.cut, replays=replays)
    context = Context(planning)
    if kept is not None:
        begun = epoch if now is None else now
        made = resume(query.plan, kept.physical, target, context, begun, decisions=kept.decisions)
    else:
        made = plan(query.plan, target, context)
    return replace(made, constants=planning.constants)


def outdated_in(planned: Mapping[str, Planned], facts: Facts, planning: Planning) -> frozenset[str]:
    """The queries of a checkpoint whose plans were made with other settings, which make others.

    Args:
        planned: The plans that they run with.
        facts: What is known of the checkpoint.
        planning: The settings now.
    """
    if facts.planning == planning.facts():
        return frozenset()  # a planner of another version changes nothing by itself
    return frozenset(name for name, one in planned.items() if one.is_outdated)
