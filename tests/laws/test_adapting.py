"""A join that decides by itself in which tree it goes on answers like any other.

Its answer is computed from the elements that come in: all combinations, instant by instant. What it
measures is drawn, so that it finds changes good and bad.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.test_join_tree import BINARY, CONDITIONS4, FOUR, NAMES4, THREE, joins
from laws.test_multi_join import CONDITIONS, NAMES, PAIR, combinations, results
from physical.run import Schedule, run, schedules
from stores import refill, save
from tidemill.engine import adapting as module
from tidemill.engine.adaptations import Adaptation, Kind
from tidemill.engine.adapting import Adapting, Spent, adapted
from tidemill.model.batch import END, START
from tidemill.model.time import Time
from tidemill.optimizer.hysteresis import Policy
from tidemill.optimizer.running_trees import Running, Trees, compared
from tidemill.optimizer.search.tree_cost import Plan
from tidemill.physical.adaptable import adaptable
from tidemill.physical.joining.tree import text
from tidemill.physical.operators.join.join_tree import JoinTree, shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.physical.joining.tree import Stage
    from tidemill.physical.operator import State

EAGER = Policy(clearly=1.0, looks=1, worse=1.0, rest=0)
"""Whatever is a little cheaper is taken at once, and taken back as soon as it takes longer."""


@dataclass
class Loop:
    """Looks after each event; how long work took is drawn."""

    join: JoinTree
    seconds: Iterator[float]
    trees: Iterator[Stage]
    adapting: Adapting
    told: list[Adaptation] = field(default_factory=list)

    def __call__(self, state: State, watermark: Time) -> State:
        own = adaptable(self.join)
        assert own is not None
        before, work = text(shape(state)), next(self.seconds, 0.0)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(module, "compared", self._compared)
            told = adapted(own, state, watermark, Spent(1, 0.0, lambda: work), self.adapting)
        if not any(one.kind in (Kind.CHANGED, Kind.UNDONE) for one in told):
            assert text(shape(state)) == before, "what changes is told"
        self.told += told
        return state

    def _compared(self, running: Running) -> Trees:
        """Some tree is better, whatever is known; or what is known decides."""
        found, tree = compared(running), next(self.trees, None)
        if tree is None:
            return found
        return replace(found, own=1.0, best=Plan(tree, {}, 0.5, 0.0), price=0.0)


CLOCKS = st.lists(st.floats(1e-6, 1e-3), max_size=30)
ADAPTING = st.builds(
    Adapting,
    every=st.sampled_from([1, 1, 1, 2]),
    acts=st.sampled_from([True, True, True, False]),
    quota=st.just(1.0),
    most_bytes=st.sampled_from([inf, 1.0, 2_000.0]),
    policy=st.just(EAGER),
)


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    join=joins(NAMES, CONDITIONS, THREE),
    clock=CLOCKS,
    trees=st.lists(st.sampled_from(THREE), max_size=20),
    adapting=ADAPTING,
    reload=st.booleans(),
)
def test_three_inputs_are_joined_right_whatever_is_decided(  # noqa: PLR0913 — what is drawn
    schedule: Schedule,
    join: JoinTree,
    clock: list[float],
    trees: list[Stage],
    adapting: Adapting,
    *,
    reload: bool,
) -> None:
    loop = Loop(join, iter(clock), iter(trees), adapting)
    output = run(join, schedule, reload=reload, after=loop)
    assert Counter(output.elements) == Counter(results(schedule, NAMES, join.condition))
    if not adapting.acts:
        assert all(one.kind is Kind.ADVISED for one in loop.told)


@given(
    schedule=schedules(PAIR, PAIR, PAIR, PAIR),
    join=joins(NAMES4, st.sampled_from(CONDITIONS4), FOUR),
    clock=CLOCKS,
    trees=st.lists(st.sampled_from(FOUR), max_size=20),
    adapting=ADAPTING,
)
def test_four_inputs_are_joined_right_whatever_is_decided(
    schedule: Schedule,
    join: JoinTree,
    clock: list[float],
    trees: list[Stage],
    adapting: Adapting,
) -> None:
    loop = Loop(join, iter(clock), iter(trees), adapting)
    output = run(join, schedule, reload=False, after=loop)
    for t, expected in combinations(schedule, join.names, join.condition).items():
        assert output.snapshot(t) == expected, t


# What it does with data that are exchanged, and with those that are not.

SECOND = 1_000_000


def _elements(chance: np.random.Generator, at: int, *, hot: bool) -> pl.DataFrame:
    """Some rows of a second, valid for five: half of them have one of few keys, or hardly any."""
    count = 120
    keys = np.where(
        chance.random(count) < (0.6 if hot else 0.01),
        chance.integers(0, 6, count),
        chance.integers(1_000, 100_000, count),
    )
    start = at * SECOND + chance.integers(0, SECOND, count)
    columns = {"x": keys, "y": ["y"] * count, START: start, END: start + 5 * SECOND}
    return pl.DataFrame(columns)


@dataclass(frozen=True)
class Seen:
    """What was decided, the tree after each step, and how many combinations have left."""

    told: list[Adaptation]
    trees: list[str]
    made: int


def _stepped(exchanged_at: int, *, adapts: bool = True, saved: bool = False) -> Seen:
    """Sixty seconds in which inputs 1 and 2 meet often, and later 0 and 1; work is counted."""
    chance = np.random.default_rng(7)
    state, made = BINARY.new_state(), 0
    told, trees = list[Adaptation](), list[str]()
    own = adaptable(BINARY)
    assert own is not None
    for step in range(60):
        hot = (1, 2) if step < exchanged_at else (0, 1)
        rows = 0
        for port in range(3):
            batch = _elements(chance, step, hot=port in hot)
            batch.columns = [*BINARY.inputs[port].names, START, END]
            rows += batch.height
            made += sum(out.height for out in BINARY.on_batch(state, port, batch))
        time = Time((step + 1) * SECOND)
        list(BINARY.on_watermark(state, time))
        work = 1e-6 * (rows + state.rows())
        adapting = Adapting(every=2, quota=1.0)
        if adapts:
            told += adapted(own, state, time, Spent(rows, 0.0, partial(float, work)), adapting)
        if saved:
            store, state = save(state), BINARY.new_state()
            refill(state, store)
        trees.append(text(shape(state)))
    return Seen(told, trees, made)


def test_it_goes_on_in_another_tree_when_selectivities_are_exchanged() -> None:
    seen = _stepped(20)
    changes = [one for one in seen.told if one.kind is Kind.CHANGED]
    assert changes
    assert seen.trees[18] != "(0 (1 2))", "1 and 2 meet often"
    assert seen.trees[-1] != "((0 1) 2)", "0 and 1 do"
    assert len({*seen.trees[40:]}) == 1, "it stays in the new one"
    assert not [one for one in seen.told if one.kind is Kind.UNDONE]
    assert [one for one in seen.told if one.kind is Kind.KEPT][-1].after > 0
    assert all(one.best < 0.8 * one.own for one in changes)
    assert seen.made == _stepped(20, adapts=False).made


def test_with_stable_data_it_stays() -> None:
    assert len({*_stepped(10_000).trees[12:]}) == 1


def test_what_it_remembers_outlasts_a_restart() -> None:
    assert _stepped(20, saved=True) == _stepped(20)


# The laws find what is wrong.


def test_a_change_that_forgets_rows_is_found() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(JoinTree, "_joined", lambda *_: iter(()))
        with pytest.raises(AssertionError):
            test_it_goes_on_in_another_tree_when_selectivities_are_exchanged()


def test_a_loop_that_never_waits_is_found() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "consider", lambda kept, offer, *_: (kept, bool(offer.plan)))
        patched.setattr(module, "judge", lambda kept, *_: (kept, True))
        with pytest.raises(AssertionError):
            test_with_stable_data_it_stays()
