"""Routing: which partition a row belongs to.

Law: rows that agree on the keys, NULL with NULL, NaN with NaN and 0.0 with -0.0, get the same
partition, in every process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import Kind
from tidemill.physical.eval import compile_expr

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch

__all__ = ["route"]

_PARTITION = "@partition"


def route(batch: Batch, keys: tuple[Expr, ...], partitions: int) -> list[Batch]:
    """The rows of the batch by partition; without keys all are in the first."""
    if partitions == 1 or not keys:
        return [batch, *(batch.clear() for _ in range(partitions - 1))]
    hashed = pl.struct(_canonical(key).alias(str(i)) for i, key in enumerate(keys)).hash(seed=0)
    placed = batch.with_columns((hashed % partitions).alias(_PARTITION))
    found = placed.partition_by(_PARTITION, as_dict=True, include_key=False)
    return [found.get((partition,), batch.clear()) for partition in range(partitions)]


def _canonical(key: Expr) -> pl.Expr:
    """The key with one representation for values that are equal."""
    value = compile_expr(key)
    if key.type.kind is not Kind.DOUBLE:
        return value
    return pl.when(value.is_nan()).then(float("nan")).otherwise(value + 0.0)
