"""Schedulers: what a running query reads next, and what becomes of it when the window slides.

    SERIAL   the query locks the window: slides wait for it, and so does every other query
    WS       it reads the state it began with; what is overwritten meanwhile is kept for it
    LWS      it reads the youngest sub-windows in the order of the ring; a slide that takes one
             from its window that it has read aborts it (Algorithm 7.1)
    TTU      the same, but it reads the sub-window first that will be overwritten last, so that
             what is in danger is read last (Algorithm 7.2)

The time to update of a sub-window (TTU) is the number of slides until it is overwritten: n when it
has just been written, 1 when it is next. So the youngest sub-windows have the highest.

Law: whatever the order of steps and slides, a query that commits has read the state it began with
under SERIAL and WS, and the last one under LWS and TTU; and only SERIAL lets a slide wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Scan", "Scheduler", "Window", "time_to_update"]


class Scheduler(Enum):
    """Who says what is read next."""

    SERIAL = "SERIAL"
    WS = "WS"
    LWS = "LWS"
    TTU = "TTU"

    @property
    def is_latest(self) -> bool:
        """Whether queries follow the window while it slides."""
        return self in {Scheduler.LWS, Scheduler.TTU}


@dataclass(slots=True)
class Window:
    """A ring of sub-windows.

    Attributes:
        n: How many there are.
        latest: The last slide; at first, the slides 0 … n - 1 have filled the window.
    """

    n: int
    latest: int = field(init=False)

    def __post_init__(self) -> None:
        self.latest = self.n - 1

    def slide(self) -> int:
        """Replace the oldest sub-window."""
        self.latest += 1
        return self.latest


def time_to_update(window: Window, version: int) -> int:
    """How many slides there are until a version is overwritten."""
    return window.n - (window.latest - version)


@dataclass(slots=True)
class Scan:
    """A query that is running.

    Attributes:
        name: Which one.
        length: How many sub-windows it reads, the youngest.
        start: The last slide when it began.
        read: What it has read: the version of each sub-window.
        again: The old versions that it must read again, to take them back.
    """

    name: str
    length: int
    start: int
    read: dict[int, int] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be read."""
        return len(self.read) == self.length and not self.again

    def next_version(self, scheduler: Scheduler, window: Window) -> int:
        """The version of a sub-window that it reads next."""
        n, last = window.n, window.latest if scheduler.is_latest else self.start
        # The youngest first: they have the highest time to update.
        unread = (v for v in range(last, last - self.length, -1) if v % n not in self.read)
        if scheduler is Scheduler.LWS:
            return min(unread, key=lambda version: version % n)
        return next(unread)

    def take(self, window: Window, version: int) -> None:
        """It has read a sub-window."""
        self.read[version % window.n] = version

    def is_hit(self, window: Window) -> bool:
        """Whether the last slide took a sub-window from its window that it has read."""
        return (window.latest - self.length) % window.n in self.read

    def take_back(self, window: Window) -> int:
        """Forget that sub-window; its old copy is read again, so that its rows are subtracted."""
        sub_window = (window.latest - self.length) % window.n
        self.again.append(self.read.pop(sub_window))
        return sub_window

    def kept(self, window: Window) -> set[int]:
        """What is overwritten, and kept for it if it reads the state it began with."""
        gone = range(self.start - self.length + 1, window.latest - window.n + 1)
        return {version for version in gone if version % window.n not in self.read}
