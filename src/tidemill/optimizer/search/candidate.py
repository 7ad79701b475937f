"""Candidates: plans that could be chosen, and what found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.optimizer.search.tree_cost import Plan

__all__ = ["Candidate"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that could be chosen.

    Attributes:
        found_by: What found it.
        plan: The plan.
    """

    found_by: str
    plan: Plan
