"""Tagged aggregation: one for many that are alike, with one more key, the member a row belongs to.

Law:    what it gives for a tag is what the aggregation by itself gives for the rows with that tag.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Named, used_columns
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.physical.operators.aggregate.aggregate import Aggregate

if TYPE_CHECKING:
    from tidemill.physical.operator import Operator

__all__ = ["TAG", "aggregation", "columns_read", "tag_key", "tagged"]

TAG = "@tag"


def aggregation(operator: Operator) -> Aggregate:
    """The operator, one whose traits say that others are ``alike``, as an aggregation."""
    assert isinstance(operator, Aggregate), "only aggregations are alike"
    return operator


def tagged(operator: Aggregate) -> Aggregate:
    """The aggregation with the tag as its last key."""
    tag = Named(TAG, Column(TAG, BIGINT))
    field = Field(TAG, BIGINT, nullable=False)
    count = len(operator.keys)
    keys = (Named(f"@{i}", key.expr) for i, key in enumerate(operator.keys))
    values = (replace(a, name=f"@@{i}") for i, a in enumerate(operator.aggregates))
    names = [*(f"@{i}" for i in range(count)), *(f"@@{i}" for i in range(len(operator.aggregates)))]
    columns = [replace(f, name=n) for f, n in zip(operator.schema, names, strict=True)]
    return replace(
        operator,
        keys=(*keys, tag),
        aggregates=tuple(values),
        input_schema=Schema((*operator.input_schema, field)),
        schema=Schema((*columns[:count], field, *columns[count:])),
    )


def columns_read(operator: Aggregate) -> list[str]:
    """The columns that an aggregation looks at; none of what is already combined."""
    if operator.combined:
        return []
    calls = [aggregate.call for aggregate in operator.aggregates]
    parts = (
        *(k.expr for k in operator.keys),
        *(e for c in calls for e in (c.argument, c.condition)),
    )
    looked_at = [expr for expr in parts if expr is not None]
    return [*sorted({name for expr in looked_at for name in used_columns(expr)}), START, END]


def tag_key(operator: Aggregate) -> str:
    """The column of the tag in state."""
    return f"@key{len(operator.keys)}"
