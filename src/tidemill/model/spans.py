"""Spans: the instants that an instance of a query answers for a sink, and when its rows leave.

    AT_ONCE   as soon as they are known
    HELD      when the span is AT_ONCE in a later list of spans, or the streams have ended
    KEPT      when the span is AT_ONCE in a later list of spans, and never otherwise

Rows that wait for a later list are spooled. Spans can overlap: then rows are given as often.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cut", "Leaves", "Segment", "Span", "begun_at", "seams_at", "segments"]

_BEGINNING = Time(0)


class Leaves(Enum):
    """When the rows of a span leave."""

    AT_ONCE = "at once"
    HELD = "held"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Span:
    """Some of the instants that an instance answers.

    Attributes:
        since: The first of them.
        until: The first after them.
        leaves: When its rows leave.
        joins: What is there at ``since`` was there before, given by another instance: in signed
            form it is not announced.
        hands_on: What is there at ``until`` stays, since another instance goes on with it: in
            signed form it is not withdrawn.
    """

    since: Time = _BEGINNING
    until: Time = END_OF_TIME
    leaves: Leaves = Leaves.AT_ONCE
    joins: bool = False
    hands_on: bool = False

    def __post_init__(self) -> None:
        assert 0 <= self.since <= self.until, "time does not run backwards"
        assert self.since < self.until or not self.joins, "what goes on has an instant at least"

    def __str__(self) -> str:
        end = "" if self.until == END_OF_TIME else f"{self.until}"
        how = "" if self.leaves is Leaves.AT_ONCE else f" {self.leaves.value}"
        return f"{self.since}..{end}{how}"


@dataclass(frozen=True, slots=True)
class Cut:
    """How the answer of an instance is cut.

    Attributes:
        owner: Whose answer it is.
        spans: The instants that it is asked for.
        counts: Whether it is remembered what stands, so that it can be withdrawn.
    """

    owner: str
    spans: tuple[Span, ...]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Instants of which all rows have the same fate.

    Attributes:
        since: The first of them.
        until: The first after them.
        given: How often each row leaves.
        kept: How often it may still leave later.
    """

    since: Time
    until: Time
    given: int
    kept: int


def segments(
    spans: Sequence[Span],
    first: Time = _BEGINNING,
    past: Time = END_OF_TIME,
    *,
    has_ended: bool = False,
) -> list[Segment]:
    """The instants from ``first`` to ``past``, cut where a span begins or ends.

    Args:
        spans: What is answered.
        first: Where to begin.
        past: Where to end.
        has_ended: Whether the streams have ended, so that nothing waits any more.
    """
    edges = {time for span in spans for time in (span.since, span.until) if first < time < past}
    found: list[Segment] = []
    for since, until in pairwise(sorted({first, past, *edges})):
        there = [span.leaves for span in spans if span.since <= since < span.until]
        kept = 0 if has_ended else len(there) - there.count(Leaves.AT_ONCE)
        given = len(there) - there.count(Leaves.KEPT) if has_ended else len(there) - kept
        found.append(Segment(Time(since), Time(until), given, kept))
    return found


def begun_at(spans: Sequence[Span], time: int, *, has_ended: bool = False) -> int:
    """How often what is there is announced at an instant, less how often it is withdrawn."""
    given = [span for span in spans if _is_given(span, has_ended=has_ended)]
    begin = sum(span.since == time and not span.joins for span in given)
    return begin - sum(span.until == time and not span.hands_on for span in given)


def seams_at(spans: Sequence[Span], time: int, *, has_ended: bool = False) -> tuple[int, int]:
    """How many spans go on at an instant with what others have given, and how many hand it on."""
    given = [span for span in spans if _is_given(span, has_ended=has_ended)]
    joins = sum(span.since == time and span.joins for span in given)
    return joins, sum(span.until == time and span.hands_on for span in given)


def _is_given(span: Span, *, has_ended: bool) -> bool:
    waits = (Leaves.KEPT,) if has_ended else (Leaves.HELD, Leaves.KEPT)
    return span.leaves not in waits
