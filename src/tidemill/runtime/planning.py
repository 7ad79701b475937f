"""Planning for a runtime: the query with its sink, for the partitions and stages there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan, resume
from tidemill.optimizer.planning import PLANNING
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.statistics import Statistics
    from tidemill.optimizer.templates import Templates
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.record import Facts

__all__ = [
    "KeptPlan",
    "outdated_in",
    "plan_entry",
    "planned_anew",
    "planned_for",
    "planner_of",
]


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan that a query runs with already.

    Attributes:
        physical: Its operators.
        decisions: What was chosen when it was made.
        statistics: What was known then.
    """

    physical: PhysicalPlan
    decisions: tuple[Decision, ...] = ()
    statistics: Statistics = NOTHING_KNOWN


def plan_entry(  # noqa: PLR0913 — what a plan is made for
    query: QueryEntry,
    planning: Planning = PLANNING,
    *,
    partitions: int | None = None,
    stages: int | None = None,
    epoch: int = 0,
    kept: KeptPlan | None = None,
    now: int | None = None,
    statistics: Statistics = NOTHING_KNOWN,
    templates: Templates | None = None,
) -> Planned:
    """The plan of a query.

    One that runs already keeps its plan, whatever is known by now: what is measured moves, and
    plans do not move with it.

    Args:
        query: The query.
        planning: The settings.
        partitions: How many partitions there are; ``None`` for any number.
        stages: How many stages there are; ``None`` for as many as are needed.
        epoch: When it begins.
        kept: The plan that it runs with already.
        now: The epoch that begins now, if other instants are wanted of a query that runs; ``None``
            for that in which it began.
        statistics: What is known of what it reads, if it is planned now.
        templates: The plans of alike queries of a session.

    Raises:
        RunError: Its sink says a form that it cannot have.
    """
    form, replays = answer_form(query), query.replays
    if query.room is not None:
        room = query.room
        planning = replace(planning, cpu_limit=room.cpu, memory_limit=room.memory)
    target = Target(partitions, stages, form, epoch=epoch, cut=query.cut, replays=replays)
    if kept is not None:
        context = Context(planning, kept.statistics)
        begun = epoch if now is None else now
        made = resume(
            query.plan,
            kept.physical,
            target,
            context,
            begun,
            decisions=kept.decisions,
            templates=templates,
        )
    else:
        made = plan(query.plan, target, Context(planning, statistics), templates)
    return replace(made, constants=planning.constants)


def planned_anew(
    query: QueryEntry,
    running: Planned,
    planning: Planning,
    statistics: Statistics,
    templates: Templates | None = None,
) -> Planned:
    """The plan that would be made today of a query that runs, for the place where it runs.

    Args:
        query: The query, or an instance of it.
        running: The plan that it runs with.
        planning: The settings.
        statistics: What is known now of what it reads.
        templates: The plans of alike queries of a session.
    """
    made = plan(query.plan, running.target, Context(planning, statistics), templates)
    return replace(made, constants=planning.constants)


def planned_for(partitions: int | None) -> int | None:
    """For how many partitions plans are made; one for any number suits a single one as well."""
    return None if partitions == 1 else partitions


def planner_of(
    planning: Planning, templates: Templates | None = None, partitions: int | None = None
) -> Callable[[QueryEntry, Statistics], Planned]:
    """How a query would be computed with some settings, given what is known.

    Args:
        planning: The settings.
        templates: The plans of alike queries of a session.
        partitions: How many partitions there are; ``None`` for any number.
    """
    return lambda query, known: plan_entry(
        query,
        planning,
        partitions=planned_for(partitions),
        statistics=known,
        templates=templates,
    )


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
