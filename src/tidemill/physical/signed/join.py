"""Join of two signed streams: each change of one side meets the rows of the other.

Law:    snapshot(out, t) == snapshot(left, t) ⋈ snapshot(right, t), for every t. A pair of changes
        is a change, from the later of the two times on, as often as the product of their signs: a
        withdrawn row withdraws its pairs. So the join of sums is the sum of joins.
State:  for each side ``pending`` changes at or after the watermark, and the rows that are there,
        each once with how often. A row with a NULL that an equality forbids is never remembered.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.

Pairs of changes of one step may cancel each other; those made together are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import TRUE, Column, Expr, replace_columns
from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, signed_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.conditions import split_condition
from tidemill.physical.eval import compile_predicate
from tidemill.physical.interval.join import Side
from tidemill.physical.interval.pairs import OTHER, make_pairs
from tidemill.physical.kernels.sweep import pick
from tidemill.physical.operator import LEFT, State
from tidemill.physical.signed.net import net
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch

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
    _sides: tuple[Side, Side] = field(init=False, repr=False, compare=False)
    _nulls_equal: bool = field(init=False, repr=False, compare=False)
    _residual: pl.Expr | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        both = list(zip(self.names, (*self.left, *self.right), strict=True))
        object.__setattr__(
            self, "schema", Schema(tuple(Field(name, f.type, f.nullable) for name, f in both))
        )
        # To Polars some names are patterns, so inside columns have numbers.
        numbers = {name: f"@{i}" for i, name in enumerate(self.names)}
        fields = tuple(Field(numbers[name], f.type, f.nullable) for name, f in both)
        condition = replace_columns(self.condition, lambda c: Column(numbers[c.name], c.type))
        width = len(self.left)
        inside = tuple(numbers.values())
        equalities, rest = split_condition(condition, inside[:width], inside[width:])
        required = [not equality.null_safe for equality in equalities]
        left = Side(self.left, fields[:width], [e.left for e in equalities], required)
        right = Side(self.right, fields[width:], [e.right for e in equalities], required)
        object.__setattr__(self, "_sides", (left, right))
        object.__setattr__(self, "_nulls_equal", not all(required))
        residual = None if rest == TRUE else compile_predicate(rest)
        object.__setattr__(self, "_residual", residual)

    def new_state(self) -> State:
        """No row of either input."""
        tables: dict[str, Table] = {}
        for name, side in zip(_SIDES, self._sides, strict=True):
            row = {c: type_ for c, type_ in side.columns.items() if c not in (START, END)}
            count = {SIGN: pl.Int64()}
            tables[f"{name}.pending"] = Table({**row, TIME: TIME_TYPE, **count}, (TIME,))
            tables[name] = KeyedTable({**row, **count}, (), index=side.keys)
        return State(tables)

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        number = 0 if port == LEFT else 1
        changes = self._sides[number].entry(batch, (TIME, SIGN))
        state.tables[f"{_SIDES[number]}.pending"].insert(changes)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the pairs that appear or are withdrawn before ``time``."""
        tables = [keyed(state, name) for name in _SIDES]
        changes = [net(state.tables[f"{name}.pending"].extract(TIME, time)) for name in _SIDES]
        if all(frame.is_empty() for frame in changes) and time < END_OF_TIME:
            return
        left, right = (_from(frame, TIME) for frame in changes)
        keys = [side.keys for side in self._sides]
        found = [
            _from(tables[i].find(_keys(changes[1 - i], keys[1 - i], keys[i])), None) for i in (0, 1)
        ]
        # New rows meet old and new ones, and old rows new ones.
        partners = pl.concat([found[1], pick(right, found[1].columns)])
        yield from self._pairs(left, partners, keys[0], keys[1])
        yield from self._pairs(right, found[0], keys[1], keys[0])
        for table, frame in zip(tables, changes, strict=True):
            if time == END_OF_TIME:
                table.clear()
            else:
                _update(table, frame)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def _pairs(
        self, rows: pl.DataFrame, partners: pl.DataFrame, keys: list[str], other_keys: list[str]
    ) -> Iterator[Batch]:
        columns = [f"@{i}" for i in range(len(self.schema))]
        for pairs in make_pairs(rows, partners, keys, other_keys, nulls_equal=self._nulls_equal):
            matched = pairs if self._residual is None else pairs.filter(self._residual)
            changed = matched.with_columns(
                pl.max_horizontal(START, START + OTHER).alias(TIME),
                pl.col(SIGN) * pl.col(SIGN + OTHER),
            )
            out = net(pick(changed, (*columns, TIME, SIGN)))
            if not out.is_empty():
                out.columns = signed_columns(self.schema)
                yield out


def _from(changes: pl.DataFrame, time: str | None) -> pl.DataFrame:
    """The rows as elements that never end, from a time on or from the beginning."""
    start = pl.lit(0, TIME_TYPE) if time is None else pl.col(time)
    never = pl.lit(END_OF_TIME, TIME_TYPE)
    return changes.with_columns(start.alias(START), never.alias(END)).drop(TIME, strict=False)


def _keys(changes: pl.DataFrame, keys: list[str], names: list[str]) -> pl.DataFrame:
    """What rows of the other side are found by."""
    wanted = pick(changes, keys)
    wanted.columns = names
    return wanted


def _update(table: KeyedTable, changes: pl.DataFrame) -> None:
    """Bring the rows that are there up to date."""
    if changes.is_empty():
        return
    row = [name for name in table.schema if name != SIGN]
    known = table.take(pick(changes, row))
    now = net(pl.concat([known, pick(changes, known.columns)]))
    assert now.is_empty() or int(now[SIGN].min()) > 0, "only what is there is withdrawn"  # type: ignore[arg-type]
    table.insert(now)
