"""The shape of an aggregation: what it computes, whatever the columns are that it computes it of.

Law:    aggregations of one shape have the same tables of state, column by column, and the same
        results once keys and arguments are the same columns. ``SUM(price) … GROUP BY item`` and
        ``SUM(size) … GROUP BY shop`` have one shape if the types are the same.

An argument without an expression, of ``COUNT(*) FILTER (WHERE …)``, is a column of TRUE and NULL;
the condition of any other makes its values NULL, and these are left out anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, Named
from tidemill.physical.kernels.arguments import argument_of, arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import AggregateCall, Expr
    from tidemill.model.types import DataType
    from tidemill.physical.kernels.arguments import Argument

__all__ = ["Shape", "argument_column", "key_column", "shape_of"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What is computed, of columns by number.

    Attributes:
        keys: The types of the keys.
        arguments: The types of the arguments.
        calls: The aggregates, of the columns of the arguments.
    """

    keys: tuple[DataType, ...]
    arguments: tuple[DataType, ...]
    calls: tuple[AggregateCall, ...]

    @property
    def named_keys(self) -> tuple[Named, ...]:
        """The columns of the keys."""
        names = ((key_column(i), type_) for i, type_ in enumerate(self.keys))
        return tuple(Named(name, Column(name, type_)) for name, type_ in names)


def key_column(number: int) -> str:
    """The name of the column of a key."""
    return f"@of key {number}"


def argument_column(number: int) -> str:
    """The name of the column of an argument."""
    return f"@of argument {number}"


def shape_of(keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> Shape:
    """The shape of an aggregation with some keys and aggregates."""
    known = arguments(calls)
    return Shape(
        tuple(key.type for key in keys),
        tuple(argument.type for argument in known),
        tuple(_shaped(call, argument_of(call, known)) for call in calls),
    )


def _shaped(call: AggregateCall, argument: Argument | None) -> AggregateCall:
    if argument is None:  # it counts rows
        return call
    column = Column(argument_column(argument.index), argument.type)
    # What makes no difference to the function makes none to its argument either.
    return replace(call, argument=column, condition=None, distinct=argument.distinct)
