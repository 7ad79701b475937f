"""The join whose tree changes while it runs answers like any other join of many inputs.

Its answer is computed here from the elements that come in: all combinations, instant by instant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.test_multi_join import (
    CHAINS,
    CONDITIONS,
    NAMES,
    NUMBER,
    NUMBERS,
    ORDERS3,
    PAIR,
    SEARCHED,
    combinations,
    crowd,
    plus,
    results,
)
from physical.letters import is_chronon
from physical.run import (
    Advance,
    Arrive,
    Element,
    Schedule,
    at_once,
    batch,
    elements_of,
    normal,
    run,
    schedules,
    snapshot,
)
from physical.searching import searching
from stores import StateStore, opened, refill, save
from streams import call
from tidemill.algebra.expr import Column, conjunction
from tidemill.model.batch import END
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.optimizer.search.extensions import all_trees
from tidemill.physical.joining import pairs as pairs_module
from tidemill.physical.joining import tree_counts
from tidemill.physical.joining.partners import Living
from tidemill.physical.joining.probe_plan import Probing
from tidemill.physical.joining.tree import Stage, stages, text
from tidemill.physical.joining.tree_counts import Met, measured
from tidemill.physical.joining.tree_plan import TreePlan
from tidemill.physical.joining.tree_shape import table_names, tree_of
from tidemill.physical.operators.join.join_tree import JoinTree, shape
from tidemill.physical.state.at_rest import Remembered, Saved
from tidemill.physical.state.damaged import DamagedError
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from tidemill.algebra.expr import Expr
    from tidemill.physical.joining.tree_plan import StageOrders, TreeProbe
    from tidemill.physical.operator import State


def trees_of(count: int) -> list[Stage]:
    """All trees of so many inputs."""
    return [tree for tree in all_trees(count) if isinstance(tree, Stage)]


THREE, FOUR = trees_of(3), trees_of(4)

NAMES4 = (*NAMES, "dx", "dy")
AX, AY, BX, BY, CX, CY, DX, DY = (Column(n, BIGINT if n[1] == "x" else VARCHAR) for n in NAMES4)
SUMS = conjunction(call("=", plus(AX, BX), plus(CX, DX)), call("is_not_distinct", AY, CY))
COMMON4 = conjunction(call("=", AX, BX), call("=", BX, CX), call("=", CX, DX))
CONDITIONS4 = [
    COMMON4,
    conjunction(COMMON4, call("is_not_distinct", AY, CY), call("<=", BY, DY)),
    conjunction(COMMON4, call("or", call("<", AY, BY), call("=", CY, DY))),
    SUMS,
    conjunction(call("is_not_distinct", AX, DX), call("=", AY, BY), call("=", CY, DY)),
]


BINARY = JoinTree((PAIR,) * 3, NAMES, conjunction(call("=", AX, BX), call("=", BX, CX)), THREE[-1])
MJOIN = Stage((0, 1, 2))
PAIRED = Stage((Stage((0, 1)), Stage((2, 3))))


class Adapting:
    """Changes the tree of a state after events.

    Args:
        join: The operator.
        trees: The tree after each event, if it changes.
        orders: For each stage of such a tree, maybe, the orders in which its children probe.
    """

    def __init__(
        self, join: JoinTree, trees: Sequence[Stage | None], orders: StageOrders | None = None
    ) -> None:
        self._join, self._trees, self._orders = join, iter(trees), orders

    def __call__(self, state: State, watermark: Time) -> State:
        tree = next(self._trees, None)
        if tree is not None:
            self._join.adapt(state, tree, watermark, self._orders)
            assert shape(state) == tree
        return state


def sequences(trees: list[Stage]) -> SearchStrategy[list[Stage | None]]:
    """Trees to go on with, event by event; often the one that there is."""
    return st.lists(st.none() | st.sampled_from(trees), max_size=24)


def joins(
    names: tuple[str, ...], conditions: SearchStrategy[Expr], trees: list[Stage]
) -> SearchStrategy[JoinTree]:
    count = len(names) // 2
    return st.builds(
        JoinTree,
        inputs=st.just((PAIR,) * count),
        names=st.just(names),
        condition=conditions,
        tree=st.sampled_from(trees),
        orders=st.sampled_from([(), *ORDERS3]) if count == 3 else st.just(()),
        orderly=st.just(()) | st.tuples(*[st.booleans()] * count),
    )


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    join=joins(NAMES, CONDITIONS, THREE),
    trees=sequences(THREE),
    many=st.sampled_from([4, 1 << 21]),
    searched=SEARCHED,
    reload=st.booleans(),
)
def test_each_combination_of_three_leaves_once_however_the_tree_changes(  # noqa: PLR0913
    schedule: Schedule,
    join: JoinTree,
    trees: list[Stage | None],
    many: int,
    searched: int | None,
    *,
    reload: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patched, searching(searched):
        patched.setattr(pairs_module, "_PAIRS_AT_ONCE", many)
        output = run(join, schedule, reload=reload, after=Adapting(join, trees))
    assert Counter(output.elements) == Counter(results(schedule, NAMES, join.condition))


DRAWN = {
    "schedule": schedules(PAIR, PAIR, PAIR, PAIR),
    "join": joins(NAMES4, st.sampled_from(CONDITIONS4), FOUR),
    "trees": sequences(FOUR),
    "chance": st.randoms(use_true_random=False),
    "reload": st.booleans(),
}


def is_reducible(
    schedule: Schedule, join: JoinTree, trees: list[Stage | None], chance: Random, *, reload: bool
) -> None:
    """The law; an own order of probing is drawn for each child of a stage."""
    orders = {
        stage: tuple(
            tuple(chance.sample(others, len(others)))
            for child in range(len(stage.children))
            for others in [[n for n in range(len(stage.children)) if n != child]]
        )
        for tree in trees
        if tree is not None
        for stage in stages(tree)
    }
    output = run(join, schedule, reload=reload, after=Adapting(join, trees, orders))
    for t, expected in combinations(schedule, join.names, join.condition).items():
        assert output.snapshot(t) == expected, t


@given(**DRAWN)
def test_a_join_of_four_is_snapshot_reducible_in_all_trees(
    schedule: Schedule, join: JoinTree, trees: list[Stage | None], chance: Random, *, reload: bool
) -> None:
    is_reducible(schedule, join, trees, chance, reload=reload)


@given(
    schedule=schedules(NUMBER, NUMBER, NUMBER, NUMBER),
    condition=st.sampled_from(CHAINS),
    tree=st.sampled_from(FOUR),
    trees=sequences(FOUR),
    searched=SEARCHED,
)
def test_a_join_of_four_finds_nan_and_null_in_all_trees(
    schedule: Schedule,
    condition: Expr,
    tree: Stage,
    trees: list[Stage | None],
    searched: int | None,
) -> None:
    join = JoinTree((NUMBER,) * 4, NUMBERS, condition, tree)
    with searching(searched):
        output = run(join, schedule, after=Adapting(join, trees))
    for t, expected in combinations(schedule, NUMBERS, condition).items():
        assert output.snapshot(t) == expected, t


@given(chronons=schedules(PAIR, lengths=(1,)), others=schedules(PAIR, PAIR), data=st.data())
def test_a_join_with_chronons_gives_chronons(
    chronons: Schedule, others: Schedule, data: st.DataObject
) -> None:
    early = [Arrive(port + 1, tuple(others.elements(port))) for port in (0, 1)]
    join = data.draw(joins(NAMES, CONDITIONS, THREE))
    assert is_chronon(run(join, Schedule((PAIR,) * 3, (*early, *chronons.events))))


# All trees


def dense(seed: int) -> list[Element]:
    """Elements of few values that are valid for long, so that many combinations match."""
    return [
        Element(((i + seed) % 2, "xyx"[(i * seed) % 3]), start, start + (4, 9, 20)[i % 3])
        for i in range(10)
        for start in [(11 * i + 5 * seed) % 20]
    ]


def all_changes_give_the_same(condition: Expr) -> None:
    """In each tree, of which it is changed to others while half of the elements are there."""
    elements = [dense(seed) for seed in range(4)]
    expected = Counter(results(at_once(*((PAIR, some) for some in elements)), NAMES4, condition))
    assert len(expected) > 10
    halves = [
        Arrive(port, tuple(some[half::2])) for half in (0, 1) for port, some in enumerate(elements)
    ]
    chance = Random(1)  # noqa: S311 — no secret
    for tree in FOUR:
        join = JoinTree((PAIR,) * 4, NAMES4, condition, tree)
        trees = [None] * 3 + chance.sample(FOUR, 5)
        output = run(join, Schedule((PAIR,) * 4, tuple(halves)), after=Adapting(join, trees))
        assert Counter(output.elements) == expected, text(tree)


@pytest.mark.parametrize("condition", CONDITIONS4[:3], ids=["common", "mixed", "either"])
def test_all_trees_of_four_and_changes_between_them_give_the_same(condition: Expr) -> None:
    all_changes_give_the_same(condition)


@pytest.mark.parametrize("tree", FOUR, ids=text)
def test_null_is_not_null_in_keys_of_two_inputs(tree: Stage) -> None:
    null_is_not_null_in_keys_of_two_inputs(tree)


def null_is_not_null_in_keys_of_two_inputs(tree: Stage = PAIRED) -> None:
    """Though it is in a column that is compared beside them."""
    join = JoinTree((PAIR,) * 4, NAMES4, SUMS, tree)
    some = [[Element((x, None), 0, 9) for x in xs] for xs in ((None, 1), (1,), (None, 2), (0,))]
    schedule = at_once(*((PAIR, elements) for elements in some))
    assert [e.row[::2] for e in run(join, schedule).elements] == [(1, 1, 2, 0)]


def test_what_ends_just_after_a_watermark_is_met() -> None:
    what_ends_just_after_a_watermark_is_met()


def what_ends_just_after_a_watermark_is_met() -> None:
    for tree in THREE:
        join = replace(BINARY, tree=tree)
        early = [Arrive(port, (Element((1, "x"), 0, 6),)) for port in (0, 1)]
        last = Arrive(2, (Element((1, "y"), 5, 9),))
        output = run(join, Schedule((PAIR,) * 3, (*early, Advance(5), last, Advance(6))))
        assert [(e.start, e.end) for e in output.elements] == [(5, 6)]
        assert output.sizes[1:] == [1, 0]


# What is remembered


def alive(state: State, time: int) -> dict[str, Counter[tuple[object, ...]]]:
    """The rows of each table that are there at or after a time."""
    return {
        name: Counter(map(normal, table.all().filter(pl.col(END) > time).iter_rows()))
        for name, table in state.tables.items()
    }


def are_those_of_a_run_from_the_start(
    schedule: Schedule, join: JoinTree, trees: list[Stage | None]
) -> None:
    """The law: after each change, and after each event."""
    tree_now, events = join.tree, iter((*schedule.events, Advance(END_OF_TIME)))
    so_far: list[Arrive | Advance] = []

    def check(state: State, watermark: Time) -> State:
        nonlocal tree_now
        so_far.append(next(events))
        tree_now = next(left, None) or tree_now
        join.adapt(state, tree_now, watermark)
        other = replace(join, tree=tree_now)
        expected = other.new_state()
        for event in so_far:
            match event:
                case Arrive(port, elements):
                    list(other.on_batch(expected, port, batch(PAIR, elements)))
                case Advance(time):
                    list(other.on_watermark(expected, Time(time)))
        assert alive(state, watermark) == alive(expected, watermark)
        assert measured(state).tree == tree_now
        return state

    left = iter(trees)
    run(join, schedule, after=check)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(
    schedule=schedules(PAIR, PAIR, PAIR, PAIR),
    join=joins(NAMES4, st.sampled_from(CONDITIONS4), FOUR),
    trees=sequences(FOUR),
)
def test_after_a_change_the_tables_are_those_of_a_run_from_the_start(
    schedule: Schedule, join: JoinTree, trees: list[Stage | None]
) -> None:
    are_those_of_a_run_from_the_start(schedule, join, trees)


def fed(join: JoinTree, rows: int = 12) -> State:
    """A state of three inputs that hold some rows."""
    state = join.new_state()
    for port in range(len(join.inputs)):
        list(join.on_batch(state, port, batch(PAIR, crowd(PAIR, port)[:rows])))
    return state


def test_a_table_that_was_dropped_and_made_again_is_written_again() -> None:
    """Its segments must not have names that those that are stored had."""
    state, store, saved = fed(BINARY), StateStore(), Saved()
    saved.save({"operator": Remembered(state, Time(0))}, store, "t0")
    BINARY.adapt(state, MJOIN, Time(0))
    list(BINARY.on_batch(state, 0, batch(PAIR, crowd(PAIR, 7))))
    BINARY.adapt(state, BINARY.tree, Time(0))
    saved.save({"operator": Remembered(state, Time(0))}, store, "t1")
    fresh = BINARY.new_state()
    refill(fresh, store)
    assert alive(fresh, 0) == alive(state, 0)


@pytest.mark.parametrize("tree", THREE, ids=text)
def test_a_state_goes_on_in_the_tree_in_which_it_was_saved(tree: Stage) -> None:
    state = fed(BINARY)
    BINARY.adapt(state, tree, Time(0))
    for first in THREE:
        fresh = replace(BINARY, tree=first).new_state()
        refill(fresh, save(state))
        assert shape(fresh) == tree
        assert alive(fresh, 0) == alive(state, 0)


@pytest.mark.parametrize(
    "names",
    [
        ("0", "1", "2", "0+1", "1+2"),
        ("0", "1"),
        ("0", "2", "0+1"),
        ("0", "1", "2", "0+1+2"),
        ("0", "1", "2", "1+0"),
        ("0", "1", "2", "rows"),
        ("0", "1", "2", "99999999999"),
        ("0", "1", "2", "3"),
        (),
    ],
)
def test_tables_that_are_no_tree_of_the_inputs_are_damage(names: tuple[str, ...]) -> None:
    state = fed(BINARY)
    (table, *_) = state.tables.values()
    state.tables = dict.fromkeys(names, table)
    with pytest.raises(DamagedError, match="operator"):
        opened(save(state)).states["operator"].fill(BINARY.new_state())


def test_names_of_tables_are_trees() -> None:
    for tree in chain(THREE, FOUR):
        assert tree_of(sorted(table_names(tree))) == tree


# Handover


@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    join=joins(NAMES, CONDITIONS, THREE),
    tree=st.sampled_from(THREE),
    at=st.integers(0, 20),
)
def test_what_is_handed_over_goes_on_and_what_stands_is_all_that_was_emitted(
    schedule: Schedule, join: JoinTree, tree: Stage, at: int
) -> None:
    other, taken = replace(join, tree=tree), at

    def handed_over(state: State, watermark: Time) -> State:
        nonlocal at
        at -= 1
        if at:
            return state
        standing = elements_of(join.schema, join.standing(state, watermark))
        so_far = list(results(before(schedule, taken), NAMES, join.condition))
        times = [t for t in schedule.times() if t >= watermark]
        assert all(snapshot(standing, t) == snapshot(so_far, t) for t in times)
        fresh = other.new_state()
        for port in reversed(range(3)):
            given = join.remembered(state, port, watermark)
            assert given.schema == batch(PAIR, ()).schema
            other.remember(fresh, port, given, watermark)
        assert alive(fresh, watermark) == alive(adapted(join, state, tree, watermark), watermark)
        return fresh

    output = run(join, schedule, after=handed_over)
    assert Counter(output.elements) == Counter(results(schedule, NAMES, join.condition))


def before(schedule: Schedule, count: int) -> Schedule:
    """The first events of a schedule."""
    return Schedule(schedule.schemas, schedule.events[:count])


def adapted(join: JoinTree, state: State, tree: Stage, time: Time) -> State:
    """The state in another tree."""
    join.adapt(state, tree, time)
    return state


# What is counted


def test_pairs_that_are_tried_and_found_are_counted() -> None:
    elements = [crowd(PAIR, port)[:10] for port in range(3)]
    state = BINARY.new_state()
    assert text(BINARY.tree) == "((0 1) 2)"
    for port, some in enumerate(elements):
        list(BINARY.on_batch(state, port, batch(PAIR, some)))
    pairs = results(at_once(*((PAIR, some) for some in elements[:2])), NAMES[:4], call("=", AX, BX))
    both = len(list(pairs))
    three = results(at_once(*((PAIR, some) for some in elements)), NAMES, BINARY.condition)
    came = [sum(e.row[0] is not None for e in some) for some in elements]
    found = measured(state)
    assert found.came == tuple(came)
    assert found.rows == {1: came[0], 2: came[1], 4: came[2], 3: both}
    assert found.met == {
        (1, 2): Met(came[0] * came[1], both),
        (3, 4): Met(both * came[2], len(list(three))),
    }


def test_a_step_that_was_not_probed_says_nothing() -> None:
    join = replace(BINARY, tree=MJOIN)
    state = fed(join)
    tried = {edge for edge, met in measured(state).met.items() if met.tried}
    # 2 meets 0 and then 1; the others came when it was not there.
    assert tried == {(1, 4), (2, 5)}
    none = join.new_state()
    list(join.on_batch(none, 1, batch(PAIR, crowd(PAIR, 1))))
    list(join.on_batch(none, 0, batch(PAIR, crowd(PAIR, 0))))
    assert measured(none).met == {}


def test_counts_follow_changes() -> None:
    state = BINARY.new_state()
    rate = 3 * tree_counts.ENOUGH
    for second in range(4):
        now = second * 2 * tree_counts.SPAN
        tree_counts.count_came(state, 0, rate)
        tree_counts.count_met(state, 10, 1, [(2, 100)], [5 if second < 1 else 500])
        tree_counts.pass_time(state, Time(now))
    found = measured(state)
    assert found.passed <= 2 * tree_counts.SPAN
    assert found.came[0] < 2 * rate
    assert found.met[1, 2].share == pytest.approx(0.5, abs=0.1)
    for _ in range(30):
        now += 2 * tree_counts.SPAN
        tree_counts.count_came(state, 1, rate)
        tree_counts.pass_time(state, Time(now))
    assert measured(state).met == {}
    assert measured(state).came[0] == 0


# What is wrong is found

JOINED, MET, PURGE, TABLE = JoinTree._joined, JoinTree._met, Table.purge, TreePlan.table  # noqa: SLF001


def not_filled(*_: object) -> Iterator[pl.DataFrame]:
    return iter(())


def filled_twice(join: JoinTree, state: State, stage: Stage, time: Time) -> Iterator[pl.DataFrame]:
    return chain(JOINED(join, state, stage, time), JOINED(join, state, stage, time))


def forgets_early(table: Table, column: str, time: Time) -> None:
    PURGE(table, column, Time(min(time + 1, END_OF_TIME)))


def forgets_late(table: Table, column: str, time: Time) -> None:
    PURGE(table, column, time if time == END_OF_TIME else Time(time - 1))


def met_by_some(
    join: JoinTree, state: State, own: TreeProbe, rows: pl.DataFrame, *, is_silent: bool
) -> Iterator[pl.DataFrame]:
    """The rows of the second input, and of what it is part of, do not meet others."""
    return iter(()) if own.mask & 2 else MET(join, state, own, rows, is_silent=is_silent)


def with_old_names(plan: TreePlan, mask: int, first_name: int = 0) -> Table:  # noqa: ARG001
    return TABLE(plan, mask)


@pytest.mark.parametrize(
    ("where", "what", "wrong"),
    [
        (JoinTree, "_joined", not_filled),
        (JoinTree, "_joined", filled_twice),
        (JoinTree, "_met", met_by_some),
        (pl, "min_horizontal", pl.max_horizontal),
        (pl, "max_horizontal", pl.min_horizontal),
        (Living, "is_empty", lambda partners: partners.table.rows() < 6),
    ],
)
def test_all_changes_find_what_is_wrong(
    where: object, what: str, wrong: Callable[..., object]
) -> None:
    with patch.object(where, what, wrong), pytest.raises(AssertionError):
        all_changes_give_the_same(COMMON4)


@pytest.mark.parametrize("wrong", [forgets_early, forgets_late])
def test_forgetting_at_another_time_is_found(wrong: Callable[..., object]) -> None:
    with patch.object(Table, "purge", wrong), pytest.raises(AssertionError):
        what_ends_just_after_a_watermark_is_met()


def test_null_that_equals_null_is_found() -> None:
    with patch.object(Probing, "_loose", not_filled), pytest.raises(AssertionError):
        null_is_not_null_in_keys_of_two_inputs()


@pytest.mark.parametrize("wrong", [not_filled, filled_twice])
def test_the_law_of_tables_finds_what_is_wrong(wrong: Callable[..., object]) -> None:
    schedule = at_once(*((PAIR, crowd(PAIR, seed)) for seed in range(3)))
    trees: list[Stage | None] = [None, MJOIN, Stage((Stage((0, 2)), 1))]
    with patch.object(JoinTree, "_joined", wrong), pytest.raises(AssertionError):
        are_those_of_a_run_from_the_start(schedule, BINARY, trees)


def test_names_that_are_used_again_are_found() -> None:
    with patch.object(TreePlan, "table", with_old_names), pytest.raises(AssertionError):
        test_a_table_that_was_dropped_and_made_again_is_written_again()
