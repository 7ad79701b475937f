"""Validity: what time windows do, apart from the rows they do it to.

Law:    the rows that a window gives are those whose numbers ``validities`` gives, with its times.

Windows that are alike are computed once for all who look at the same rows through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.physical.frames import pick
from tidemill.physical.operators.windows.time_window import TimeWindow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tidemill.model.batch import Batch
    from tidemill.physical.operator import Operator

__all__ = ["Validity", "validities", "validity_of"]

_NUMBER = "@number"
_NUMBERS = Schema((Field(_NUMBER, BIGINT, nullable=False),))


class Validity(NamedTuple):
    """The validity that a time window gives to rows.

    Attributes:
        size: How long an element stays; ``None`` for ever.
        slide: How often the content moves.
        wanted: From when on the content is asked for.
    """

    size: int | None
    slide: int
    wanted: int | None


def validity_of(operator: Operator) -> Validity | None:
    """What an operator does, if it is a time window."""
    if not isinstance(operator, TimeWindow):
        return None
    return Validity(operator.size, operator.slide, operator.wanted)


def validities(validity: Validity, batch: Batch) -> tuple[NDArray[np.intp], pl.DataFrame]:
    """The numbers of the rows that a window shows, in order, with their starts and ends."""
    number = pl.int_range(batch.height, dtype=pl.Int64, eager=True).alias(_NUMBER)
    window = TimeWindow(_NUMBERS, *validity)
    given = list(window.on_batch(window.new_state(), 0, pick(batch, (START, END)).hstack([number])))
    shown = pl.concat(given) if given else pick(batch, (START, END)).hstack([number]).clear()
    return shown[_NUMBER].to_numpy(), pick(shown, (START, END))
