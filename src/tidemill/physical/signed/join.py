"""Join of two signed streams: each change of one side meets the rows of the other.

Law:    snapshot(out, t) == snapshot(left, t) ⋈ snapshot(right, t), for every t. A pair is there
        while both of its rows are, as often as the product of how often they are.
State:  for each side ``pending`` changes at or after the watermark, and the rows that are there,
        each once with how often. A row with a NULL that an equality forbids is never remembered.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.

Of a row that changes before the watermark it is known when it is there up to then: in spans, which
meet those of the other side as intervals do. So a pair whose rows both go is withdrawn once.
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
from tidemill.physical.kernels.sweep import GROUP, SINCE, encode, named, pick, timeline
from tidemill.physical.operator import LEFT, State
from tidemill.physical.signed.net import net
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.model.batch import Batch

__all__ = ["Join"]

_SIDES = ("left", "right")
_BEFORE = -1
"""Before all instants: since when what was known is there."""


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
        changes = [state.tables[f"{name}.pending"].extract(TIME, time) for name in _SIDES]
        tables = [keyed(state, name) for name in _SIDES]
        if any(not frame.is_empty() for frame in changes):
            yield from self._changed(tables, changes)
        if time == END_OF_TIME:
            for table in tables:
                table.clear()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def _changed(
        self, tables: Sequence[KeyedTable], changes: Sequence[pl.DataFrame]
    ) -> Iterator[Batch]:
        """The pairs of rows of which one changes; the tables are brought up to date."""
        keys = [side.keys for side in self._sides]
        spans = [_spans(table, frame) for table, frame in zip(tables, changes, strict=True)]
        staying = [_staying(tables[i], changes[1 - i], keys[1 - i], keys[i]) for i in (0, 1)]
        left, right = spans
        yield from self._pairs(left, pl.concat([staying[1], right]), keys[0], keys[1])
        yield from self._pairs(right, staying[0], keys[1], keys[0])
        for table, frame in zip(tables, spans, strict=True):
            table.insert(frame.filter(pl.col(END) == END_OF_TIME))

    def _pairs(
        self, rows: pl.DataFrame, partners: pl.DataFrame, keys: list[str], other_keys: list[str]
    ) -> Iterator[Batch]:
        columns = [f"@{i}" for i in range(len(self.schema))]
        for pairs in make_pairs(rows, partners, keys, other_keys, nulls_equal=self._nulls_equal):
            met = pairs.with_columns(
                pl.max_horizontal(START, START + OTHER).alias(START),
                pl.min_horizontal(END, END + OTHER).alias(END),
                pl.col(SIGN) * pl.col(SIGN + OTHER),
            ).filter(pl.col(START) < pl.col(END))
            met = met if self._residual is None else met.filter(self._residual)
            came = met.filter(pl.col(START) > _BEFORE)
            went = met.filter(pl.col(END) < END_OF_TIME).with_columns(pl.col(SIGN) * -1)
            frames = [pick(came, (*columns, START, SIGN)), pick(went, (*columns, END, SIGN))]
            for frame in frames:
                frame.columns = signed_columns(self.schema)
            out = pl.concat(frames)
            if (met[SIGN] > 1).any():
                out = net(out)  # a row that is there once more is there all the while
            if not out.is_empty():
                yield out


def _spans(table: KeyedTable, changes: pl.DataFrame) -> pl.DataFrame:
    """When the rows that change are there, and how often; they are taken out of the table."""
    row = [name for name in table.schema if name != SIGN]
    if changes.is_empty():
        return _span(changes, row, changes[TIME], changes[TIME])
    known = table.take(pick(changes, row))
    spans = _come_or_go(known, changes, row)
    return _counted(known, net(changes), row) if spans is None else spans


def _come_or_go(known: pl.DataFrame, changes: pl.DataFrame, row: list[str]) -> pl.DataFrame | None:
    """The spans of rows of which each comes, or goes and was there once; ``None`` if any differ.

    They need not be sorted. What goes was there: if as many are known, none that comes was.
    """
    went = changes.filter(changes[SIGN] < 0)
    was_once = known.height == went.height and (known[SIGN] == 1).all() and (went[SIGN] == -1).all()
    if not was_once or not row or pick(changes, row).n_unique() < changes.height:
        return None
    came = changes.filter(changes[SIGN] > 0)
    return pl.concat(
        [
            _span(went.with_columns(-went[SIGN]), row, _constant(_BEFORE, went.height), went[TIME]),
            _span(came, row, came[TIME], _constant(END_OF_TIME, came.height)),
        ]
    )


def _counted(known: pl.DataFrame, changes: pl.DataFrame, row: list[str]) -> pl.DataFrame:
    """The spans of rows whose number is added up from change to change."""
    names, (known, changes) = encode(row, [known, changes])
    known = known.with_columns(pl.lit(_BEFORE, TIME_TYPE).alias(SINCE))
    counts = timeline(known, changes, (SIGN,))
    assert counts.is_empty() or int(counts[SIGN].min()) >= 0, "only what is there is withdrawn"  # type: ignore[arg-type]
    goes_on = pl.col(GROUP) == pl.col(GROUP).shift(-1)
    end = pl.when(goes_on).then(pl.col(TIME).shift(-1)).otherwise(END_OF_TIME)
    spans = counts.with_columns(end.cast(TIME_TYPE).alias(END)).filter(pl.col(SIGN) > 0)
    return _span(named(spans, names), row, spans[TIME], spans[END])


def _staying(
    table: KeyedTable, changes: pl.DataFrame, keys: list[str], own_keys: list[str]
) -> pl.DataFrame:
    """The rows that do not change and may meet changes of the other side, as spans."""
    rows = pl.DataFrame(schema=table.schema)
    if not changes.is_empty():
        wanted = pick(changes, keys)
        wanted.columns = own_keys
        rows = table.find(wanted)
    row = [name for name in table.schema if name != SIGN]
    return _span(rows, row, _constant(_BEFORE, rows.height), _constant(END_OF_TIME, rows.height))


def _span(rows: pl.DataFrame, row: list[str], start: pl.Series, end: pl.Series) -> pl.DataFrame:
    return pl.DataFrame([*pick(rows, (*row, SIGN)), start.alias(START), end.alias(END)])


def _constant(time: int, rows: int) -> pl.Series:
    return pl.Series([time], dtype=TIME_TYPE).new_from_index(0, rows)
