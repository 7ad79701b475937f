"""Placement: which rows are known to be in the same partition.

A placement lists what rows were hashed by: one class of columns for each key, all of whose columns
hold the key's value. Rows that agree on one column of each class are in the same partition. The
empty placement means that all rows are in one partition; ``ANYWHERE`` that nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Column, Expr
from tidemill.model.batch import Form
from tidemill.physical.plan import Exchange, PhysicalPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ANYWHERE", "ONE_PARTITION", "Placed", "Placement", "colocated", "gathered", "renamed"]

Placement: TypeAlias = tuple[frozenset[str], ...] | None

ANYWHERE: Placement = None
ONE_PARTITION: Placement = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A physical plan, where its rows are, and in which form."""

    plan: PhysicalPlan
    placement: Placement
    form: Form = Form.INTERVAL


def renamed(placement: Placement, names: Mapping[str, frozenset[str]]) -> Placement:
    """The placement in other names; ``ANYWHERE`` if a key is no longer among the columns.

    Args:
        placement: Where the rows are.
        names: For each old column the new ones that hold its value.
    """
    if placement is None:
        return ANYWHERE
    classes = tuple(
        frozenset(new for old in class_ for new in names.get(old, frozenset()))
        for class_ in placement
    )
    return classes if all(classes) else ANYWHERE


def gathered(placed: Placed, keys: Sequence[Expr]) -> Placed:
    """The rows with those that agree on the keys in one partition; moved only if they are not."""
    columns = {key.name for key in keys if isinstance(key, Column)}
    if placed.placement is not None and all(class_ & columns for class_ in placed.placement):
        return placed
    return _exchanged(placed, keys)


def colocated(
    left: Placed, right: Placed, pairs: Sequence[tuple[Expr, Expr]]
) -> tuple[Placed, Placed]:
    """Both inputs with rows that agree on all pairs in the same partition.

    If one side already lies by some of the keys, only the other one is moved.
    """
    lefts, rights = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    chosen = _key_numbers(left.placement, lefts)
    if chosen is None:
        chosen = _key_numbers(right.placement, rights)
    if chosen is None:
        chosen = list(range(len(pairs)))
    return _lying_by(left, lefts, chosen), _lying_by(right, rights, chosen)


def _key_numbers(placement: Placement, keys: Sequence[Expr]) -> list[int] | None:
    """The keys that the classes of a placement are, in its order; ``None`` if they are not."""
    if placement is None:
        return None
    numbers: list[int] = []
    for class_ in placement:
        found = [i for i, key in enumerate(keys) if isinstance(key, Column) and key.name in class_]
        if not found:
            return None
        numbers.append(found[0])
    return numbers


def _lying_by(placed: Placed, keys: Sequence[Expr], chosen: list[int]) -> Placed:
    wanted = [keys[i] for i in chosen]
    if placed.placement is not None and len(placed.placement) == len(wanted):
        columns = [key.name if isinstance(key, Column) else "" for key in wanted]
        if all(c in class_ for c, class_ in zip(columns, placed.placement, strict=True)):
            return placed
    return _exchanged(placed, wanted)


def _exchanged(placed: Placed, keys: Sequence[Expr]) -> Placed:
    classes = tuple(
        frozenset({key.name}) if isinstance(key, Column) else frozenset[str]() for key in keys
    )
    placement = classes if all(classes) else ANYWHERE
    exchange = Exchange(placed.plan, tuple(keys), placed.plan.schema)
    return Placed(exchange, placement, placed.form)
