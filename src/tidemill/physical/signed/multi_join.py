"""Join of many signed streams in one operator: each change meets the rows of all other inputs.

Law:    snapshot(out, t) is the join of the snapshots of all inputs at t, for every t. A combination
        of changes is a change, from the latest of their times on, as often as the product of their
        signs (G-33).
State:  for each input ``pending`` changes at or after the watermark, and the rows that are there,
        each once with how often. No combination is remembered.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.

The changes of one input after the other meet the new rows of those before it and the old ones of
those after it: the sum of all these is what the join changes by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, signed_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.interval.probe import WEIGHT, probe
from tidemill.physical.interval.probe_plan import ProbePlan, plan_probes
from tidemill.physical.interval.side import numbered_inside
from tidemill.physical.kernels.sweep import pick
from tidemill.physical.operator import State
from tidemill.physical.signed.net import net, update
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

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
        changes = self._plan.sides[port].entry(batch, (TIME, SIGN))
        state.tables[f"pending{port}"].insert(changes.filter(*self._plan.entry[port]))
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the combinations that appear or are withdrawn before ``time``."""
        ports = range(len(self.inputs))
        changes = [net(state.tables[f"pending{p}"].extract(TIME, time)) for p in ports]
        if all(frame.is_empty() for frame in changes):
            changes = []
        new = [_weighted(frame, TIME) for frame in changes]
        known = [_weighted(keyed(state, f"rows{p}").all(), None) for p in ports] if changes else []
        for port, elements in enumerate(new):
            partners = [
                pl.concat([known[p], pick(new[p], known[p].columns)]) if p < port else known[p]
                for p in self.orders[port]
            ]
            for found in probe(elements, self._plan.steps[port], partners):
                yield from self._emitted(found)
        for port in ports:
            table = keyed(state, f"rows{port}")
            if time == END_OF_TIME:
                table.clear()
            elif changes:
                update(table, changes[port])

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def _emitted(self, found: pl.DataFrame) -> Iterator[Batch]:
        columns = [f"@{i}" for i in range(len(self.schema))]
        out = pick(found, (*columns, START, WEIGHT)).rename({START: TIME, WEIGHT: SIGN})
        out = net(out)
        if not out.is_empty():
            out.columns = signed_columns(self.schema)
            yield out


def _weighted(changes: pl.DataFrame, time: str | None) -> pl.DataFrame:
    """The rows as weighted elements that never end, from a time on or from the beginning."""
    start = pl.lit(0, TIME_TYPE) if time is None else pl.col(time)
    never = pl.lit(END_OF_TIME, TIME_TYPE)
    made = changes.with_columns(start.alias(START), never.alias(END)).rename({SIGN: WEIGHT})
    return made.drop(TIME, strict=False)
