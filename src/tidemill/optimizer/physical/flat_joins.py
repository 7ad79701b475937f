"""Joins of joins as what they join: the inputs, all conditions, and the tree that they are.

    Project a, d                         inputs      1, 2, 3
      Join on a = c                      conditions  0:a = 1:b, 0:a = 2:c
        Join on a = b                    columns     a is 0:a, d is 2:d
          1                     ->       tree        ((0 1) 2)
          2
        3

Condition: the joins are inner ones of the same form, and nothing stands between them but projects
that choose columns; so all rows that can match are in one partition already. Columns have the
number of their input before their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Expr, conjuncts, replace_columns
from tidemill.physical.joining.tree import JoinTree, Stage
from tidemill.physical.plan import Apply, PhysicalPlan, walk_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidemill.model.batch import Form
    from tidemill.physical.operator import Operator
    from tidemill.physical.operators.join.merging import Joining

__all__ = ["Flat", "flats", "passes_all_rows", "unique"]


@dataclass(frozen=True, slots=True)
class Flat:
    """Joins of joins.

    Attributes:
        form: Their form.
        inputs: What is joined, and whether it is in the order of ends.
        conditions: What must all be true, in unique names.
        columns: The unique name of each column that is left.
        tree: In which stages the inputs are joined.
        orders: For each input, the others in the order in which its rows meet them.
    """

    form: Form
    inputs: tuple[tuple[PhysicalPlan, bool], ...]
    conditions: tuple[Expr, ...]
    columns: Mapping[str, Column]
    tree: JoinTree = 0
    orders: tuple[tuple[int, ...], ...] = ((),)


def flats(
    plan: PhysicalPlan,
    joining: Callable[[Operator], Joining | None],
    closed: frozenset[str] = frozenset(),
) -> Mapping[str, Flat]:
    """What is joined by each part that joins, or chooses columns of joins.

    Args:
        plan: The plan.
        joining: What an operator joins, if it is one of those that are looked for.
        closed: Parts whose results are joined as they are.
    """
    found: dict[str, Flat] = {}
    seen: dict[str, Flat] = {}
    for part in walk_physical([plan]):
        flat = _flat(part, joining, seen)
        if flat is not None:
            found[part.fingerprint] = flat
            if part.fingerprint not in closed:
                seen[part.fingerprint] = flat
    return found


def passes_all_rows(part: Apply) -> bool:
    """Whether an operator gives a row for each one, where it is and when it comes."""
    return part.traits.passes_through and part.traits.keeps_rows


def unique(number: int, name: str) -> str:
    """What a column of an input is called."""
    return f"{number}:{name}"


def _flat(
    part: PhysicalPlan, joining: Callable[[Operator], Joining | None], flats_: Mapping[str, Flat]
) -> Flat | None:
    if not isinstance(part, Apply):
        return None
    join = joining(part.operator)
    if join is not None:
        return _joined(part, join, flats_)
    flat = flats_.get(part.inputs[0].fingerprint)
    if flat is None or not passes_all_rows(part):
        return None
    kept = {
        new: flat.columns[old.name]
        for old, names in part.traits.passes[0].items()
        for new in names
        if isinstance(old, Column)
    }
    if kept.keys() != set(part.schema.names):
        return None  # some columns are computed
    return Flat(flat.form, flat.inputs, flat.conditions, kept, flat.tree, flat.orders)


def _joined(part: Apply, join: Joining, flats_: Mapping[str, Flat]) -> Flat:
    """What a join joins, and the joins below it."""
    sides = [
        _side(below, flats_, orderly=is_ordered, form=join.form)
        for below, is_ordered in zip(part.inputs, join.orderly, strict=True)
    ]
    firsts = accumulate((len(side.inputs) for side in sides), initial=0)
    sides = [_moved(side, first) for side, first in zip(sides, firsts, strict=False)]
    below = (
        side.columns[name]
        for side, one in zip(sides, part.inputs, strict=True)
        for name in one.schema.names
    )
    columns = dict(zip(join.names, below, strict=True))
    own = conjuncts(replace_columns(join.condition, lambda c: columns[c.name]))
    return Flat(
        join.form,
        tuple(one for side in sides for one in side.inputs),
        (*(condition for side in sides for condition in side.conditions), *own),
        columns,
        Stage(tuple(side.tree for side in sides)),
        _orders(sides, join.orders),
    )


def _orders(sides: Sequence[Flat], orders: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """For each input, first the others of its side, and then side by side those that this meets."""
    firsts = list(accumulate((len(side.inputs) for side in sides), initial=0))
    ports = [range(first, end) for first, end in pairwise(firsts)]
    return tuple(
        (*within, *(port for other in order for port in ports[other]))
        for number, side in enumerate(sides)
        for order in [orders[number] if orders else [n for n in range(len(sides)) if n != number]]
        for within in side.orders
    )


def _side(part: PhysicalPlan, flats_: Mapping[str, Flat], *, orderly: bool, form: Form) -> Flat:
    known = flats_.get(part.fingerprint)
    if known is not None and known.form is form:
        return known
    columns = {f.name: Column(unique(0, f.name), f.type) for f in part.schema}
    return Flat(form, ((part, orderly),), (), columns)


def _moved(flat: Flat, by: int) -> Flat:
    """The same with its inputs numbered from another one on."""

    def moved(column: Column) -> Column:
        number, _, name = column.name.partition(":")
        return Column(unique(int(number) + by, name), column.type)

    def moved_tree(tree: JoinTree) -> JoinTree:
        return tree + by if isinstance(tree, int) else Stage(tuple(map(moved_tree, tree.children)))

    return Flat(
        flat.form,
        flat.inputs,
        tuple(replace_columns(condition, moved) for condition in flat.conditions),
        {name: moved(column) for name, column in flat.columns.items()},
        moved_tree(flat.tree),
        tuple(tuple(port + by for port in order) for order in flat.orders),
    )
