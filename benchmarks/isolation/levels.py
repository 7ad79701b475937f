"""Levels of isolation: which states of the window the queries of a history have read.

    CSR      conflict serializable: all could have come one by one, in some order
    WS       window serializable: each query has read a state that the window once had
    strong   it is not older than that of the last slide committed before the query began
    LWS      latest window serializable: it is that of the moment in which the query committed
    CPS      commit order preserving: conflicts are in the order of commits

Law: LWS ⇒ strong ⇒ WS ⇒ CSR. The other way round, none. If slides commit at once and queries read
the whole window as it is, LWS ⇔ CPS. WS is what databases call snapshot isolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.isolation.graph import edges, has_cycle

if TYPE_CHECKING:
    from collections.abc import Collection

    from benchmarks.isolation.history import History

__all__ = [
    "Levels",
    "concurrent",
    "is_commit_order_preserving",
    "levels",
    "lws_by_graph",
    "state_of",
    "ws_by_graph",
]


@dataclass(frozen=True, slots=True)
class Levels:
    """What a history is."""

    csr: bool
    ws: bool
    strong: bool
    lws: bool
    cps: bool


def levels(history: History) -> Levels:
    """Which levels a history reaches, by what was read."""
    states = {query: state_of(read.values()) for query, read in history.reads.items()}
    places = {query: history.places[query] for query in states}
    return Levels(
        csr=not has_cycle(edges(history)),
        ws=all(state is not None for state in states.values()),
        strong=all(
            state is not None and state >= history.latest(places[query][0], committed=True)
            for query, state in states.items()
        ),
        lws=all(state == history.latest(places[query][1]) for query, state in states.items()),
        cps=is_commit_order_preserving(history),
    )


def state_of(versions: Collection[int]) -> int | None:
    """The last slide of the state that some versions are; ``None`` if no window ever had them.

    They are the youngest sub-windows of a state if there is none missing between them.

    >>> state_of([4, 3, 5])
    5
    >>> state_of([6, 4, 3]) is None
    True
    """
    assert versions, "a query reads something"
    last = max(versions)
    return last if sorted(versions) == list(range(last - len(versions) + 1, last + 1)) else None


def is_commit_order_preserving(history: History) -> bool:
    """Whether of any two that conflict the first commits first."""
    end = {name: places[1] for name, places in history.places.items()}
    return all(end[before] < end[after] for before, after in edges(history))


def concurrent(history: History, query: str) -> list[int]:
    """The slides that overlap with a query."""
    first, last = history.places[query]
    return [s for s in history.slides if history.places[s][1] > first and _begin(history, s) < last]


def _begin(history: History, slide: int) -> int:
    return history.places[slide][0]


def ws_by_graph(history: History) -> bool:
    """Theorem 7.1: no query comes after a slide and before an earlier one.

    It says the same as ``levels`` if queries read the whole window.
    """
    graph = edges(history)
    return not any(
        isinstance(early, int) and isinstance(late, int) and early < late
        for late, query in graph
        if query in history.reads
        for after, early in graph
        if after == query
    )


def lws_by_graph(history: History) -> bool:
    """Theorem 7.2: every slide that overlaps with a query comes before it.

    It says the same as ``levels`` if queries read the whole window as it is.
    """
    graph = edges(history)
    return all(
        (slide, query) in graph and (query, slide) not in graph
        for query in history.reads
        for slide in concurrent(history, query)
    )
