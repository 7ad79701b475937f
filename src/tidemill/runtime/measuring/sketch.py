"""Sketches: how many different values a column has, in about a thousand bytes.

A sketch is one of Apache DataSketches, made by compressed probabilistic counting. It gets the
hashes of values, which Polars makes of whole columns. Those are the same in all processes, but only
as long as Polars has the same version: what was written with another one is not read.

Law: a sketch is that of a set of values. How often and in which order they came, and which sketches
were merged, makes no difference. The relative standard error is that of ``ERROR``.

>>> import polars as pl
>>> one, other = Sketch(), Sketch()
>>> one.add(pl.Series(["a", "b", None, "a"]))
>>> other.add(pl.Series(["b", "c"]))
>>> one.merge(other)
>>> round(one.estimate())
3
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from math import log, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from datasketches import cpc_sketch, cpc_union

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ERROR", "HASHES", "Sketch"]

_LOG_SIZE: Final = 11

ERROR: Final = log(2) / sqrt(2**_LOG_SIZE)
"""The relative standard error of an estimate: 1.5 %."""

HASHES: Final = f"polars {pl.__version__}"
"""What hashes were made with; others are those of other values."""


class Sketch:
    """The different values of a column; NULL is none."""

    __slots__ = ("_new", "_union")

    def __init__(self) -> None:
        # What is read from a union does not depend on the order in which values came.
        self._union = cpc_union(_LOG_SIZE)
        self._new: cpc_sketch | None = None

    def add(self, values: pl.Series) -> None:
        """Add some values, a sample: each is a call."""
        if self._new is None:
            self._new = cpc_sketch(_LOG_SIZE)
        known = values.drop_nulls() if values.null_count() else values
        hashes = known.hash().to_numpy().view(np.int64)
        deque(map(self._new.update, hashes.tolist()), maxlen=0)

    def merge(self, other: Sketch) -> None:
        """Add the values of another sketch."""
        self._union.update(other._result())

    def estimate(self) -> float:
        """How many different values there are."""
        return float(self._result().get_estimate())

    def write(self) -> str:
        """The sketch as a text."""
        return b64encode(self._result().serialize()).decode("ascii")

    @classmethod
    def read(cls, written: str) -> Sketch:
        """The sketch that was written.

        Raises:
            ValueError: It is no sketch.
        """
        try:
            found = cpc_sketch.deserialize(b64decode(written, validate=True))
            sketch = cls()
            sketch._union.update(found)
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"no sketch: {error}") from error
        return sketch

    @classmethod
    def merged(cls, sketches: Iterable[Sketch]) -> Sketch:
        """The values of several sketches."""
        out = cls()
        for one in sketches:
            out.merge(one)
        return out

    def _result(self) -> cpc_sketch:
        if self._new is not None:
            self._union.update(self._new)
            self._new = None
        return self._union.get_result()
