"""Join of two signed streams: each change of one side meets the rows of the other.

Law:    snapshot(out, t) == snapshot(left, t) ⋈ snapshot(right, t), for every t. A row that appears
        brings its pairs, and one that is withdrawn withdraws them, each once.
State:  for each side ``pending`` changes at or after the watermark, and the rows that are there,
        each once with how often. A row with a NULL that an equality forbids is never remembered.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.

Up to the watermark it is known when rows come and go, so pairs are made of pieces (``pieces.py``),
as in interval form: what comes and goes before a partner comes makes no pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import (
    END,
    SIGN,
    START,
    TIME,
    TIME_TYPE,
    Form,
    empty_batch,
    signed_columns,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.joining.meeting import meeting_keys, passes_of
from tidemill.physical.joining.pairing import Pairing
from tidemill.physical.joining.pairs import OTHER
from tidemill.physical.operator import LEFT, State
from tidemill.physical.signs.handed import appeared, handed, take_in
from tidemill.physical.signs.pieces import changes_of, standing, take_touched
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, state_tables

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
        schema: The columns of the output: those of both under ``names``.
    """

    left: Schema
    right: Schema
    names: tuple[str, ...]
    condition: Expr
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
            takes=(Form.SIGNED, Form.SIGNED),
            gives=Form.SIGNED,
            meets=meeting_keys((self.left, self.right), self.names, self.condition),
            passes=passes_of((self.left, self.right), self.names),
            emits=Emission.ON_WATERMARK,
            expiry=Expiry.JOINED,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """No row of either input."""
        tables: dict[str, Table] = {}
        for name, side in zip(_SIDES, self._pairing.sides, strict=True):
            row = {c: type_ for c, type_ in side.columns.items() if c not in (START, END)}
            count = {SIGN: pl.Int64()}
            tables[f"{name}.pending"] = Table({**row, TIME: TIME_TYPE, **count}, (TIME,))
            # Without equalities all rows are partners, but those that change are found by value:
            # whatever the keys are, one that goes does not look at all others of its key.
            keys = side.keys or list(row)
            within = [column for column in row if column not in keys]
            tables[name] = KeyedTable({**row, **count}, (), index=keys, within=within)
        return State(tables)

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        number = 0 if port == LEFT else 1
        changes = self._pairing.sides[number].entry(batch, (TIME, SIGN))
        state.tables[f"{_SIDES[number]}.pending"].insert(changes)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the pairs that appear or are withdrawn before ``time``."""
        left, right = (keyed(state, name) for name in _SIDES)
        first, second = (
            take_touched(state.tables[f"{name}.pending"].extract(TIME, time), keyed(state, name))
            for name in _SIDES
        )
        # What changes on one side meets all there is on the other, and what changes there meets
        # what does not change here.
        if not first.pieces.is_empty():
            known = self._standing(right, first.pieces, 0)
            partners = pl.concat([pick(second.pieces, known.columns), known])
            yield from self._pairs(first.pieces, partners, 0)
        if not second.pieces.is_empty():
            yield from self._pairs(second.pieces, self._standing(left, second.pieces, 1), 1)
        for table, touched in ((left, first), (right, second)):
            if time == END_OF_TIME:
                table.clear()
            else:
                table.insert(touched.rows)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The rows that are there, and the changes to come."""
        rows, pending = (state.tables[f"{_SIDES[port]}{part}"] for part in ("", ".pending"))
        return self._pairing.sides[port].left(handed(rows, pending, time), (TIME, SIGN))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in what can have partners."""
        changes = self._pairing.sides[port].entry(batch, (TIME, SIGN))
        name = _SIDES[port]
        take_in(changes, keyed(state, name), state.tables[f"{name}.pending"], time)

    def standing(self, state: State, time: Time) -> Batch:
        """The pairs of the rows that are there."""
        left, right = (standing(keyed(state, name).all()) for name in _SIDES)
        out = [empty_batch(self.schema, Form.SIGNED)]
        if not (left.is_empty() or right.is_empty()):
            for pairs in self._pairing.overlaps(left, right, LEFT):
                counted = pairs.with_columns(pl.col(SIGN) * pl.col(SIGN + OTHER))
                there = appeared(pick(counted, (*self._pairing.columns, SIGN)), time)
                there.columns = signed_columns(self.schema)
                out.append(there)
        return pl.concat(out)

    def _standing(self, table: KeyedTable, pieces: pl.DataFrame, own: int) -> pl.DataFrame:
        """What does not change on the other side and may meet pieces of one."""
        sides = self._pairing.sides
        wanted = pick(pieces, sides[own].keys)
        return standing(table.candidates(sides[1 - own].keys, wanted))

    def _pairs(self, pieces: pl.DataFrame, partners: pl.DataFrame, own: int) -> Iterator[Batch]:
        columns = self._pairing.columns
        for pairs in self._pairing.overlaps(pieces, partners, own):
            counted = pairs.with_columns(pl.col(SIGN) * pl.col(SIGN + OTHER))
            changes = changes_of(pick(counted, (*columns, START, END, SIGN)))
            out = pick(changes, (*columns, TIME, SIGN))
            if not out.is_empty():
                out.columns = signed_columns(self.schema)
                yield out
