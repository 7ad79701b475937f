"""Aggregation in two parts: one wherever the rows are, the other where all of a group meet.

    Aggregate           Aggregate of what is combined
      rows       ->       Combine
                            rows

Condition: every aggregate can be had from sums and extremes. It pays if many elements of a group
share their interval, as behind a window that slides (``panes``); elsewhere each element would pass
by itself, and carry more. Equal by the law of ``Combine``, to the last bit.

Where the input is in signed form, extremes need all values that are there. But the extreme of all
is that of the extremes of the partitions, and a partition tells only when its own one changes:

    Aggregate           Aggregate of partial results
      rows       ->       Aggregate, in every partition
                            rows

Condition: every aggregate of all rows can be had from those of parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.physical.operators.aggregate.aggregate import Aggregate
from tidemill.physical.operators.aggregate.combine import Combine, can_combine
from tidemill.physical.operators.aggregate.signed_aggregate import Aggregate as SignedAggregate

if TYPE_CHECKING:
    from tidemill.physical.operator import Operator

__all__ = ["in_parts", "is_split_as_usual"]

_EXTREMES = ("min", "max")

_OF_PARTS = {"min": "min", "max": "max", "bool_and": "bool_and", "bool_or": "bool_or"} | {
    "count": "sum"
}
"""By aggregate, what it is of the results of parts."""


def in_parts(operator: Operator) -> tuple[Operator, Operator] | None:
    """An aggregation as one wherever the rows are and one of what that gives.

    Returns:
        The two, or ``None`` if it is no such aggregation.
    """
    if not isinstance(operator, Aggregate) or operator.partial or operator.combined:
        return None
    if operator.keys:
        return _of_groups(operator)
    calls = [a.call for a in operator.aggregates]
    is_signed = operator.takes is Form.SIGNED
    if is_signed and all(c.function in _OF_PARTS and not c.distinct for c in calls):
        return _of_results(operator)
    needs_values = is_signed and any(c.function in _EXTREMES for c in calls)
    if can_combine(calls) and not needs_values:
        return Combine(tuple(calls)), replace(operator, panes=False, combined=True)
    return None


def is_split_as_usual(operator: Operator) -> bool:
    """Whether it is computed in two parts if nothing is known of what comes.

    So is one of all rows, which otherwise all go to one partition, where elements share intervals.
    """
    if not isinstance(operator, Aggregate) or operator.keys:
        return False
    parts = in_parts(operator)
    return parts is not None and (operator.panes or isinstance(parts[0], SignedAggregate))


def _of_groups(whole: Aggregate) -> tuple[Operator, Operator] | None:
    """An aggregate of what the groups of each partition have combined."""
    calls = tuple(a.call for a in whole.aggregates)
    if whole.takes is Form.SIGNED or not can_combine(calls):
        return None
    keys = tuple(Named(key.name, Column(key.name, key.expr.type)) for key in whole.keys)
    first = Combine(calls, whole.keys)
    return first, replace(whole, keys=keys, panes=False, combined=True)


def _of_results(whole: Aggregate) -> tuple[Operator, Operator]:
    """An aggregate of what the partitions have."""
    calls = [a.call for a in whole.aggregates]
    columns = [Column(f"@part{i}", call.type) for i, call in enumerate(calls)]
    schema = Schema(tuple(Field(column.name, column.type) for column in columns))
    parts = SignedAggregate(
        (),
        tuple(NamedAggregate(c.name, call) for c, call in zip(columns, calls, strict=True)),
        whole.input_schema,
        schema,
        panes=whole.panes,
        takes=Form.SIGNED,
        partial=True,
    )
    results = tuple(
        NamedAggregate(old.name, AggregateCall(_OF_PARTS[old.call.function], column, old.call.type))
        for old, column in zip(whole.aggregates, columns, strict=True)
    )
    return parts, replace(whole, aggregates=results, input_schema=schema, panes=False)
