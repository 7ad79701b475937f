"""Live input on a clock of its own: how long after an event its result is out.

The engine is one server. It takes all that has arrived by now as its next step, waits for the
next arrival only if there is nothing, and while it works more arrives:

    clock  = max(clock, arrival of the first event that waits)
    step   = all events with arrival <= clock
    clock += seconds the step took, by the clock of this machine
    response of each result of the step = clock - arrival of the event that it answers

The work is done and measured, only the waiting is not: an hour with nothing to do costs nothing.
Everything else is as it would be, also that steps grow when the server is behind. What is left out
is what others do with the machine while the server waits.

What others do while it works is in the times. So it is noted how much of a core the server got: if
that is much less than a whole one, responses and rates are those of a busy machine, not of the
server, and what shows them says so with ``disturbed``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Course", "Served", "Step", "disturbed", "live", "quantile"]

WHOLE = 0.9
"""A server that gets this share of a core is not disturbed."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a server has done with some events.

    Attributes:
        seconds: How long it took.
        answered: For each result, when the event arrived that it answers, in seconds.
        processor: For how many of the seconds it had a processor, if that is known.
    """

    seconds: float
    answered: pl.Series
    processor: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the clock.

    Attributes:
        began: When it began.
        seconds: How long it took.
        events: How many events it took.
        waited: How long the first of them had been waiting.
        processor: For how many of the seconds there was a processor, if that is known.
    """

    began: float
    seconds: float
    events: int
    waited: float
    processor: float | None = None


@dataclass(slots=True)
class Course:
    """What became of all events.

    Attributes:
        steps: The steps, in order.
        parts: How late the results were, in seconds, part by part.
    """

    steps: list[Step] = field(default_factory=list)
    parts: list[pl.Series] = field(default_factory=list)

    @property
    def responses(self) -> pl.Series:
        """How late each result was, in seconds."""
        none = pl.Series("response", [], pl.Float64)
        return pl.concat([none, *(part.rename("response") for part in self.parts)])

    @property
    def busy(self) -> float:
        """The share of the time in which the server worked."""
        first, last = self.steps[0], self.steps[-1]
        return sum(s.seconds for s in self.steps) / (last.began + last.seconds - first.began)

    @property
    def share(self) -> float | None:
        """How much of a core the server got while it worked, if that is known."""
        known = [step.processor for step in self.steps if step.processor is not None]
        if not known or len(known) < len(self.steps):
            return None
        return sum(known) / sum(step.seconds for step in self.steps)

    @property
    def events(self) -> int:
        """How many events there were."""
        return sum(step.events for step in self.steps)

    def late(self, share: float) -> float:
        """The response that such a share of the results was not later than; nearest rank."""
        return quantile(self.responses, share)

    def note(self, step: Step, answered: pl.Series) -> None:
        """Add a step."""
        self.steps.append(step)
        self.parts.append(step.began + step.seconds - answered.cast(pl.Float64))


def quantile(values: pl.Series, share: float) -> float:
    """The least value that at least such a share is not above; 0 if there are none.

    >>> quantile(pl.Series([3.0, 1.0, 2.0, 4.0]), 0.5)
    2.0
    """
    if values.is_empty():
        return 0.0
    rank = max(0, -(-round(share * values.len() * 1_000_000) // 1_000_000) - 1)
    return float(values.sort()[min(rank, values.len() - 1)])


def disturbed(shares: Iterable[float | None]) -> tuple[str, ...]:
    """What must be said below a table of drives that got such shares of a core.

    >>> disturbed([0.97, None]), disturbed([0.97, 0.4])
    ((), ('THE MACHINE WAS BUSY: a drive got 40 % of a core; times are not its.',))
    """
    least = min((share for share in shares if share is not None), default=1.0)
    if least >= WHOLE:
        return ()
    return (f"THE MACHINE WAS BUSY: a drive got {100 * least:.0f} % of a core; times are not its.",)


def live(arrivals: Sequence[float], serve: Callable[[int, int], Served]) -> Course:
    """Let a server answer what arrives.

    Args:
        arrivals: When each event arrives, in seconds, in order.
        serve: Does the work for the events from a number up to, but not including, another.
    """
    course, clock, first = Course(), float("-inf"), 0
    while first < len(arrivals):
        clock = max(clock, arrivals[first])
        last = bisect_right(arrivals, clock, lo=first)
        served = serve(first, last)
        course.note(
            Step(clock, served.seconds, last - first, clock - arrivals[first], served.processor),
            served.answered,
        )
        clock += served.seconds
        first = last
    return course
