"""Hysteresis: changes are to cheaper plans, have earned what they took, and do not come back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidemill.control import reoptimize
from tidemill.control.reoptimize import Effect, Watched, considered, effect, pressure
from tidemill.optimizer import hysteresis
from tidemill.optimizer.hysteresis import Kept, Offer, Policy, consider, judge

PLANS = st.dictionaries(st.integers(1, 5), st.floats(0.01, 10.0), min_size=2)
POLICIES = st.builds(
    Policy,
    clearly=st.floats(0.5, 0.95),
    looks=st.integers(1, 4),
    rest=st.integers(1, 1_000),
    horizon=st.floats(10.0, 1e6),
)


def changes_of(
    costs: dict[int, float], first: int, policy: Policy, price: float = 0.0, looks: int = 60
) -> list[tuple[int, int, int]]:
    """When which plan is left for which, if the cheapest is offered at each look."""
    kept, runs, found = Kept(), first, list[tuple[int, int, int]]()
    best = min(costs, key=lambda plan: (costs[plan], plan))
    for time in range(0, 100 * looks, 100):
        number = 0 if best == runs else best
        offer = Offer(number, costs[runs], costs[best], price)
        kept, is_taken = hysteresis.consider(kept, offer, time, policy)
        if is_taken:
            found.append((time, runs, best))
            runs = best
    return found


@given(PLANS, st.data(), POLICIES)
def test_with_constant_costs_there_is_one_change_at_most(
    costs: dict[int, float], data: st.DataObject, policy: Policy
) -> None:
    first = data.draw(st.sampled_from(sorted(costs)))
    changes = changes_of(costs, first, policy)
    assert len(changes) <= 1
    for time, old, new in changes:
        assert costs[new] < policy.clearly * costs[old]
        assert time == 100 * (policy.looks - 1), "it was wanted so many times in a row"


@given(
    st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(0.01, 10.0)), min_size=20, max_size=60),
    st.floats(0.0, 5_000.0),
    POLICIES,
)
def test_whatever_costs_do_a_change_has_earned_what_it_took_before_the_next(
    costs: list[tuple[float, float]], price: float, policy: Policy
) -> None:
    kept, runs = Kept(), 0
    free_at = 0.0
    for number, both in enumerate(costs):
        time, own, other = 100 * number, both[runs], both[1 - runs]
        kept, is_taken = consider(kept, Offer(2 - runs, own, other, price), time, policy)
        if is_taken:
            assert time >= free_at
            assert (own - other) * policy.horizon > price, "it pays within the horizon"
            runs, free_at = 1 - runs, time + price / (own - other)


@given(POLICIES, st.lists(st.integers(0, 10_000), min_size=2, max_size=6))
def test_a_plan_that_did_not_help_is_avoided_longer_each_time(
    policy: Policy, pauses: list[int]
) -> None:
    kept, time, rests = Kept(), 0, list[int]()
    for pause in pauses:
        time += pause
        kept, is_undone = judge(kept, 7, 1.0, 10 * policy.worse, time, policy)
        assert is_undone
        offer = Offer(7, 1.0, 0.1)
        for at in (time, kept.avoided_until - 1):
            assert not consider(kept, offer, at, Policy(looks=1))[1]
        assert consider(kept, offer, kept.avoided_until, Policy(looks=1))[1]
        rests.append(kept.avoided_until - time)
    assert all(2 * one == other for one, other in pairwise(rests))


def test_what_presses_is_taken_at_once() -> None:
    offer = Offer(3, own=0.2, best=0.4, price=1.0, is_pressing=True)
    assert consider(Kept(), offer, 0)[1]
    assert not consider(Kept(avoided=3, avoided_until=9), offer, 0)[1]


@given(st.floats(1.0, 100.0), st.floats(1.0, 100.0))
def test_a_query_whose_rows_take_longer_after_a_change_avoids_the_plan(
    before: float, after: float
) -> None:
    assume(abs(after / before - reoptimize.POLICY.worse) > 1e-6)
    offer = Offer(5, own=0.9, best=0.1)
    watched, first = considered(Watched(), offer, before, 0, acts=True)
    watched, second = considered(watched, offer, before, 1, acts=True)
    assert (first, second) == (False, True)
    watched, what = effect(watched, after, 2)
    assert (what is Effect.WORSE) == (after > reoptimize.POLICY.worse * before)
    watched, _ = considered(watched, offer, after, 3, acts=True)
    _, again = considered(watched, offer, after, 4, acts=True)
    assert again == (what is Effect.BETTER)


def test_advice_is_not_given_again_and_again() -> None:
    watched, told = Watched(), 0
    for time in range(50):
        watched, is_told = considered(watched, Offer(5, 0.9, 0.1), 1.0, time, acts=False)
        told += is_told
    assert told == 1


def test_pressure_is_state_near_the_limit_or_rows_that_take_longer() -> None:
    assert pressure(Watched(), 1.0, 50.0, 100.0) is None
    assert pressure(Watched(), 1.0, 90.0, 100.0) == "state is near its limit"
    assert pressure(Watched(each=1.0), 1.2, 0.0, 100.0) is None
    assert pressure(Watched(each=1.0), 2.0, 0.0, 100.0) == "rows take longer"


def test_a_policy_that_takes_whatever_differs_is_found() -> None:
    costs, policy = {1: 1.0, 2: 0.9}, Policy()
    assert not changes_of(costs, 1, policy)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hysteresis, "consider", lambda kept, offer, *_: (kept, bool(offer.plan)))
        assert changes_of(costs, 1, policy), "the law would see it"
