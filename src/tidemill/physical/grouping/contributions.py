"""What elements contribute to an aggregation, in a form that one row can have for many of them.

    @key0 …     the keys of the group
    START, END  from when, and until when
    ROWS        how many rows of the input
    @0          the value of argument 0, if ``bags.py`` is to keep it
    @0.n …      what is added to the counters of argument 0 (``kernels/arguments.py``)
    @0.min …    the least or greatest value of argument 0, if it is asked for (``extremes.py``)

Law: contributions that agree on keys, ``START``, ``END`` and the values to be kept may be replaced
by one, with the sums of rows and counters and the least and greatest of the extremes. The results
are the same to the last bit, since counters are sums of integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.physical.eval import compile_expr
from tidemill.physical.grouping.extremes import Extreme
from tidemill.physical.kernels.arguments import ROWS, Argument, arguments
from tidemill.physical.kernels.rows import elements_of

if TYPE_CHECKING:
    from tidemill.algebra.expr import AggregateCall, Expr
    from tidemill.model.batch import Batch

__all__ = ["Contributions"]


@dataclass(frozen=True, slots=True)
class Contributions:
    """What elements contribute to some aggregates.

    Attributes:
        keys: What the rows of a group agree on.
        calls: The aggregates.
        arguments: What they look at.
        extremes: Whose least or greatest value is asked for.
    """

    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]
    arguments: tuple[Argument, ...] = field(init=False)
    extremes: tuple[Extreme, ...] = field(init=False)
    _values: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)
    _added: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = arguments(self.calls)
        extremes = tuple(
            Extreme(argument, name == "max")
            for argument in known
            for name in ("min", "max")
            if name in argument.functions
        )
        keys = (
            compile_expr(key).alias(name)
            for name, key in zip(self.key_columns(), self.keys, strict=True)
        )
        values = (*keys, *(argument.value() for argument in known), pl.col(START), pl.col(END))
        object.__setattr__(self, "arguments", known)
        object.__setattr__(self, "extremes", extremes)
        object.__setattr__(self, "_values", values)
        counters = (expr for argument in self.direct() for expr in argument.contributions())
        best = (pl.col(e.argument.column).alias(e.column) for e in extremes)
        object.__setattr__(self, "_added", (pl.lit(1, pl.Int64).alias(ROWS), *counters, *best))

    def of(self, batch: Batch) -> pl.DataFrame:
        """What each element of a batch, in either form, contributes."""
        elements, weights = elements_of(batch)
        added = elements.select(self._values).with_columns(self._added)
        if elements is batch:
            return added
        counters = (*(name for a in self.direct() for name in a.counters()), ROWS)
        return added.with_columns(pl.col(name) * weights for name in counters)

    def key_columns(self) -> list[str]:
        """The names of the columns of the keys."""
        return [f"@key{i}" for i in range(len(self.keys))]

    def direct(self) -> list[Argument]:
        """The arguments whose counters change with elements, not with the values there are."""
        return [argument for argument in self.arguments if not argument.distinct]
