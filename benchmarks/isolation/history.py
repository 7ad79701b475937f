"""Histories: what slides and queries do to a window of sub-windows, one action after the other.

    w5 c5        the slide 5 replaces the sub-window 5 mod n, and commits
    rA0 cA aA    the query A reads the sub-window 0, commits, aborts; without a letter it is Q
    rA0=5        it reads an old version: that of the slide 5
    uA0          it takes back what it has read there, to read it once more

The slides 0 … n - 1 have filled the window before a history begins. A version of a sub-window is
known by the slide that has written it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

__all__ = [
    "Abort",
    "Action",
    "Commit",
    "CommitSlide",
    "History",
    "Read",
    "TakeBack",
    "Write",
    "history",
]


@dataclass(frozen=True, slots=True)
class Write:
    """A slide replaces the oldest sub-window."""

    slide: int


@dataclass(frozen=True, slots=True)
class CommitSlide:
    """A slide commits."""

    slide: int


@dataclass(frozen=True, slots=True)
class Read:
    """A query reads a sub-window; ``version`` is the slide that has written what it reads."""

    query: str
    sub_window: int
    version: int


@dataclass(frozen=True, slots=True)
class TakeBack:
    """A query subtracts what it has read of a sub-window."""

    query: str
    sub_window: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A query gives its answer."""

    query: str


@dataclass(frozen=True, slots=True)
class Abort:
    """A query gives up what it has read."""

    query: str


Action: TypeAlias = Write | CommitSlide | Read | TakeBack | Commit | Abort


@dataclass(frozen=True, slots=True)
class History:
    """Actions in their order.

    Attributes:
        n: How many sub-windows there are.
        actions: What is done.
        reads: What each query that commits has read: the version of each sub-window.
        slides: The slides, in their order.
        places: Where the first and the last action of each transaction that commits stand.
    """

    n: int
    actions: tuple[Action, ...]
    reads: dict[str, dict[int, int]] = field(init=False)
    slides: tuple[int, ...] = field(init=False)
    places: dict[str | int, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        first: dict[str | int, int] = {}
        places: dict[str | int, tuple[int, int]] = {}
        reads: dict[str, dict[int, int]] = {}
        slides: list[int] = []
        for place, action in enumerate(self.actions):
            match action:
                case Write(slide):
                    expected = self.n + len(slides)
                    assert slide == expected, f"slide {expected} comes next, not {slide}"
                    slides.append(slide)
                    first[slide] = place
                case Read(query, sub_window, version):
                    first.setdefault(query, place)
                    mine = reads.setdefault(query, {})
                    assert sub_window not in mine, "a query reads a sub-window once"
                    assert version % self.n == sub_window, "a version is of its sub-window"
                    mine[sub_window] = version
                case TakeBack(query, sub_window):
                    del reads[query][sub_window]
                case CommitSlide(name) | Commit(name):
                    places[name] = (first[name], place)
                case Abort():
                    pass
                case _:
                    assert_never(action)
        assert all(slide in places for slide in slides), "all slides commit"
        object.__setattr__(self, "reads", {q: mine for q, mine in reads.items() if q in places})
        object.__setattr__(self, "slides", tuple(slides))
        object.__setattr__(self, "places", places)

    def latest(self, place: int, *, committed: bool = False) -> int:
        """The last slide that has written, or has committed, before an action."""
        done = CommitSlide if committed else Write
        before = (a.slide for a in self.actions[:place] if isinstance(a, done))
        return max(before, default=self.n - 1)


def history(n: int, text: str) -> History:
    """A history by its text.

    >>> history(5, "r0 w5 c5 r1 r2 r3 r4 c").reads
    {'Q': {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}}
    >>> history(2, "w2 rA0 c2 rA1 rB0=0 cA cB").reads
    {'A': {0: 2, 1: 1}, 'B': {0: 0}}
    """
    version = list(range(n))
    actions: list[Action] = []
    for word in text.split():
        kind, name, number, old = _parsed(word)
        match kind:
            case "w":
                version[number % n] = number
                actions.append(Write(number))
            case "r":
                actions.append(Read(name, number, version[number] if old is None else old))
            case "u":
                actions.append(TakeBack(name, number))
            case "c" if number >= 0:
                actions.append(CommitSlide(number))
            case "c":
                actions.append(Commit(name))
            case _:
                actions.append(Abort(name))
    return History(n, tuple(actions))


def _parsed(word: str) -> tuple[str, str, int, int | None]:
    found = re.fullmatch(r"([rwuca])([A-Z]?)(\d*)(?:=(\d+))?", word)
    assert found, f"{word} is no action"
    kind, name, number, old = found.groups()
    return kind, name or "Q", int(number or -1), None if old is None else int(old)
