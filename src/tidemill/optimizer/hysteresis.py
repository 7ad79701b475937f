"""Hysteresis: when another plan is worth a change, and what is remembered between two looks.

A plan is changed if another one is clearly cheaper several looks in a row, and what it saves within
a horizon is more than the change takes. After a change there is none until it has earned what it
took. One that turns out to be worse is taken back, and its plan is avoided for a while that doubles
each time.

Law: with constant costs each change is to a clearly cheaper plan, so no plan comes back; between
two changes the earlier one has earned what it took.

Everything that is remembered is a few integers, so that it can be kept with the state of an
operator. Times are in microseconds, of the stream or of a clock; costs are shares, in microseconds
of work for each of these.

>>> policy, offer = Policy(), Offer(plan=7, own=0.5, best=0.3, price=1000.0)
>>> kept, is_taken = consider(Kept(), offer, 0, policy)
>>> is_taken, consider(kept, offer, 10, policy)
(False, (Kept(wanted=0, looks=0, free_at=5010, avoided=0, avoided_until=0, rest=0), True))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

__all__ = ["POLICY", "Kept", "Offer", "Policy", "consider", "judge", "refuse"]

_LONGEST_REST: Final = 24 * 3_600_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """How reluctant changes are.

    Attributes:
        clearly: A plan is clearly cheaper if it costs less than this share.
        looks: In so many looks in a row the same plan must be wanted.
        horizon: For how long a plan is expected to stay as cheap as it is.
        worse: A change is taken back if work takes more than so many times as long as before.
        rest: For how long a plan is avoided that did not help, the first time.
    """

    clearly: float = 0.8
    looks: int = 2
    horizon: float = inf
    worse: float = 1.1
    rest: int = 60_000_000


POLICY: Final = Policy()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered between two looks.

    Attributes:
        wanted: The plan that was wanted last; 0 if none was.
        looks: In how many looks in a row.
        free_at: From when on there may be a change.
        avoided: The plan that did not help last.
        avoided_until: Until when it is avoided.
        rest: For how long it was avoided last.
    """

    wanted: int = 0
    looks: int = 0
    free_at: int = 0
    avoided: int = 0
    avoided_until: int = 0
    rest: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """What a look has found.

    Attributes:
        plan: A number for the best plan, not 0; 0 if it is the one that runs.
        own: What the plan costs that runs.
        best: What the best one costs.
        price: What the change takes, once.
        is_pressing: Whether the plan that runs must not stay, whatever the best one costs.
    """

    plan: int
    own: float
    best: float
    price: float = 0.0
    is_pressing: bool = False


def consider(kept: Kept, offer: Offer, time: int, policy: Policy = POLICY) -> tuple[Kept, bool]:
    """What is remembered after a look, and whether the best plan is to be taken."""
    saved = offer.own - offer.best
    if not offer.plan or is_avoided(kept, offer.plan, time):
        return replace(kept, wanted=0, looks=0), False
    if not offer.is_pressing:
        is_cheap = saved > 0 and offer.best < policy.clearly * offer.own
        if not is_cheap or time < kept.free_at or saved * policy.horizon <= offer.price:
            return replace(kept, wanted=0, looks=0), False
        looks = kept.looks + 1 if kept.wanted == offer.plan else 1
        if looks < policy.looks:
            return replace(kept, wanted=offer.plan, looks=looks), False
    earned = ceil(offer.price / saved) if saved > 0 else policy.rest
    return replace(kept, wanted=0, looks=0, free_at=time + min(earned, _LONGEST_REST)), True


def is_avoided(kept: Kept, plan: int, time: int) -> bool:
    """Whether a plan did not help lately."""
    return kept.avoided == plan and time < kept.avoided_until


def judge(  # noqa: PLR0913, PLR0917 — what is remembered, and what was found
    kept: Kept, plan: int, before: float, after: float, time: int, policy: Policy = POLICY
) -> tuple[Kept, bool]:
    """What is remembered when the effect of a change is known, and whether it is to be taken back.

    Args:
        kept: What was remembered.
        plan: The plan that was taken.
        before: For how long work took with the earlier plan.
        after: For how long it takes with this one.
        time: Now.
        policy: How reluctant changes are.
    """
    if after <= policy.worse * before:
        return kept, False
    return refuse(kept, plan, time, policy), True


def refuse(kept: Kept, plan: int, time: int, policy: Policy = POLICY) -> Kept:
    """What is remembered when a plan is not to be taken for a while, longer each time."""
    again = 2 * kept.rest if kept.avoided == plan else policy.rest
    rest = min(max(again, policy.rest), _LONGEST_REST)
    return replace(
        kept, wanted=0, looks=0, avoided=plan, avoided_until=time + rest, rest=rest, free_at=time
    )
