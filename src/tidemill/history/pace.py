"""Pace: how many kept rows a step replays, so that what comes does not wait for them.

A replay takes at most a share of the time of a step, as far as that is known: from how long steps
take without one, and from what a replayed row has taken so far. Where nothing is known yet, and
however fast replays are, there is a greatest number of rows; however slow they are, a least one.

Law: ``least <= rows <= most``; if steps take what they took, and rows as well, a step that replays
``rows`` of them spends no more than the share on it, or replays the least number.

>>> pace = Pace(most=1_000, share=0.5, least=10)
>>> pace.rows
1000
>>> pace.done(0.1, 0)
>>> pace.done(1.1, 1_000)  # a row takes a millisecond
>>> pace.rows
100
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["LEAST_ROWS", "REPLAY_ROWS", "REPLAY_SHARE", "Pace"]

REPLAY_ROWS = 250_000
"""About so many rows are replayed in a step at most."""

REPLAY_SHARE = 0.75
"""Replays take at most this share of a step's time."""

LEAST_ROWS = 20_000
"""About so many rows are replayed in a step in any case: fewer take as long."""

_SMOOTHED = 0.5
"""How much of what is known comes from the latest step."""


@dataclass(slots=True)
class Pace:
    """How many rows to replay in the next step.

    Attributes:
        most: The greatest number of rows.
        share: The share of a step's time that replays may take.
        least: The least number of rows, if that is less than the greatest.
    """

    most: int = REPLAY_ROWS
    share: float = REPLAY_SHARE
    least: int = LEAST_ROWS
    _live: float | None = field(default=None, init=False)
    _each: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        assert 0 < self.share < 1, "what comes has a share, and what is replayed has one"
        assert self.most >= 1, "a replay goes on"

    @property
    def rows(self) -> int:
        """About how many rows the next step replays."""
        if self._live is None or not self._each:
            return self.most
        allowed = self._live * self.share / (1 - self.share) / self._each
        return int(min(self.most, max(self.least, allowed)))

    def done(self, seconds: float, rows: int) -> None:
        """Learn from a step.

        Args:
            seconds: How long it took.
            rows: How many rows it replayed.
        """
        if rows == 0:
            self._live = _smoothed(self._live, seconds)
        elif self._live is not None:
            self._each = _smoothed(self._each, max(seconds - self._live, 0.0) / rows)


def _smoothed(known: float | None, new: float) -> float:
    return new if known is None else known + _SMOOTHED * (new - known)
