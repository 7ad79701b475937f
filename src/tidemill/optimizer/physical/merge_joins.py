"""Joins of joins as one operator, which remembers no intermediate result (Z06).

    Join on a = c              MultiJoin on a = b AND a = c
      Join on a = b              1
        1               ->       2
        2                        3
      3

Condition: the joins are inner ones of the same form, and nothing stands between them but projects
that choose columns; so all rows that can match are in one partition already. Equal because a join
of intersected intervals does not depend on the order.

Which joins become one, and in which order each input probes the others, may have been chosen by
cost (``JoinStages``). Otherwise all do, and each input first probes those it is linked to by an
equality, and so on; of several the first one. What is saved is the memory of intermediate results,
and what it costs is that they are made again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import (
    Expr,
    Named,
    conjunction,
    used_columns,
)
from tidemill.optimizer.physical.flat_joins import flats, passes_all_rows, unique
from tidemill.physical import interval
from tidemill.physical.operators.join.merging import joining_of, merged_join
from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, inputs, over, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.optimizer.physical.flat_joins import Flat

__all__ = ["JoinStages", "Joined", "Orders", "has_stages", "merge_joins"]

_FEWEST = 3
"""A join of two is a join."""


Orders: TypeAlias = "tuple[tuple[int, ...], ...]"
"""For each input of a stage, the numbers of the others in the order in which it probes them."""


Joined: TypeAlias = "tuple[Joined, Joined] | None"
"""Joins of two, by what they join; ``None`` is an input, whatever it is."""


@dataclass(frozen=True, slots=True)
class JoinStages:
    """Which joins of joins become one.

    Attributes:
        shape: The joins of two that there are, from left to right: ``None`` is an input.
        stages: The places of the inputs that are joined by a stage, with its orders of probing.
    """

    shape: Joined
    stages: Mapping[frozenset[int], Orders]


def has_stages(chosen: JoinStages) -> bool:
    """Whether any joins become one."""
    return any(len(orders) >= _FEWEST for orders in chosen.stages.values())


def merge_joins(
    plan: PhysicalPlan, lazy: int = 0, chosen: Sequence[JoinStages] = (), *, all_: bool = True
) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with joins of three and more inputs.

    Args:
        plan: The plan.
        lazy: Where ends are known, at multiples of how many microseconds what has come is joined,
            and what is over forgotten (G-32); 0 for at once.
        chosen: What was chosen for joins of joins; each is used where so many inputs are joined.
        all_: Whether joins become one for which nothing was chosen.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    found = flats(plan, joining_of)
    orders: Mapping[str, Orders] = {}
    if chosen or not all_:
        closed, orders = _told_apart(plan, found, chosen, all_=all_)
        found = flats(plan, joining_of, closed)
    new: dict[str, PhysicalPlan] = {}

    def visit(part: PhysicalPlan) -> PhysicalPlan:
        if part.fingerprint not in new:
            new[part.fingerprint] = merged(part)
        return new[part.fingerprint]

    def merged(part: PhysicalPlan) -> PhysicalPlan:
        flat = found.get(part.fingerprint)
        if flat is None or len(flat.inputs) < _FEWEST or not _is_join(part):
            return over(part, tuple(visit(below) for below in inputs(part)))
        known = orders.get(part.fingerprint, ())
        return _joined(flat, part, [visit(below) for below, _ in flat.inputs], known, lazy)

    return visit(plan), {old: part.fingerprint for old, part in new.items()}


def _told_apart(
    plan: PhysicalPlan, flat: Mapping[str, Flat], chosen: Sequence[JoinStages], *, all_: bool
) -> tuple[frozenset[str], Mapping[str, Orders]]:
    """The parts whose results are remembered, and the orders of the joins that become one.

    What was chosen belongs to the outermost joins of its shape, between which rows may be sent to
    where they meet: what is sent is remembered in any case.
    """
    closed: set[str] = set()
    orders: dict[str, Orders] = {}
    known: set[str] = set()
    left = list(chosen)
    for part in reversed(list(walk_physical([plan]))):
        if part.fingerprint in known or not _is_join(part):
            continue
        for one in left:
            found = _Fitted(one)
            if found.fits(part, one.shape) and not (all_ and found.leaves & flat.keys()):
                left.remove(one)
                known |= found.joins
                closed |= found.closed | found.leaves
                orders |= found.orders
                break
        else:
            if not all_:
                closed |= {below.fingerprint for below in inputs(part)}
    return frozenset(closed), orders


class _Fitted:
    """Joins that have the shape of what was chosen.

    Args:
        chosen: What was chosen.

    Attributes:
        joins: The joins.
        closed: What stages remember that is given by other stages.
        leaves: The inputs.
        orders: The orders of the topmost join of each stage.
    """

    def __init__(self, chosen: JoinStages) -> None:
        self._stages = chosen.stages
        self._count = 0
        self.joins: set[str] = set()
        self.closed: set[str] = set()
        self.leaves: set[str] = set()
        self.orders: dict[str, Orders] = {}

    def fits(self, part: PhysicalPlan, shape: Joined) -> bool:
        """Whether a part has the shape; if it has, what is found in it is kept."""
        if shape is None:
            self.leaves.add(part.fingerprint)
            self._count += 1
            return True
        join = _join_of(part)
        if join is None:
            return False
        first = self._count
        sides = zip(inputs(join), shape, strict=True)
        if not all(self.fits(below, of_side) for below, of_side in sides):
            return False
        self.joins.add(join.fingerprint)
        stage = self._stages.get(frozenset(range(first, self._count)))
        if stage is not None:
            self.closed.add(part.fingerprint)
            self.orders[join.fingerprint] = stage
        return True


def _join_of(part: PhysicalPlan) -> PhysicalPlan | None:
    """The join of which a part chooses columns, or which it sends somewhere, if it is one."""
    while not _is_join(part):
        match part:
            case Exchange(below):
                part = below
            case Apply(_, (below,)) if passes_all_rows(part):
                part = below
            case _:
                return None
    return part


def _joined(
    flat: Flat,
    part: PhysicalPlan,
    below: Sequence[PhysicalPlan],
    known: Orders,
    lazy: int,
) -> PhysicalPlan:
    """One operator for all, and the columns that are wanted."""
    schemas = tuple(one.schema for one in below)
    names = tuple(
        unique(number, name) for number, schema in enumerate(schemas) for name in schema.names
    )
    orders = known if len(known) == len(below) else _orders(len(below), flat.conditions)
    orderly = tuple(is_ordered for _, is_ordered in flat.inputs)
    condition = conjunction(*flat.conditions)
    join = merged_join(flat.form, schemas, names, condition, orders, orderly, lazy)
    whole = Apply(join, tuple(below))
    columns = tuple(Named(f.name, flat.columns[f.name]) for f in part.schema)
    return Apply(interval.Project(part.schema, columns), (whole,))


def _orders(count: int, conditions: Sequence[Expr]) -> Orders:
    """For each input, the others: first those that a condition links to what is there."""
    linked: list[set[int]] = [set() for _ in range(count)]
    for condition in conditions:
        ends = {int(name.partition(":")[0]) for name in used_columns(condition)}
        for end in ends:
            linked[end] |= ends

    def order(first: int) -> tuple[int, ...]:
        left, near, found = set(range(count)) - {first}, set(linked[first]), []
        while left:
            found.append(min(near & left or left))
            left.remove(found[-1])
            near |= linked[found[-1]]
        return tuple(found)

    return tuple(order(number) for number in range(count))


def _is_join(part: PhysicalPlan) -> bool:
    return isinstance(part, Apply) and joining_of(part.operator) is not None
