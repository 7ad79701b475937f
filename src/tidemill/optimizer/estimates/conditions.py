"""Conditions that can be measured: of which it is known how many rows, or pairs, they judge.

A filter judges the rows that it takes, and a join of two inputs the pairs of rows that are valid
together. Only those count to which nothing was done before that depends on values, so that what is
measured is the share of all rows, and not of those that another condition has left (Z12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.optimizer.estimates.joins import named
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.selectivity import condition_text
from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Exchange, Input, inputs, walk_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tidemill.optimizer.estimates.flow import Flow, Work
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Judge", "Side", "judges", "pairs"]

_PLAIN = (
    interval.TimeWindow,
    interval.Project,
    interval.Number,
    interval.Since,
    interval.Identify,
    signed.ToSigned,
)
"""What keeps all rows as they are, or gives them other columns and times."""


@dataclass(frozen=True, slots=True)
class Side:
    """What comes into an operator on one side.

    Attributes:
        name: The stream or relation.
        length: For how long a row is valid, in microseconds.
        is_relation: Whether it is a relation, whose rows are there all the time.
    """

    name: str
    length: float
    is_relation: bool


@dataclass(frozen=True, slots=True)
class Judge:
    """An operator that applies one condition, to rows or to pairs of rows.

    Attributes:
        condition: The canonical text of the condition.
        sides: What comes in: one side for a filter, two for a join.
        messages: How many rows it gives for each row, or pair, of which the condition is true.
    """

    condition: str
    sides: tuple[Side, ...]
    messages: int = 1


def judges(roots: Iterable[PhysicalPlan], relations: Collection[str]) -> dict[str, Judge]:
    """The operators that apply a condition to all rows of their inputs, by fingerprint.

    Args:
        roots: The plans.
        relations: The inputs that are relations.
    """
    plans = list(roots)
    works = estimate(plans, relations=relations)
    found = {}
    for part in walk_physical(plans):
        judge = _judge(part, works, relations) if isinstance(part, Apply) else None
        if judge is not None:
            found[part.fingerprint] = judge
    return found


def pairs(one: Side, other: Side, rows: tuple[float, float], time: float, *, warm: bool) -> float:
    """How many pairs of rows there are that are valid together.

    Rows of each stream come evenly. A pair is there when its later row comes within the length of
    the earlier one; in the beginning there are no earlier ones, unless the windows are full.

    Args:
        one: One side.
        other: The other one.
        rows: How many rows have come on each side; all that there are, of a relation.
        time: In which time.
        warm: Whether windows were full in the beginning.

    >>> side = Side("s", 10.0, False)
    >>> pairs(side, side, (100, 100), 100.0, warm=True)
    2000.0
    >>> round(pairs(side, side, (100, 100), 100.0, warm=False))
    1900
    """
    both = rows[0] * rows[1]
    if one.is_relation or other.is_relation:
        return both
    if time <= 0:
        return both
    if warm:
        return both * (one.length + other.length) / time
    outside = sum(max(time - side.length, 0.0) ** 2 for side in (one, other)) / 2
    return both * (1 - outside / time**2)


def _judge(part: Apply, works: Mapping[str, Work], relations: Collection[str]) -> Judge | None:
    """What a part measures, if it does."""
    sides = [_side(below, works, relations) for below in inputs(part)]
    if any(side is None for side in sides):
        return None
    known = tuple(side for side in sides if side is not None)
    flows = [works[below.fingerprint].flow for below in inputs(part)]
    match part.operator:
        case interval.Filter(predicate=condition):
            text = condition_text(condition, flows[0].origins)
            return None if text is None else Judge(text, known)
        case interval.Join() | signed.Join() as join:
            origins = _origins(join, flows)
            text = condition_text(join.condition, origins)
            # Of a join with itself the text does not say which column is of which side.
            is_with_itself = known[0].name == known[1].name
            if text is None or is_with_itself or all(side.is_relation for side in known):
                return None
            return Judge(text, known, 2 if isinstance(join, signed.Join) else 1)
        case _:
            return None


def _origins(join: interval.Join | signed.Join, flows: list[Flow]) -> dict[str, str]:
    """Where the columns of the condition come from."""
    found: dict[str, str] = {}
    for flow in named(join.names, (join.left, join.right), flows):
        found |= flow.origins
    return found


def _side(part: PhysicalPlan, works: Mapping[str, Work], relations: Collection[str]) -> Side | None:
    """What comes in, if it is all rows of an input; ``None`` otherwise."""
    below = part
    while not isinstance(below, Input):
        if isinstance(below, Apply) and not isinstance(below.operator, _PLAIN):
            return None
        assert isinstance(below, Apply | Exchange), "plans have no other parts"
        (below,) = inputs(below)
    length = works[part.fingerprint].flow.edge.length
    return Side(below.name, length, below.name in relations)
