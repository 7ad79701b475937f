"""Tagged aggregation: one for many of a shape, with one more key, the member a row belongs to.

Law:    what it gives for a tag is what the aggregation by itself gives for the rows with that tag.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.physical.eval import compile_expr
from tidemill.physical.frames import framed
from tidemill.physical.grouping.shape import argument_column, key_column, shape_of
from tidemill.physical.kernels.arguments import arguments
from tidemill.physical.operators.aggregate.aggregate import Aggregate

if TYPE_CHECKING:
    import polars as pl

    from tidemill.model.batch import Batch
    from tidemill.physical.grouping.shape import Shape
    from tidemill.physical.operator import Operator

__all__ = ["TAG", "Taken", "aggregation", "tag_key", "tagged"]

TAG = "@tag"


def aggregation(operator: Operator) -> Aggregate:
    """The operator, one whose traits say that others are ``alike``, as an aggregation."""
    assert isinstance(operator, Aggregate), "only aggregations are alike"
    return operator


def tagged(operator: Aggregate) -> Aggregate:
    """The aggregation of that shape with the tag as its last key."""
    shape = _shape(operator)
    tag = Named(TAG, Column(TAG, BIGINT))
    field = Field(TAG, BIGINT, nullable=False)
    count = len(operator.keys)
    keys = (Named(f"@{i}", key.expr) for i, key in enumerate(shape.named_keys))
    values = (NamedAggregate(f"@@{i}", call) for i, call in enumerate(shape.calls))
    names = [*(f"@{i}" for i in range(count)), *(f"@@{i}" for i in range(len(shape.calls)))]
    columns = [replace(f, name=n) for f, n in zip(operator.schema, names, strict=True)]
    read = [(key_column(i), type_) for i, type_ in enumerate(shape.keys)]
    read += [(argument_column(i), type_) for i, type_ in enumerate(shape.arguments)]
    return replace(
        operator,
        keys=(*keys, tag),
        aggregates=tuple(values),
        input_schema=Schema((*(Field(name, type_) for name, type_ in read), field)),
        schema=Schema((*columns[:count], field, *columns[count:])),
    )


class Taken:
    """What an aggregation looks at, as columns that all of its shape look at.

    Args:
        operator: The aggregation; its elements are not combined yet.
    """

    def __init__(self, operator: Aggregate) -> None:
        calls = [aggregate.call for aggregate in operator.aggregates]
        keys = {key_column(i): key.expr for i, key in enumerate(operator.keys)}
        parts = {argument_column(a.index): a for a in arguments(calls)}
        plain = {name: key.name for name, key in keys.items() if isinstance(key, Column)}
        for name, argument in parts.items():
            if argument.condition is None and isinstance(argument.expr, Column):
                plain[name] = argument.expr.name
        self._names = [*keys, *parts, START, END]
        self._plain = {**plain, START: START, END: END}
        exprs = {name: compile_expr(key) for name, key in keys.items()}
        exprs |= {name: argument.value() for name, argument in parts.items()}
        self._made = [expr.alias(name) for name, expr in exprs.items() if name not in plain]

    def of(self, batch: Batch) -> pl.DataFrame:
        """The columns, row by row."""
        made = batch.select(self._made) if self._made else None
        return framed(
            [
                batch.get_column(self._plain[name]).alias(name)
                if name in self._plain or made is None
                else made.get_column(name)
                for name in self._names
            ]
        )


def _shape(operator: Aggregate) -> Shape:
    return shape_of([key.expr for key in operator.keys], [a.call for a in operator.aggregates])


def tag_key(operator: Aggregate) -> str:
    """The column of the tag in state."""
    return f"@key{len(operator.keys)}"
