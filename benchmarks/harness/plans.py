"""Physical plans for benchmarks, made by the planner with one setting or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.physical.limit_delay import DEFAULT_DELAY
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING, Joins, Planning

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Form
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["implement", "physical"]


def physical(
    query: Plan, planning: Planning = PLANNING, *, answer: Form | None = None
) -> PhysicalPlan:
    """The plan that a runtime would run."""
    return plan(query, Target(answer=answer), Context(planning)).physical


def implement(  # noqa: PLR0913 — every setting has a name and a default
    query: Plan,
    *,
    max_delay: int | None = DEFAULT_DELAY,
    split: bool = True,
    technique: Technique = Technique.PATTERN,
    multiway: bool = False,
    lazy: int = 0,
    adaptive: bool = False,
    answer: Form | None = None,
) -> PhysicalPlan:
    """The operators of a logical plan as it is, of an answer that may come in pieces."""
    planning = Planning(
        optimized=False,
        max_delay=max_delay,
        technique=technique,
        joins=Joins.MULTIWAY if multiway else Joins.BINARY,
        lazy=lazy,
        adaptive=adaptive,
    )
    target = Target(partitions=None if split else 1, answer=answer, whole=False)
    return plan(query, target, Context(planning)).physical
