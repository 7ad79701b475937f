"""Levels of isolation: the histories of the thesis, its theorems, and an order found by trying."""

from __future__ import annotations

import doctest
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.isolation import history as histories
from benchmarks.isolation import levels as levels_
from benchmarks.isolation.graph import edges, has_cycle
from benchmarks.isolation.history import CommitSlide, History, Read, Write, history
from benchmarks.isolation.levels import concurrent, levels, lws_by_graph, ws_by_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MORE = settings(max_examples=10 * settings().max_examples)
"""An example is small here."""

KNOWN = {
    # Five sub-windows; the slide 5 replaces the sub-window 0, and 6 replaces 1.
    "Ha": ("r0 w5 c5 w6 c6 r1 r2 r3 r4 c", {"csr"}),
    "Hb": ("r0 r1 w5 c5 w6 c6 r2 r3 r4 c", {"csr", "ws", "strong"}),
    "Hc": ("w5 c5 r0 r1 w6 c6 r2 r3 r4 c", {"csr", "ws", "strong"}),
    "Hd": ("w5 c5 r0 w6 c6 r1 r2 r3 r4 c", {"csr", "ws", "strong", "lws", "cps"}),
    "He": ("r4 w5 c5 r0 r3 r2 w6 c6 r1 c", {"csr", "ws", "strong", "lws", "cps"}),
    "Hf": ("r0 w5 c5 r1 r2 r3 w6 c6 r4 c", {"csr", "ws", "strong"}),
    "Hg": ("r0 w5 w6 c6 r1 r2 r3 r4 c c5", {"csr", "cps"}),
    "Hh": ("w5 r0 r1 r2 r3 r4 c c5", {"csr", "ws", "strong", "lws"}),
}


def reached(found: History) -> set[str]:
    is_ = levels(found)
    return {name for name in ("csr", "ws", "strong", "lws", "cps") if getattr(is_, name)}


@pytest.mark.parametrize("name", KNOWN)
def test_a_history_of_the_thesis_is_what_it_says(name: str) -> None:
    text, expected = KNOWN[name]
    assert reached(history(5, text)) == expected


@pytest.mark.parametrize(
    ("name", "order"),
    [("Ha", [6, "Q", 5]), ("Hb", ["Q", 5, 6]), ("Hc", [5, "Q", 6]), ("Hd", [5, 6, "Q"])],
)
def test_its_transactions_have_the_order_that_the_thesis_says(
    name: str, order: list[str | int]
) -> None:
    graph = edges(history(5, KNOWN[name][0]))
    at = order.index("Q")
    before, after = order[:at], order[at + 1 :]
    assert graph == {(slide, "Q") for slide in before} | {("Q", slide) for slide in after}


def test_a_query_may_read_an_old_state_that_is_kept_for_it() -> None:
    old = history(2, "w2 c2 w3 c3 rA0=0 rA1 cA")
    assert reached(old) == {"csr"}
    older = history(2, "w2 c2 w3 c3 rA0=0 rA1=1 cA")
    assert reached(older) == {"csr", "ws"}, "a state that once was, but not the one of its start"


def test_two_queries_that_no_order_can_put_right() -> None:
    found = history(2, "rA0 w2 c2 rB0 rB1 cB w3 c3 rA1 cA")
    assert has_cycle(edges(found))
    assert reached(found) == set()
    alone = history(2, "rA0 w2 c2 w3 c3 rA1 cA")
    assert reached(alone) == {"csr"}, "A alone comes after the slide 3 and before the slide 2"


def test_slides_of_a_sub_window_commit_in_their_order() -> None:
    assert levels(history(2, "w2 w3 w4 c3 c2 c4")).cps
    assert not levels(history(2, "w2 w3 w4 c4 c3 c2")).cps


def test_what_a_query_had_read_before_it_was_aborted_does_not_count() -> None:
    assert reached(history(2, "rA0 w2 c2 w3 c3 rA1 aA rB0 rB1 cB")) == {
        *("csr", "ws", "strong", "lws", "cps")
    }


def test_what_is_taken_back_does_not_count() -> None:
    assert history(2, "rA0 w2 c2 uA0 rA0 rA1 cA").reads == {"A": {0: 2, 1: 1}}


def test_for_a_shorter_window_the_graph_does_not_know() -> None:
    # What slides past a query that does not read it is no conflict, and still a new state.
    late = history(3, "rA2 w3 c3 rA1 cA")
    assert (levels(late).lws, levels(late).cps) == (False, True)
    torn = history(3, "rA1 w3 c3 rA0 cA")
    assert (levels(torn).ws, ws_by_graph(torn)) == (False, True)


def test_examples_run() -> None:
    assert doctest.testmod(histories) == (0, 2)
    assert doctest.testmod(levels_) == (0, 2)


@st.composite
def whole_windows(draw: st.DrawFn, *, at_once: bool = False) -> History:
    """Queries that read the whole window in some order, while it slides."""
    n = draw(st.integers(1, 4))
    queries = "ABC"[: draw(st.integers(1, 3))]
    slides = draw(st.integers(0, 5))
    left = {query: draw(st.permutations(range(n))) for query in queries}
    turns = draw(st.permutations([*queries * n, *"w" * slides]))
    words: list[str] = []
    pending: list[int] = []
    slide = n
    for turn in turns:
        if turn == "w":
            words.append(f"w{slide}")
            pending.append(slide)
            slide += 1
        else:
            words.append(f"r{turn}{left[turn].pop()}")
            words += [] if left[turn] else [f"c{turn}"]
        while pending and (at_once or draw(st.booleans())):
            words.append(f"c{pending.pop(draw(st.integers(0, len(pending) - 1)))}")
    return history(n, " ".join([*words, *(f"c{slide}" for slide in pending)]))


@MORE
@given(found=whole_windows())
def test_the_theorems_say_what_was_read(found: History) -> None:
    is_ = levels(found)
    assert is_.ws == ws_by_graph(found)
    assert is_.lws == lws_by_graph(found)


@MORE
@given(found=whole_windows())
def test_each_level_has_the_next_one(found: History) -> None:
    is_ = levels(found)
    assert [is_.lws, is_.strong, is_.ws, is_.csr] == sorted([is_.lws, is_.strong, is_.ws, is_.csr])


@MORE
@given(found=whole_windows(at_once=True))
def test_if_slides_commit_at_once_latest_is_commit_order_preserving(found: History) -> None:
    is_ = levels(found)
    assert is_.lws == is_.cps


@MORE
@given(found=whole_windows(at_once=True))
def test_if_slides_commit_at_once_a_query_that_none_meets_is_latest(found: History) -> None:
    if not any(concurrent(found, query) for query in found.reads):
        assert levels(found).lws


@MORE
@given(found=whole_windows())
def test_a_graph_without_a_cycle_is_an_order_found_by_trying(found: History) -> None:
    names: list[str | int] = [*found.slides, *found.reads]
    assert (not has_cycle(edges(found))) == any(
        _reads_the_same(found, order) for order in permutations(names)
    )


def _reads_the_same(found: History, order: Sequence[str | int]) -> bool:
    """Whether all read the same one by one, and write each sub-window in the same order."""
    version = list(range(found.n))
    for name in order:
        if isinstance(name, int):
            if version[name % found.n] > name:
                return False
            version[name % found.n] = name
        elif any(version[i] != read for i, read in found.reads[name].items()):
            return False
    return True


@pytest.mark.parametrize(
    "broken",
    [
        lambda: History(2, (Write(3), CommitSlide(3))),
        lambda: History(2, (Write(2),)),
        lambda: History(2, (Read("A", 0, 1),)),
        lambda: history(2, "rA0 rA0"),
        lambda: history(2, "x1"),
    ],
)
def test_what_cannot_happen_is_no_history(broken: Callable[[], History]) -> None:
    with pytest.raises(AssertionError):
        broken()
