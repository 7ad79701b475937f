"""Schedulers of queries over a window that slides: what they let them read, and what they abort."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.isolation.history import (
    Abort,
    Action,
    Commit,
    CommitSlide,
    History,
    Read,
    Write,
    history,
)
from benchmarks.isolation.levels import levels
from benchmarks.isolation.scheduling import Scan, Scheduler, Window, time_to_update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MORE = settings(max_examples=10 * settings().max_examples)
"""An example is small here."""

FREE = [Scheduler.WS, Scheduler.LWS, Scheduler.TTU]
"""Those that let no slide wait."""
SLIDE = -1


@dataclass
class Driven:
    """Queries that take turns with slides, and begin again when they are aborted or done."""

    scheduler: Scheduler
    n: int
    lengths: Sequence[int]
    actions: list[Action] = field(default_factory=list)
    aborts: int = 0
    begun: int = 0

    def go(self, turns: Sequence[int]) -> History:
        window = Window(self.n)
        scans: dict[int, Scan] = {}
        for turn in turns:
            if turn == SLIDE:
                slide = window.slide()
                self.actions += (Write(slide), CommitSlide(slide))
                for query, scan in list(scans.items()):
                    if self.scheduler.is_latest and scan.is_hit(window):
                        self.actions.append(Abort(scans.pop(query).name))
                        self.aborts += 1
                continue
            if turn not in scans:
                scans[turn] = Scan(f"{turn}.{self.begun}", self.lengths[turn], window.latest)
                self.begun += 1
            scan = scans[turn]
            version = scan.next_version(self.scheduler, window)
            scan.take(window, version)
            self.actions.append(Read(scan.name, version % self.n, version))
            if scan.is_complete:
                self.actions.append(Commit(scans.pop(turn).name))
        return History(self.n, tuple(self.actions))


@st.composite
def turns(draw: st.DrawFn) -> tuple[int, list[int], list[int]]:
    """A number of sub-windows, the lengths of some queries, and who has its turn."""
    n = draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(1, n), min_size=1, max_size=3))
    who = st.integers(SLIDE, len(lengths) - 1)
    return n, lengths, draw(st.lists(who, max_size=30))


def is_kept(scheduler: Scheduler, found: History) -> bool:
    """Whether a history has the level that its scheduler promises."""
    is_ = levels(found)
    if scheduler.is_latest:
        return is_.lws
    began = {query: found.latest(found.places[query][0]) for query in found.reads}
    return is_.ws and all(max(read.values()) == began[q] for q, read in found.reads.items())


@MORE
@given(case=turns(), scheduler=st.sampled_from(FREE))
def test_what_commits_has_read_the_state_that_its_scheduler_promises(
    case: tuple[int, list[int], list[int]], scheduler: Scheduler
) -> None:
    n, lengths, order = case
    assert is_kept(scheduler, Driven(scheduler, n, lengths).go(order))


def _never(_: Scan, __: Window) -> bool:
    return False


def _of_the_sub_window_that_is_written(scan: Scan, window: Window) -> bool:
    return window.latest % window.n in scan.read


@pytest.mark.parametrize(
    ("scheduler", "order"),
    [(Scheduler.LWS, [0, SLIDE, 0]), (Scheduler.TTU, [0, SLIDE, SLIDE, 0])],
)
@pytest.mark.parametrize("broken", [_never, _of_the_sub_window_that_is_written])
def test_without_the_test_of_conflicts_a_query_reads_what_never_was(
    scheduler: Scheduler,
    order: list[int],
    broken: Callable[[Scan, Window], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A query of two of three sub-windows: what leaves its window is not what is overwritten.
    assert is_kept(scheduler, Driven(scheduler, 3, [2]).go(order))
    monkeypatch.setattr(Scan, "is_hit", broken)
    assert not levels(Driven(scheduler, 3, [2]).go(order)).ws


def test_without_copies_a_query_that_began_before_a_slide_reads_what_never_was() -> None:
    torn = history(3, "rA2 w3 c3 w4 c4 rA1 cA")
    assert not levels(torn).ws
    kept = Driven(Scheduler.WS, 3, [2]).go([0, SLIDE, SLIDE, 0])
    assert kept.reads == {"0.0": {2: 2, 1: 1}}


def test_the_time_to_update_is_that_of_the_algorithm() -> None:
    window = Window(5)
    array = [1, 2, 3, 4, 5]
    for _ in range(12):
        slide = window.slide()
        array = [time - 1 for time in array]
        array[slide % 5] = 5
        versions = range(slide - 4, slide + 1)
        assert {v % 5: time_to_update(window, v) for v in versions} == dict(enumerate(array))


def test_ttu_makes_the_history_of_the_thesis_where_the_order_of_the_ring_aborts() -> None:
    order = [0, SLIDE, 0, 0, 0, SLIDE, 0]
    made = Driven(Scheduler.TTU, 5, [5])
    expected = history(5, "r4 w5 c5 r0 r3 r2 w6 c6 r1 c")
    assert list(made.go(order).reads.values()) == list(expected.reads.values())
    assert [a.sub_window for a in made.actions if isinstance(a, Read)] == [4, 0, 3, 2, 1]
    ring = Driven(Scheduler.LWS, 5, [5])
    ring.go(order[:2])
    assert ring.aborts == 1


def fewest_aborts(n: int, length: int, order: Sequence[int]) -> int:
    """The fewest aborts of a query, whatever it reads next; it is done after its first commit."""
    states = {(n - 1, frozenset[int](), 0)}
    for turn in order:
        states = {after for state in states for after in _after(length, turn, state)}
    return min(aborts for _, _, aborts in states)


def _after(
    length: int, turn: int, state: tuple[int, frozenset[int], int]
) -> Iterator[tuple[int, frozenset[int], int]]:
    latest, read, aborts = state
    if len(read) == length:
        yield state
    elif turn == SLIDE:
        is_hit = latest + 1 - length in read
        yield latest + 1, frozenset() if is_hit else read, aborts + is_hit
    else:
        for version in range(latest - length + 1, latest + 1):
            if version not in read:
                yield latest, read | {version}, aborts


def aborts_of(scheduler: Scheduler, n: int, length: int, order: Sequence[int]) -> int:
    """The aborts of a query until its first commit."""
    driven = Driven(scheduler, n, [length])
    for end in range(len(order) + 1):
        driven = Driven(scheduler, n, [length])
        if driven.go(order[:end]).reads:
            break
    return driven.aborts


ORDERS = st.tuples(st.integers(1, 5), st.lists(st.sampled_from([0, SLIDE]), max_size=14))


@MORE
@given(case=ORDERS, data=st.data())
def test_no_order_of_reads_has_fewer_aborts_than_ttu(
    case: tuple[int, list[int]], data: st.DataObject
) -> None:
    n, order = case
    length = data.draw(st.integers(1, n))
    fewest = fewest_aborts(n, length, order)
    assert aborts_of(Scheduler.TTU, n, length, order) == fewest
    assert aborts_of(Scheduler.LWS, n, length, order) >= fewest


@MORE
@given(case=turns())
def test_ttu_aborts_nothing_that_reads_between_any_two_slides(
    case: tuple[int, list[int], list[int]],
) -> None:
    n, lengths, order = case
    everyone = range(len(lengths))
    spread = [turn for one in order for turn in ((SLIDE, *everyone) if one == SLIDE else (one,))]
    driven = Driven(Scheduler.TTU, n, lengths)
    driven.go(spread)
    assert driven.aborts == 0


def test_ttu_aborts_what_has_less_left_to_read_than_slides_come() -> None:
    driven = Driven(Scheduler.TTU, 3, [3])
    driven.go([0, 0, SLIDE])
    assert driven.aborts == 0
    driven = Driven(Scheduler.TTU, 3, [3])
    driven.go([0, 0, SLIDE, SLIDE])
    assert driven.aborts == 1


def test_instead_of_an_abort_an_old_copy_is_taken_back() -> None:
    window = Window(3)
    scan = Scan("Q", 3, window.latest)
    for version in (2, 0):
        scan.take(window, version)
    window.slide()
    assert scan.is_hit(window)
    assert scan.take_back(window) == 0
    assert (scan.again, scan.read) == ([0], {2: 2})
    assert scan.next_version(Scheduler.TTU, window) == 3


def test_a_copy_is_kept_as_long_as_a_query_has_not_read_it() -> None:
    window = Window(3)
    scan = Scan("Q", 3, window.latest)
    assert scan.kept(window) == set()
    window.slide()
    window.slide()
    assert scan.kept(window) == {0, 1}
    scan.take(window, 1)
    assert scan.kept(window) == {0}
