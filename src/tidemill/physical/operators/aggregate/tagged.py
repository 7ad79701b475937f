"""Tagged aggregation: one for many of a shape, with one more key, the member a row belongs to.

Law:    what it gives for a tag is what the aggregation by itself gives for the rows with that tag.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Named, replace_columns
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
    from collections.abc import Iterable

    import polars as pl

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.physical.grouping.shape import Shape
    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.operator import Operator

__all__ = ["TAG", "Taken", "aggregation", "tag_key", "tagged", "taken_by"]

TAG = "@tag"


def aggregation(operator: Operator) -> Aggregate:
    """The operator, one whose traits say that others are ``alike``, as an aggregation."""
    assert isinstance(operator, Aggregate), "only aggregations are alike"
    return operator


def tagged(operator: Aggregate) -> Aggregate:
    """The aggregation of that shape with the tag as its last key."""
    shape = _shape(operator)
    tag = Named(TAG, Column(TAG, BIGINT))
    own = Field(TAG, BIGINT, nullable=False)
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
        input_schema=Schema((*(Field(name, type_) for name, type_ in read), own)),
        schema=Schema((*columns[:count], own, *columns[count:])),
    )


@dataclass(frozen=True)
class Taken:
    """What an aggregation looks at, as columns that all of its shape look at.

    Attributes:
        keys: The keys.
        arguments: The arguments of its aggregates.
    """

    keys: tuple[Expr, ...]
    arguments: tuple[Argument, ...]
    _plain: dict[str, str] = field(init=False, repr=False, compare=False)
    _made: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exprs = {key_column(i): compile_expr(key) for i, key in enumerate(self.keys)}
        plain = {key_column(i): k.name for i, k in enumerate(self.keys) if isinstance(k, Column)}
        for argument in self.arguments:
            name = argument_column(argument.index)
            exprs[name] = argument.value()
            if argument.condition is None and isinstance(argument.expr, Column):
                plain[name] = argument.expr.name
        made = tuple(expr.alias(name) for name, expr in exprs.items() if name not in plain)
        object.__setattr__(self, "_plain", {n: plain.get(n, "") for n in exprs})
        object.__setattr__(self, "_made", made)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All that is computed of rows."""
        parts = (part for a in self.arguments for part in (a.expr, a.condition))
        return (*self.keys, *(part for part in parts if part is not None))

    def over(self, columns: Iterable[Named]) -> Taken:
        """The same of the rows that the columns are computed from."""
        meaning = {column.name: column.expr for column in columns}

        def said(expr: Expr) -> Expr:
            return replace_columns(expr, lambda column: meaning[column.name])

        arguments = (
            replace(
                argument,
                expr=None if argument.expr is None else said(argument.expr),
                condition=None if argument.condition is None else said(argument.condition),
            )
            for argument in self.arguments
        )
        return Taken(tuple(map(said, self.keys)), tuple(arguments))

    def of(self, batch: Batch) -> pl.DataFrame:
        """The columns, row by row, with ``START`` and ``END``."""
        made = batch.select(self._made) if self._made else batch
        columns = [
            (batch.get_column(plain) if plain else made.get_column(name)).alias(name)
            for name, plain in self._plain.items()
        ]
        return framed([*columns, batch.get_column(START), batch.get_column(END)])

    def renamed(self, batch: Batch) -> pl.DataFrame:
        """What was combined where it came in, with the columns of keys as those of the shape."""
        numbered = enumerate(self.keys)
        return batch.rename({k.name: key_column(i) for i, k in numbered if isinstance(k, Column)})


def taken_by(operator: Aggregate) -> Taken:
    """What an aggregation looks at."""
    calls = [aggregate.call for aggregate in operator.aggregates]
    return Taken(tuple(key.expr for key in operator.keys), arguments(calls))


def _shape(operator: Aggregate) -> Shape:
    return shape_of([key.expr for key in operator.keys], [a.call for a in operator.aggregates])


def tag_key(operator: Aggregate) -> str:
    """The column of the tag in state."""
    return f"@key{len(operator.keys)}"
