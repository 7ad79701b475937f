"""Reoptimizing: when a query that runs is worth another plan, as a function of what is known.

Law: with constant figures a plan that was left does not come back; a change has earned what it took
before there is another one. What is pressing is looked at sooner, and decided alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from tidemill.optimizer.hysteresis import Kept, Policy, consider, judge

if TYPE_CHECKING:
    from tidemill.optimizer.hysteresis import Offer

__all__ = ["POLICY", "Effect", "Watched", "considered", "effect", "pressure"]

POLICY: Final = Policy(horizon=600_000_000, rest=600_000_000)
"""A plan is expected to stay as cheap as it is for ten minutes of the streams."""

_NEAR: Final = 0.8
_SLOWER: Final = 1.5


class Effect(Enum):
    """What a change has brought."""

    BETTER = "better"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is remembered of a query between two looks.

    Attributes:
        kept: What hysteresis remembers.
        each: For how many microseconds a row was worked lately; 0 if that is not known.
        taken: The plan that was taken last, until its effect is known; 0 if it is.
        before: For how many microseconds a row was worked with the plan before.
    """

    kept: Kept = field(default_factory=Kept)
    each: float = 0.0
    taken: int = 0
    before: float = 0.0


def pressure(watched: Watched, each: float, state: float, limit: float) -> str | None:
    """What presses, if anything does (Z70).

    Args:
        watched: What is remembered of the query.
        each: For how many microseconds a row is worked now.
        state: How many bytes all queries remember.
        limit: How many they may.
    """
    if state > _NEAR * limit:
        return "state is near its limit"
    if watched.each and each > _SLOWER * watched.each:
        return "rows take longer"
    return None


def considered(
    watched: Watched, offer: Offer, each: float, time: int, *, acts: bool
) -> tuple[Watched, bool]:
    """What is remembered after a look, and whether the offered plan is to be taken.

    Args:
        watched: What was remembered.
        offer: The best plan now.
        each: For how many microseconds a row is worked.
        time: The stream's time.
        acts: Whether it will be taken, or only be told of.
    """
    kept, is_taken = consider(watched.kept, offer, time, POLICY)
    if not is_taken:
        return replace(watched, kept=kept, each=each), False
    if not acts:  # it is not said again and again
        kept = replace(kept, avoided=offer.plan, avoided_until=time + POLICY.rest)
        return replace(watched, kept=kept, each=each), True
    return Watched(kept, 0.0, offer.plan, each), True


def effect(watched: Watched, each: float, time: int) -> tuple[Watched, Effect]:
    """What is remembered when it is known what a change has brought, and what that is."""
    kept, is_worse = judge(watched.kept, watched.taken, watched.before, each, time, POLICY)
    return Watched(kept, each), Effect.WORSE if is_worse else Effect.BETTER
