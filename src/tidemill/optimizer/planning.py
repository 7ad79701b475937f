"""Planning: everything that decides on how a query is computed, and from there to a physical plan.

None of it changes an answer. A checkpoint is made for one planning, since state is found by what
the operators are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tidemill.optimizer.logical.rewrite import optimize
from tidemill.optimizer.physical.implement import implement_annotated
from tidemill.optimizer.physical.limit_delay import DEFAULT_DELAY
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Form
    from tidemill.optimizer.logical.rules import Negation
    from tidemill.optimizer.physical.implement import Implemented
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["PLANNING", "Joins", "Planning"]


class Joins(Enum):
    """How more than two inputs are joined."""

    BINARY = "binary"
    MULTIWAY = "multiway"


@dataclass(frozen=True, slots=True)
class Planning:
    """How queries are planned.

    Attributes:
        optimized: Whether plans are rewritten.
        max_delay: How far what does not change may lie behind the watermark, in microseconds;
            ``None`` for ever.
        technique: What decides on the form of each edge.
        joins: Whether joins of joins remember intermediate results.
        negation: Where anti-joins stand, beside joins.
        lazy: At multiples of how many microseconds joins of many inputs are evaluated, where the
            ends of rows are known; 0 for at once.
    """

    optimized: bool = True
    max_delay: int | None = DEFAULT_DELAY
    technique: Technique = Technique.PATTERN
    joins: Joins = Joins.BINARY
    negation: Negation = "written"
    lazy: int = 0

    def logical(self, plan: Plan) -> Plan:
        """The plan after all rewrites."""
        return optimize(plan, negation=self.negation) if self.optimized else plan

    def annotated(
        self, plan: Plan, *, answer: Form | None = None, split: bool = True
    ) -> Implemented:
        """The physical plan of a query, with what is known about its parts.

        Args:
            plan: What the query means.
            answer: The form that its answer must have; ``None`` for either, if only all rows of an
                instant are there at once.
            split: Whether scalar aggregates are computed in two parts.
        """
        return implement_annotated(
            self.logical(plan),
            max_delay=self.max_delay,
            split=split,
            technique=self.technique,
            multiway=self.joins is Joins.MULTIWAY,
            lazy=self.lazy,
            answer=answer,
            whole=True,
        )

    def physical(
        self, plan: Plan, *, answer: Form | None = None, split: bool = True
    ) -> PhysicalPlan:
        """The physical plan of a query."""
        return self.annotated(plan, answer=answer, split=split).plan

    def facts(self) -> dict[str, int | str | None]:
        """What a checkpoint is made for."""
        return {
            "optimized": int(self.optimized),
            "max_delay": self.max_delay,
            "technique": self.technique.value,
            "joins": self.joins.value,
            "negation": self.negation,
            "lazy": self.lazy,
        }


PLANNING = Planning()
"""The settings nobody has changed."""
