"""Steps of implementing a plan that several logical operators have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.model.batch import Form
from tidemill.optimizer.physical.placement import ANYWHERE, Placed, gathered, renamed
from tidemill.physical import interval, signed
from tidemill.physical.interval import Multiplicity
from tidemill.physical.plan import Apply, Exchange, walk_physical
from tidemill.physical.traits import Emission

if TYPE_CHECKING:
    from tidemill.algebra.expr import Named
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = [
    "apply_to",
    "by_row",
    "columns_of",
    "counted",
    "distinct_rows",
    "distinct_where_they_are",
    "held_until_due",
    "in_form",
    "lies_behind",
    "only",
    "project_rows",
    "union_rows",
]


def apply_to(operator: Operator, *below: Placed, gives: Form | None = None) -> Placed:
    """An operator that leaves rows where they are and keeps the names of their columns.

    Args:
        operator: The operator.
        below: Its inputs.
        gives: The form of its output, if it is not that of its first input.
    """
    plan = Apply(operator, tuple(b.plan for b in below))
    return Placed(plan, below[0].placement, gives or below[0].form)


def in_form(placed: Placed, form: Form) -> Placed:
    """The same rows in a form (KB34)."""
    if placed.form is form:
        return placed
    schema = placed.plan.schema
    to_signed = form is Form.SIGNED
    converter: Operator = signed.ToSigned(schema) if to_signed else signed.ToIntervals(schema)
    return apply_to(converter, placed, gives=form)


def held_until_due(changes: Placed, *, late: bool) -> Placed:
    """The changes, none ahead of its time, for readers that apply them as they come.

    Args:
        changes: Those of an answer.
        late: Whether it ``lies_behind``.
    """
    schema = changes.plan.schema
    if late:
        # Partitions wait for ends of their own; behind an exchange all have come equally far.
        moved = Exchange(changes.plan, tuple(columns_of(schema)), schema)
        return apply_to(signed.Hold(schema), Placed(moved, ANYWHERE, changes.form))
    part = changes.plan
    while isinstance(part, Apply) and part.traits.passes_through:
        (part,) = part.inputs
    if isinstance(part, Apply) and part.traits.in_time:
        return changes
    return apply_to(signed.Hold(schema), by_row(changes))


def lies_behind(plan: PhysicalPlan) -> bool:
    """Whether rows may leave after the watermark has passed their starts, each when it is known."""
    return any(
        isinstance(part, Apply) and part.traits.emits is Emission.WHEN_ENDED
        for part in walk_physical([plan])
    )


def project_rows(schema: Schema, columns: tuple[Named, ...], below: Placed) -> Placed:
    """Rows computed from rows, where they are."""
    names: dict[str, frozenset[str]] = {}
    for column in columns:
        if isinstance(column.expr, Column):
            old = column.expr.name
            names[old] = names.get(old, frozenset()) | {column.name}
    operator = interval.Project(schema, columns)
    placement = renamed(below.placement, names)
    return Placed(Apply(operator, (below.plan,)), placement, below.form)


def columns_of(schema: Schema) -> list[Column]:
    """The columns of a schema, as expressions."""
    return [Column(field.name, field.type) for field in schema]


def by_row(below: Placed) -> Placed:
    """Equal rows in one partition."""
    return gathered(below, columns_of(below.plan.schema))


def distinct_rows(below: Placed, form: Form) -> Placed:
    """Each row once."""
    return distinct_where_they_are(by_row(below), form)


def distinct_where_they_are(below: Placed, form: Form) -> Placed:
    """Each row once, of rows that are in one partition if they are equal."""
    schema = below.plan.schema
    if form is below.form is Form.INTERVAL:
        return apply_to(interval.Distinct(schema), below)
    # The end of a row may come any time, so rows are counted (G-22).
    return counted(Multiplicity.DISTINCT, schema, Form.SIGNED, below)


def counted(function: Multiplicity, schema: Schema, form: Form, *below: Placed) -> Placed:
    """A set operation of rows that are in one partition if they are equal."""
    kind = signed.Counting if form is Form.SIGNED else interval.Counting
    operator = kind(function, tuple(b.plan.schema for b in below), schema)
    return apply_to(operator, *below, gives=form)


def union_rows(schema: Schema, left: Placed, right: Placed) -> Placed:
    """The rows of both sides, where they are; in signed form if one of them is."""
    if left.form is not right.form:
        left, right = in_form(left, Form.SIGNED), in_form(right, Form.SIGNED)
    operator = interval.Union(schema, right.plan.schema.names)
    by_position = dict(zip(right.plan.schema.names, map(only, left.plan.schema.names), strict=True))
    same = renamed(right.placement, by_position) == left.placement
    placement = left.placement if same else ANYWHERE
    return Placed(Apply(operator, (left.plan, right.plan)), placement, left.form)


def only(name: str) -> frozenset[str]:
    """The set of one name."""
    return frozenset({name})
