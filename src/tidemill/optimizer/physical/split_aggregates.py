"""Scalar aggregates in two parts: one wherever the rows are, the other in one partition.

    Aggregate                       Aggregate of what is combined
      Exchange to one partition       Exchange to one partition
        input                 ->        Combine
                                          input

Condition: many elements of the input share their interval (``panes``), and every aggregate can be
had from sums and extremes. Elsewhere each element would pass by itself, and carry more.
Equal by the law of ``Combine``, to the last bit.

Where the input is in signed form, extremes need all values that are there. But the extreme of all
is that of the extremes of the partitions, and a partition tells only when its own one changes:

    Aggregate                       Aggregate of partial results
      Exchange to one partition       Exchange to one partition
        input                 ->        Aggregate, in every partition
                                          input

Condition: every aggregate of all rows can be had from those of parts.

The exchange carries an element for each interval of a batch and partition instead of each row. It
stays above time windows, which then run where the rows are (``push_exchanges.py``). Where the input
is in one partition already there is no exchange, and nothing to split.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import AggregateCall, Column
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import Form
from tidemill.model.schema import Field, Schema
from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Exchange, PhysicalPlan, rebuilt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["split_aggregates"]


def split_aggregates(plan: PhysicalPlan) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with scalar aggregates in two parts where that pays.

    Returns:
        The plan, and for each part of the given one the part of the new one that has the same
        rows, by fingerprint.
    """
    return rebuilt(plan, _split)


def _split(part: PhysicalPlan) -> PhysicalPlan:
    match part:
        case Apply(interval.Aggregate(keys=()) as whole, (Exchange(rows, ()),)):
            calls = [a.call for a in whole.aggregates]
            is_signed = whole.takes is Form.SIGNED
            if is_signed and all(c.function in _OF_PARTS and not c.distinct for c in calls):
                return _of_parts(whole, rows)
            needs_values = is_signed and any(c.function in _EXTREMES for c in calls)
            if whole.panes and interval.can_combine(calls) and not needs_values:
                combine = interval.Combine(tuple(calls))
                moved = Exchange(Apply(combine, (rows,)), (), combine.schema)
                return Apply(replace(whole, panes=False, combined=True), (moved,))
    return part


_EXTREMES = ("min", "max")

_OF_PARTS = {"min": "min", "max": "max", "bool_and": "bool_and", "bool_or": "bool_or"} | {
    "count": "sum"
}
"""By aggregate, what it is of the results of parts."""


def _of_parts(whole: interval.Aggregate, rows: PhysicalPlan) -> PhysicalPlan:
    """An aggregate of what the partitions have."""
    calls = [a.call for a in whole.aggregates]
    columns = [Column(f"@part{i}", call.type) for i, call in enumerate(calls)]
    schema = Schema(tuple(Field(column.name, column.type) for column in columns))
    parts = signed.Aggregate(
        (),
        tuple(NamedAggregate(c.name, call) for c, call in zip(columns, calls, strict=True)),
        whole.input_schema,
        schema,
        panes=whole.panes,
        takes=Form.SIGNED,
    )
    results = tuple(
        NamedAggregate(old.name, AggregateCall(_OF_PARTS[old.call.function], column, old.call.type))
        for old, column in zip(whole.aggregates, columns, strict=True)
    )
    last = replace(whole, aggregates=results, input_schema=schema, panes=False)
    return Apply(last, (Exchange(Apply(parts, (rows,)), (), schema),))
