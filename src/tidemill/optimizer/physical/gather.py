"""Gathering: a plan whose rows are in one partition from the first exchange on.

    Exchange by k              B
      B                          A
        Exchange by j     ->       Exchange to one partition
          A                          input
            Exchange by k
              input

Rows that agree on any keys are in the same partition then, so later exchanges have nothing to do.
Where few rows come, a step costs calls and not rows: operators that rest in the other partitions
are not called there (``engine.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.physical.plan import Exchange, PhysicalPlan, inputs, rebuilt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["gather"]


def gather(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with its rows in one partition.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    alone: set[str] = set()

    def moved(part: PhysicalPlan) -> PhysicalPlan:
        below = inputs(part)
        if isinstance(part, Exchange):
            if part.input.fingerprint in alone:
                return part.input
            part = Exchange(part.input, (), part.schema)
            alone.add(part.fingerprint)
        elif below and all(one.fingerprint in alone for one in below):
            alone.add(part.fingerprint)
        return part

    return rebuilt(plan, moved)
