"""Join of many signed streams in one operator: each change meets the rows of all other inputs.

Law:    snapshot(out, t) is the join of the snapshots of all inputs at t, for every t. A row that
        appears brings its combinations, and one that is withdrawn withdraws them (G-33).
State:  for each input ``pending`` changes at or after the watermark, and the rows that are there,
        each once with how often. No combination is remembered.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.

Up to the watermark it is known when rows come and go, so combinations are made of pieces
(``pieces.py``), as in interval form.
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
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.joining.meeting import meeting_keys, passes_of
from tidemill.physical.joining.partners import Standing
from tidemill.physical.joining.probe import WEIGHT, probe
from tidemill.physical.joining.probe_plan import ProbePlan, plan_probes
from tidemill.physical.joining.side import numbered_inside
from tidemill.physical.operator import State
from tidemill.physical.signs.handed import appeared, handed, take_in
from tidemill.physical.signs.pieces import changes_of, standing, take_touched
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch

__all__ = ["MultiJoin"]


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """Combinations of one row of each input for which the condition is true.

    Attributes:
        inputs: The columns of each input; there are two at least.
        names: Names for the columns of all, in the order of the inputs.
        condition: What must be true, in these names.
        orders: For each input, the others in the order in which its changes probe them. State does
            not depend on it.
        schema: The columns of the output: those of all inputs under ``names``.
    """

    inputs: tuple[Schema, ...]
    names: tuple[str, ...]
    condition: Expr
    orders: tuple[tuple[int, ...], ...] = field(repr=False, compare=False)
    schema: Schema = field(init=False, repr=False, compare=False)
    _plan: ProbePlan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ports = range(len(self.inputs))
        assert [sorted((port, *order)) for port, order in enumerate(self.orders)] == [
            list(ports) for _ in ports
        ], "every input probes each of the others once"
        both = zip(self.names, (f for schema in self.inputs for f in schema), strict=True)
        fields = tuple(Field(name, f.type, f.nullable) for name, f in both)
        inside, condition = numbered_inside(self.names, fields, self.condition)
        plan = plan_probes(self.inputs, inside, condition, self.orders, None)
        object.__setattr__(self, "schema", Schema(fields))
        object.__setattr__(self, "_plan", plan)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=tuple(Form.SIGNED for _ in self.inputs),
            gives=Form.SIGNED,
            meets=meeting_keys(self.inputs, self.names, self.condition),
            passes=passes_of(self.inputs, self.names),
            emits=Emission.ON_WATERMARK,
            expiry=Expiry.JOINED,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """No row of any input."""
        tables: dict[str, Table] = {}
        for port, side in enumerate(self._plan.sides):
            row = {c: type_ for c, type_ in side.columns.items() if c not in (START, END)}
            count = {SIGN: pl.Int64()}
            tables[f"pending{port}"] = Table({**row, TIME: TIME_TYPE, **count}, (TIME,))
            tables[f"rows{port}"] = KeyedTable({**row, **count}, (), index=list(row))
        return State(tables)

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        state.tables[f"pending{port}"].insert(self._entry(port, batch))
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the combinations that appear or are withdrawn before ``time``."""
        ports = range(len(self.inputs))
        tables = [keyed(state, f"rows{port}") for port in ports]
        touched = [
            take_touched(state.tables[f"pending{port}"].extract(TIME, time), tables[port])
            for port in ports
        ]
        for port, each in enumerate(touched):
            if each.pieces.is_empty():
                continue
            # The first input of a combination that changes probes, so that it is found once.
            partners = [
                Standing(tables[p], touched[p].pieces if p > port else None)
                for p in self.orders[port]
            ]
            pieces = each.pieces.rename({SIGN: WEIGHT})
            for found in probe(pieces, self._plan.steps[port], partners):
                yield from self._emitted(found)
        for table, each in zip(tables, touched, strict=True):
            if time == END_OF_TIME:
                table.clear()
            else:
                table.insert(each.rows)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The rows that are there, and the changes to come."""
        rows, pending = (state.tables[f"{part}{port}"] for part in ("rows", "pending"))
        return self._plan.sides[port].left(handed(rows, pending, time), (TIME, SIGN))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in what can have partners."""
        changes = self._entry(port, batch)
        take_in(changes, keyed(state, f"rows{port}"), state.tables[f"pending{port}"], time)

    def standing(self, state: State, time: Time) -> Batch:
        """The combinations of the rows that are there."""
        there = standing(keyed(state, "rows0").all()).rename({SIGN: WEIGHT})
        partners = [Standing(keyed(state, f"rows{port}")) for port in self.orders[0]]
        out = [empty_batch(self.schema, Form.SIGNED)]
        for found in probe(there, self._plan.steps[0], partners):
            counted = pick(found, (*(f"@{i}" for i in range(len(self.schema))), WEIGHT))
            part = appeared(counted.rename({WEIGHT: SIGN}), time)
            part.columns = signed_columns(self.schema)
            out.append(part)
        return pl.concat(out)

    def _entry(self, port: int, batch: Batch) -> pl.DataFrame:
        """The changes of a batch that can have partners."""
        changes = self._plan.sides[port].entry(batch, (TIME, SIGN))
        return changes.filter(*self._plan.entry[port])

    def _emitted(self, found: pl.DataFrame) -> Iterator[Batch]:
        columns = [f"@{i}" for i in range(len(self.schema))]
        pieces = pick(found, (*columns, START, END, WEIGHT)).rename({WEIGHT: SIGN})
        out = pick(changes_of(pieces), (*columns, TIME, SIGN))
        if not out.is_empty():
            out.columns = signed_columns(self.schema)
            yield out
