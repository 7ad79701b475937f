"""Joins of joins as one operator whose tree can change while it runs (Z67).

    Join on a = c              JoinTree ((0 1) 2) on a = b AND a = c
      Join on a = b              1
        1               ->       2
        2                        3
      3

Condition: there are three inputs or more, all of which meet in one class of columns, so that they
are in one partition in whatever order they are joined. The joins are inner ones in interval form,
joined at once, and nothing stands between them but projects that choose columns. Nothing else reads
what a join in between gives. Equal because a join of intersected intervals does not depend on the
order.

The tree is at first the one that the joins are, with the orders of probing that were chosen for it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Named, conjunction
from tidemill.optimizer.physical.flat_joins import Flat, flats, unique
from tidemill.physical import interval
from tidemill.physical.joining.tree import Stage
from tidemill.physical.operators.join.merging import stage_of
from tidemill.physical.plan import Apply, PhysicalPlan, inputs, over, walk_physical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.model.schema import Schema

__all__ = ["adapt_joins"]

_FEWEST = 3
"""A join of two has one tree."""


def adapt_joins(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with joins whose tree can change.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    read = Counter(below.fingerprint for part in walk_physical([plan]) for below in inputs(part))
    shared = frozenset(name for name, readers in read.items() if readers > 1)
    found = flats(plan, stage_of, shared)
    new: dict[str, PhysicalPlan] = {}

    def visit(part: PhysicalPlan) -> PhysicalPlan:
        if part.fingerprint not in new:
            new[part.fingerprint] = adapted(part)
        return new[part.fingerprint]

    def adapted(part: PhysicalPlan) -> PhysicalPlan:
        flat = found.get(part.fingerprint)
        is_join = isinstance(part, Apply) and stage_of(part.operator) is not None
        if flat is None or not is_join or len(flat.inputs) < _FEWEST:
            return over(part, tuple(map(visit, inputs(part))))
        join = _join_tree(flat, [below.schema for below, _ in flat.inputs])
        if not join.traits.meets[0]:
            return over(part, tuple(map(visit, inputs(part))))
        whole = Apply(join, tuple(visit(below) for below, _ in flat.inputs))
        columns = tuple(Named(f.name, flat.columns[f.name]) for f in part.schema)
        return Apply(interval.Project(part.schema, columns), (whole,))

    return visit(plan), {old: part.fingerprint for old, part in new.items()}


def _join_tree(flat: Flat, schemas: Sequence[Schema]) -> interval.JoinTree:
    assert isinstance(flat.tree, Stage), "three inputs or more are joined"
    return interval.JoinTree(
        tuple(schemas),
        tuple(unique(n, name) for n, schema in enumerate(schemas) for name in schema.names),
        conjunction(*flat.conditions),
        flat.tree,
        flat.orders,
        tuple(is_ordered for _, is_ordered in flat.inputs),
    )
