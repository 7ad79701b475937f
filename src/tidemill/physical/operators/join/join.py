"""Join of two interval streams: pairs of rows that match, valid where both are valid.

Law:    snapshot(out, t) == snapshot(left, t) ⋈ snapshot(right, t), for every t.
State:  both inputs, until the watermark has reached an element's end. An element with a NULL that
        an equality forbids is never remembered.
Order:  none promised; chronon if one of the inputs is. A pair leaves when its later element comes
        and starts no earlier than that, so nothing is held back.

A relation is an input that comes before every stream: rows valid in ``[0, END_OF_TIME)`` or in
their periods. They stay because their end has not come (KB37); nothing here is special to them.

Equalities of the two sides are looked up: NULL never equals NULL, except for IS NOT DISTINCT
FROM; NaN = NaN and 0.0 = -0.0. Without equalities all pairs are tried. Pairs are made a bounded
number at a time, so that a key that many rows share does not fill the memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, Form, empty_batch, interval_columns
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.joining.meeting import meeting_keys, passes_of
from tidemill.physical.joining.pairing import Pairing
from tidemill.physical.operator import LEFT, State
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Expiry, Instants, Traits, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Join"]

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of a left and a right row for which the condition is true.

    Attributes:
        left: The columns of the left input.
        right: The columns of the right input.
        names: Names for the columns of both, left first.
        condition: What must be true, in these names.
        orderly: For each input, whether elements end in the order of their starts; those that do
            not are laid out by expiry.
        schema: The columns of the output: those of both under ``names``.
    """

    left: Schema
    right: Schema
    names: tuple[str, ...]
    condition: Expr
    orderly: tuple[bool, bool] = field(default=(True, True), repr=False, compare=False)
    schema: Schema = field(init=False, repr=False, compare=False)
    _pairing: Pairing = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pairing = Pairing(self.left, self.right, self.names, self.condition)
        object.__setattr__(self, "schema", pairing.schema)
        object.__setattr__(self, "_pairing", pairing)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL, Form.INTERVAL),
            gives=Form.INTERVAL,
            meets=meeting_keys((self.left, self.right), self.names, self.condition),
            passes=passes_of((self.left, self.right), self.names),
            expiry=Expiry.JOINED,
            instants=Instants.JOINED,
            shortens=True,
            gains=True,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """No element of either input."""
        left, right = (
            Table(side.columns, (START, END), key=side.keys, by_expiry=not orderly)
            for side, orderly in zip(self._pairing.sides, self.orderly, strict=True)
        )
        return State(dict(zip(_SIDES, (left, right), strict=True)))

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Emit the pairs with the elements that the other input has brought; remember the batch."""
        own, other = (0, 1) if port == LEFT else (1, 0)
        tables = tuple(state.tables[side] for side in _SIDES)
        elements = self._pairing.sides[own].entry(batch)
        if elements.is_empty():
            return
        # A partner that ends before all of these begin meets none of them.
        earliest = elements[START].min()
        assert isinstance(earliest, int), "times are integers"
        by = self._pairing.sides[other].keys
        wanted = pick(elements, self._pairing.sides[own].keys)
        partners = tables[other].meeting(END, after=Time(earliest), by=by, keys=wanted)
        tables[own].insert(elements)
        yield from self._pairs(elements, partners, own)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Forget what no later element can meet."""
        # Ends are exclusive: an element ending at the watermark does not meet one starting there.
        state.tables["left"].purge(END, time)
        state.tables["right"].purge(END, time)
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """A pair starts no earlier than its later element, which has not come."""
        return END_OF_TIME

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The elements that have not ended."""
        rows = state.tables[_SIDES[port]].all()
        return self._pairing.sides[port].left(rows.filter(pl.col(END) > time))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in those of the elements that can have partners."""
        elements = self._pairing.sides[port].entry(batch)
        state.tables[_SIDES[port]].insert(elements.filter(pl.col(END) > time))

    def standing(self, state: State, time: Time) -> Batch:
        """The pairs of what is remembered: all of them have left."""
        left, right = (state.tables[side].all().filter(pl.col(END) > time) for side in _SIDES)
        if left.is_empty() or right.is_empty():
            return empty_batch(self.schema)
        return pl.concat([empty_batch(self.schema), *self._pairs(left, right, LEFT)])

    def _pairs(self, elements: pl.DataFrame, partners: pl.DataFrame, own: int) -> Iterator[Batch]:
        """The pairs of elements of one side with partners of the other."""
        for pairs in self._pairing.overlaps(elements, partners, own):
            out = pick(pairs, (*self._pairing.columns, START, END))
            out.columns = interval_columns(self.schema)
            yield out
