"""What the planner gives: a plan, what it was made for, and how it came about.

Law: the answer of ``physical`` is that of ``bound``, at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tidemill.optimizer.constants import DEFAULTS, Constants
from tidemill.optimizer.planning import PLANNING
from tidemill.optimizer.statistics import NOTHING_KNOWN, Statistics
from tidemill.physical.codec.plans import plan_version
from tidemill.physical.fragments import build_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Form
    from tidemill.model.spans import Cut
    from tidemill.optimizer.decisions import Decision
    from tidemill.optimizer.logical.rewrite import Step
    from tidemill.optimizer.physical.labels import Labels
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.fragments import Graph
    from tidemill.physical.plan import PhysicalPlan

Steps: TypeAlias = "tuple[Step | PhysicalStep, ...]"

__all__ = ["CONTEXT", "RESUME", "TARGET", "Context", "PhysicalStep", "Planned", "Steps", "Target"]

RESUME = "resume"
"""What a plan changes of which there is another today: it goes on as it was."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan is made for.

    Attributes:
        partitions: How many partitions there are; ``None`` for any number.
        stages: How many stateful stages there are; ``None`` for as many as are needed.
        answer: The form that the answer must have; ``None`` for either.
        whole: Whether an answer of either form has all rows of an instant or none, whenever it is
            read.
        epoch: When the query begins; it shares no state with those of other epochs.
        cut: Which instants of the answer are wanted; ``None`` for all.
        replays: From when on its answer is asked for, if it is filled with kept rows of streams: it
            has inputs of its own then.
    """

    partitions: int | None = None
    stages: int | None = None
    answer: Form | None = None
    whole: bool = True
    epoch: int = 0
    cut: Cut | None = None
    replays: int | None = None

    @property
    def shape(self) -> Target:
        """What decides on the operators, and not since when and of what they are."""
        return replace(self, epoch=0, cut=None, replays=None)


@dataclass(frozen=True, slots=True)
class Context:
    """What is known besides the query.

    Attributes:
        planning: The settings.
        statistics: What has been measured of streams, or said of them.
    """

    planning: Planning = PLANNING
    statistics: Statistics = NOTHING_KNOWN


TARGET, CONTEXT = Target(), Context()


@dataclass(frozen=True, slots=True)
class PhysicalStep:
    """What one phase made of a physical plan."""

    phase: str
    before: PhysicalPlan
    after: PhysicalPlan


@dataclass(frozen=True)
class Planned:
    """A query as it runs, and how that came about.

    Attributes:
        bound: What the query means.
        logical: The same after all rewrites.
        physical: The operators, and the exchanges between them.
        labels: How the rows of each part expire, and why they have their form.
        own_steps: What the phases have changed, one after the other.
        target: What it is made for.
        decisions: What was chosen among plans with the same answer, and why.
        constants: What the work of operators costs, so far as it is known where it was planned.
        statistics: What was known of its inputs when it was planned.
        earlier: What phases before these have changed, for a plan that was made from a template.
    """

    bound: Plan
    logical: Plan
    physical: PhysicalPlan
    labels: Labels
    own_steps: tuple[Step | PhysicalStep, ...]
    target: Target
    decisions: tuple[Decision, ...] = ()
    statistics: Statistics = NOTHING_KNOWN
    constants: Constants = DEFAULTS
    earlier: Callable[[], Steps] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def steps(self) -> Steps:
        """What the phases have changed, one after the other."""
        return (*self.earlier(), *self.own_steps)

    @property
    def is_outdated(self) -> bool:
        """Whether it runs on with a plan that would not be made today."""
        last = self.own_steps[-1] if self.own_steps else None
        return isinstance(last, PhysicalStep) and last.phase == RESUME

    @cached_property
    def version(self) -> str:
        """A short name for the physical plan, another for every other plan."""
        return plan_version(self.physical)

    def graph(self, name: str = "query") -> Graph:
        """The plan cut into fragments, if the query runs alone."""
        return build_graph({name: self.physical})
