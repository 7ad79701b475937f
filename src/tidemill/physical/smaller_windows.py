"""Smaller windows: the same join with windows that are smaller, made of the one with larger ones.

    Join                       Shorten by=200
      Window size=400            Join
        s               ==         Window size=600
      Window size=400                s
        t                          Window size=600
                                     t

An element of the join is a combination of elements that begin at s1, …, sn. It starts at the latest
of these, and ends at the first si + wi. With all wi smaller by d it starts at the same instant and
ends d earlier; it is there if that is not empty, and then none of those it is made of is. What
stays for ever, as the rows of a constant relation, ends no element of a join, so it may stay.

Conditions:

- All windows in the part are time windows, and differ by the same d. If one moves by slides, d is a
  multiple of each: only then starts are the same.
- What stands between them and the top passes on what is shortened (``Traits.shortens``).
- A union has no rows that stay for ever beside those of windows: they would become shorter too.
- Where windows skip what nobody asks for (``wanted``), starts depend on their size.

Laws: ``unshared`` of a plan in which parts were replaced is the plan as it was, and what stands in
their place gives the same elements in the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Final

from tidemill.physical.operators.rows.shorten import Shorten
from tidemill.physical.operators.windows.time_window import TimeWindow
from tidemill.physical.plan import Apply, Exchange, Input, inputs, over, walk_physical
from tidemill.physical.traits import Expiry

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Sizes", "shortened", "sizes_of", "unshared", "with_smaller"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The windows of a part whose elements can be shortened.

    Attributes:
        least: The smallest one, in microseconds; ``None`` if all elements stay for ever.
        slide: Of what the size can differ by multiples.
        joined: Whether there is a join above them.
    """

    least: int | None
    slide: int = 1
    joined: bool = False

    def differ_by(self, other: Sizes) -> int | None:
        """By how much the windows of another part, that is alike, are larger; if they may be."""
        assert self.least is not None, "there are windows"
        assert other.least is not None, "there are windows"
        by = other.least - self.least
        return by if by > 0 and by % self.slide == 0 else None


_LASTING: Final = Sizes(None)


def sizes_of(plan: PhysicalPlan, lasting: Container[str]) -> dict[str, Sizes]:
    """The windows of each part whose elements can be shortened, by its fingerprint.

    Args:
        plan: The plan.
        lasting: The inputs whose rows are there from the beginning to the end of time.
    """
    found: dict[str, Sizes] = {}
    for part in walk_physical([plan]):
        below = [found.get(one.fingerprint) for one in inputs(part)]
        sizes = _sizes(part, below, lasting)
        if sizes is not None:
            found[part.fingerprint] = sizes
    return found


def _sizes(part: PhysicalPlan, below: list[Sizes | None], lasting: Container[str]) -> Sizes | None:
    match part:
        case Input(name):
            return _LASTING if name in lasting else None
        case Exchange():
            return below[0]
        case Apply(TimeWindow(size=size, slide=slide, wanted=wanted)):
            if size is None:
                return _LASTING
            return Sizes(size, slide) if wanted is None else None
        case Apply():
            return _above(part, [one for one in below if one is not None])


def _above(part: Apply, below: list[Sizes]) -> Sizes | None:
    """The windows below an operator, if all its inputs can be shortened, and it passes that on."""
    if len(below) < len(part.inputs) or not part.traits.shortens:
        return None
    is_join = part.traits.expiry is Expiry.JOINED
    moving = [one for one in below if one.least is not None]
    if not moving:
        return _LASTING
    if len(moving) < len(below) and not is_join:
        return None
    least = min(one.least for one in moving if one.least is not None)
    joined = is_join or any(one.joined for one in moving)
    return Sizes(least, lcm(*(one.slide for one in moving)), joined)


def with_smaller(part: PhysicalPlan, by: int) -> PhysicalPlan:
    """A part whose elements can be shortened with all of its windows smaller."""
    done: dict[str, PhysicalPlan] = {}

    def visit(one: PhysicalPlan) -> PhysicalPlan:
        if one.fingerprint not in done:
            done[one.fingerprint] = _smaller(one, by) or over(
                one, tuple(visit(below) for below in inputs(one))
            )
        return done[one.fingerprint]

    return visit(part)


def shortened(part: PhysicalPlan, by: int, longest: int) -> Apply:
    """The elements of a part with windows that are smaller.

    Args:
        part: The part with the larger windows.
        by: By how much they are larger.
        longest: The smallest of them.
    """
    return Apply(Shorten(part.schema, by, longest), (part,))


def unshared(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan as it was before parts of it were taken from queries with larger windows.

    Returns:
        The plan, and for each part of the given one that of this one which stood in its place, by
        fingerprint.
    """
    done: dict[tuple[str, int], PhysicalPlan] = {}

    def visit(part: PhysicalPlan, by: int) -> PhysicalPlan:
        place = part.fingerprint, by
        if place not in done:
            done[place] = _unshared(part, by)
        return done[place]

    def _unshared(part: PhysicalPlan, by: int) -> PhysicalPlan:
        match part:
            case Apply(Shorten(by=more), (below,)):
                return visit(below, by + more)
            case Apply(TimeWindow() as window, (below,), epoch) if by:
                return _sized(window, visit(below, 0), epoch, by)
            case _:
                return over(part, tuple(visit(below, by) for below in inputs(part)))

    found = visit(plan, 0)
    return found, {name: part.fingerprint for (name, _), part in done.items()}


def _smaller(part: PhysicalPlan, by: int) -> PhysicalPlan | None:
    """The part, if it is where windows are."""
    match part:
        case Input():
            return part
        case Apply(TimeWindow() as window, (below,), epoch):
            return _sized(window, below, epoch, by)
        case _:
            return None


def _sized(window: TimeWindow, below: PhysicalPlan, epoch: int, by: int) -> PhysicalPlan:
    size = None if window.size is None else window.size - by
    return Apply(replace(window, size=size), (below,), epoch)
