"""Decisions: what was chosen for a plan, what it was expected to cost, and what else there was.

A decision is made where a query is planned, and kept with the plan: so a restart needs no second
one, and people can see why a query runs as it does (EXPLAIN, SHOW DECISIONS).

>>> written = Alternative("s0, s1, s2", 50.0)
>>> print(Decision("join order", "s2, s1, s0", 12.0, (written,), "cheapest").text())
join order: s2, s1, s0 at 12 us/s; not s0, s1, s2 at 50 us/s (cheapest)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.codec.values import Json

__all__ = ["Alternative", "Decision", "read_decisions", "write_decisions"]

_SHOWN = 3
"""So many alternatives are named in a line of text."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """What else there was.

    Attributes:
        name: What it is called.
        cpu: What it was expected to cost, in microseconds of work for a second of the streams.
        memory: How many bytes of state it was expected to hold.
    """

    name: str
    cpu: float
    memory: float | None = None

    def text(self) -> str:
        """Its name and what it was expected to cost."""
        memory = "" if self.memory is None else f" and {self.memory:,.0f} bytes"
        return f"{self.name} at {self.cpu:,.0f} us/s{memory}"


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice among several plans with the same answer.

    Attributes:
        subject: What was chosen, as ``join order``.
        chosen: What it is called.
        cpu: What it was expected to cost, in microseconds of work for a second of the streams.
        alternatives: What else there was, the cheapest first.
        why: The reason, in a few words.
        memory: How many bytes of state it was expected to hold.
    """

    subject: str
    chosen: str
    cpu: float
    alternatives: tuple[Alternative, ...]
    why: str
    memory: float | None = None

    def text(self) -> str:
        """The decision as one line."""
        shown = ", ".join(one.text() for one in self.alternatives[:_SHOWN])
        more = len(self.alternatives) - _SHOWN
        others = f"; not {shown}" * bool(shown) + f" and {more} more" * (more > 0)
        own = Alternative(self.chosen, self.cpu, self.memory).text()
        return f"{self.subject}: {own}{others} ({self.why})"


def write_decisions(decisions: Iterable[Decision]) -> Json:
    """Decisions, for ``json``."""
    return [asdict(decision) for decision in decisions]


def read_decisions(written: Json) -> tuple[Decision, ...]:
    """The decisions that were written.

    Raises:
        TypeError: They are something else.

    >>> taken = (Decision("join order", "a, b", 1.0, (Alternative("b, a", 2.0),), "cheapest"),)
    >>> read_decisions(write_decisions(taken)) == taken
    True
    """
    return tuple(_read(one) for one in written)


def _read(written: Json) -> Decision:
    alternatives = tuple(Alternative(**one) for one in written["alternatives"])
    return Decision(**{**written, "alternatives": alternatives})
