"""The serialization graph of a history: who must come before whom if all came one by one.

Two transactions conflict on a sub-window that one of them writes. The slide that has written what a
query reads, and those before it, come before the query; those that write it later come after.

Law: the graph has no cycle exactly if the transactions can be put into an order in which, one by
one, all read the same versions and write each sub-window in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from benchmarks.isolation.history import History

__all__ = ["Edge", "edges", "has_cycle"]

Edge = tuple[str | int, str | int]
"""Two transactions, of which the first comes before the second."""


def edges(history: History) -> frozenset[Edge]:
    """The conflicts of the transactions that commit."""
    return frozenset(_conflicts(history))


def _conflicts(history: History) -> Iterator[Edge]:
    n = history.n
    for slide in history.slides:
        for earlier in history.slides:
            if earlier < slide and earlier % n == slide % n:
                yield earlier, slide
        for query, read in history.reads.items():
            version = read.get(slide % n)
            if version is not None:
                yield (slide, query) if slide <= version else (query, slide)


def has_cycle(graph: Collection[Edge]) -> bool:
    """Whether somebody must come before itself."""
    left = {name for edge in graph for name in edge}
    while left:
        free = left - {after for before, after in graph if before in left}
        if not free:
            return True
        left -= free
    return False
