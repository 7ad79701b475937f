"""Rstream: the rows that are here now, as new elements at every instant.

Law:    snapshot(out, t) == snapshot(in, t), for every t, and every element is a chronon; it is
        the split into pieces of length 1 (KB33).
State:  that of the split.
Order:  chronons, so ends are in the order of starts.

At ``END_OF_TIME`` the rest of rows that never end is one element, equal at every instant, unless
something above counts on chronons (``must_cut``; see ``split.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.physical.interval.split import Split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time
    from tidemill.physical.operator import State

__all__ = ["Rstream"]


@dataclass(frozen=True, slots=True)
class Rstream:
    """The input as chronons.

    Attributes:
        schema: The columns of the input, and of the output.
        must_cut: Whether rows that never end are an error at the end of time.
    """

    schema: Schema
    must_cut: bool = False
    _split: Split = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_split", Split(self.schema, 1, self.must_cut))

    def new_state(self) -> State:
        """No element."""
        return self._split.new_state()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Emit chronons at once; the rest is cut as time goes on."""
        return self._split.on_batch(state, port, batch)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the instants before ``time``."""
        return self._split.on_watermark(state, time)

    def held(self, state: State) -> Time:
        """The first instant that has not been emitted."""
        return self._split.held(state)
