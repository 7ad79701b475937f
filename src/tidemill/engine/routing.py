"""Routing: which partition a row belongs to.

Law: rows that agree on the keys, NULL with NULL, NaN with NaN and 0.0 with -0.0, get the same
partition, in every process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

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
    # Hashes of a struct do not tell 0.0 from -0.0 nor one NaN from another.
    hashed = pl.struct(compile_expr(key).alias(str(i)) for i, key in enumerate(keys)).hash(seed=0)
    placed = batch.with_columns((hashed % partitions).alias(_PARTITION))
    found = placed.partition_by(_PARTITION, as_dict=True, include_key=False)
    return [found.get((partition,), batch.clear()) for partition in range(partitions)]
