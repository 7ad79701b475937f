"""Aggregation: one row for each group of rows that agree on the keys, with aggregates over them.

Law:    snapshot(out, t) has one row for each group of snapshot(in, t): its keys, and the value of
        each aggregate over its rows (``algebra/aggregates.py``). Where there is no row there is no
        group, without keys as well. Results are a function of the rows alone, to the last bit but
        for variances (``kernels/variance.py``).
State:  ``pending`` elements that start at or after the watermark; ``ends``, what leaves the
        counters when an element ends; ``totals``, the counters of each group and since when its
        output has been the same. What counters cannot say has tables of its own: ``min`` and
        ``max`` (``extremes.py``, ``leaders.py``), DISTINCT, ``median`` and wide numbers
        (``bags.py``). A group without rows is forgotten, and one that does not change not touched.
Order:  none promised; a segment leaves when it has ended, so ``held`` is the oldest open one. With
        ``max_delay``, one that has been open for longer is emitted up to the watermark, and goes on
        from there (``counters.py``).

Elements that agree on keys, start and end, as behind a window that slides, become one before they
are remembered (panes). That can be done where the rows come from, too (``combine.py``).

The input may be in signed form: then elements do not know their ends, and ``min`` and ``max`` need
all values of a group (``leaders.py``), unless ``median`` keeps them anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import (
    END,
    START,
    TIME_TYPE,
    Form,
    empty_batch,
    polars_type,
    time_columns,
)
from tidemill.physical.frames import pick
from tidemill.physical.grouping.bags import Bag, Swept
from tidemill.physical.grouping.contributions import Contributions
from tidemill.physical.grouping.counters import deltas, oldest, take_totals
from tidemill.physical.grouping.handed import counted, take_in, together
from tidemill.physical.grouping.leaders import Leaders, SweptStep
from tidemill.physical.grouping.shape import shape_of
from tidemill.physical.kernels.aggregates import median_of, result
from tidemill.physical.kernels.arguments import ROWS, Argument, argument_of, carry
from tidemill.physical.kernels.cover import ROW, VALUE, extremes, located, middle
from tidemill.physical.kernels.sweep import SINCE, cut, encode, named, overdue, timeline
from tidemill.physical.kernels.wide import wide_sums
from tidemill.physical.operator import State
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_named, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.algebra.expr import Named
    from tidemill.algebra.plan import NamedAggregate
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time
    from tidemill.physical.grouping.extremes import Extreme
    from tidemill.physical.kernels.sweep import Overdue
    from tidemill.physical.kernels.wide import Wide

__all__ = ["Aggregate", "SweptGroups", "counters_of", "output"]

_SHRINKS = 4
"""Elements become panes if there are this many for each different start."""

_BEGINNING = -(2**63)


class SweptGroups(NamedTuple):
    """The groups that change, up to a watermark.

    Attributes:
        rows: Their timeline, with the outputs beside the counters.
        outputs: The names of the outputs.
        counters: The names of the counters.
        known: Their totals at the watermark before, as far as there were any.
        names: The keys of the groups.
    """

    rows: pl.DataFrame
    outputs: list[str]
    counters: list[str]
    known: pl.DataFrame
    names: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregation.

    Attributes:
        keys: What the rows of a group agree on; none for a single group.
        aggregates: What is computed for each group.
        input_schema: The columns of the input.
        schema: The columns of the output: keys, then aggregates.
        panes: Whether many elements are known to share keys, start and end. Otherwise it is found
            out, batch by batch, at the price of counting the different starts.
        max_delay: How far an open segment may lie behind the watermark before it is cut.
        combined: Whether the input comes from a ``Combine`` of the same aggregates.
        members: How many aggregations this one stands for (``engine/stacks.py``).
        takes: The form of the input.
        partial: Whether each partition aggregates its own rows, for an aggregate of the results.
    """

    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    input_schema: Schema
    schema: Schema
    panes: bool = False
    max_delay: int | None = None
    combined: bool = field(default=False, repr=False)
    members: int = field(default=1, repr=False)
    takes: Form = field(default=Form.INTERVAL, repr=False)
    partial: bool = field(default=False, repr=False)
    _contributions: Contributions = field(init=False, repr=False, compare=False)
    _arguments: tuple[Argument, ...] = field(init=False, repr=False, compare=False)
    _bags: tuple[Bag, ...] = field(init=False, repr=False, compare=False)
    _extremes: tuple[Extreme, ...] = field(init=False, repr=False, compare=False)
    _leaders: tuple[Leaders, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = (*(k.name for k in self.keys), *(a.name for a in self.aggregates))
        assert names == self.schema.names, f"the columns are {names}, not {self.schema.names}"
        assert self.max_delay is None or self.max_delay >= 0, "a delay is not negative"
        are_columns = all(isinstance(key.expr, Column) for key in self.keys)
        assert are_columns or not self.combined, "what is combined has columns for its keys"
        given = Contributions(
            tuple(key.expr for key in self.keys), tuple(a.call for a in self.aggregates)
        )
        knows_ends = self.takes is Form.INTERVAL
        bags = tuple(Bag(a) for a in given.arguments if a.keeps_values or a.keeps_wide)
        alone = [e for e in given.extremes if not (knows_ends or e.argument.keeps_values)]
        leaders = tuple(Leaders(e.argument, e.greatest) for e in alone)
        object.__setattr__(self, "_contributions", given)
        object.__setattr__(self, "_arguments", given.arguments)
        object.__setattr__(self, "_bags", bags)
        object.__setattr__(self, "_extremes", given.extremes if knows_ends else ())
        object.__setattr__(self, "_leaders", leaders)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.INTERVAL)

    def traits_in(self, form: Form) -> Traits:
        """What it promises if its rows leave in a form."""
        holds = form is Form.INTERVAL
        return Traits(
            takes=(None if self.combined else self.takes,),
            gives=form,
            meets=(None if self.partial else tuple(key.expr for key in self.keys),),
            passes=(pass_named(self.keys),),
            emits=Emission.WHEN_ENDED if holds else Emission.ON_WATERMARK,
            delays=holds,
            expiry=Expiry.STRICT,
            gains=holds and not self.combined,
            tables=state_tables(self.new_state()),
            counts=True,
            alike=self._alike(),
            hands_over=True,
        )

    def _alike(self) -> str | None:
        """What aggregations have in common that can run as one; ``None`` if this one cannot."""
        if self.takes is not Form.INTERVAL:
            return None
        shape = shape_of(
            [key.expr for key in self.keys], [aggregate.call for aggregate in self.aggregates]
        )
        return repr((shape, self.panes, self.max_delay, self.combined, self.partial))

    def new_state(self) -> State:
        """The state before any input."""
        keys = {f"@key{i}": polars_type(key.expr.type) for i, key in enumerate(self.keys)}
        counters = _counter_types(self._contributions.direct())
        interval = {START: TIME_TYPE, END: TIME_TYPE}
        every = _counter_types(self._arguments)
        tables: dict[str, Table] = {
            "pending": Table({**keys, **interval, **counters}, (START, END)),
            "ends": Table({**keys, END: TIME_TYPE, **counters}, (END,)),
            "totals": KeyedTable({**keys, SINCE: TIME_TYPE, **every}, (SINCE,), index=list(keys)),
        }
        for part in self.parts:
            tables |= part.tables(keys)
        return State(tables, {"watermark": _BEGINNING})

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember what the elements contribute until the watermark has passed their start."""
        del port
        elements = self.contributed(batch)
        panes = not self.combined and self.has_panes(elements[START], self.members)
        for part in self.parts:
            part.insert(state, elements, panes=panes)
        pending = state.tables["pending"]
        if panes:
            row = (*self._contributions.key_columns(), START, END)
            elements = elements.group_by(row).agg(pl.col(counters_of(pending)).sum())
        pending.insert(elements)
        yield from ()

    def contributed(self, batch: Batch) -> pl.DataFrame:
        """What the rows of a batch contribute; those of a ``Combine`` say it themselves."""
        if not self.combined:
            return self._contributions.of(batch)
        named = zip((key.expr for key in self.keys), self._contributions.key_columns(), strict=True)
        return batch.rename({key.name: new for key, new in named if isinstance(key, Column)})

    def has_panes(self, starts: pl.Series, members: int = 1) -> bool:
        """Whether elements with these starts are to become fewer before they are remembered."""
        return self.panes or starts.n_unique() * _SHRINKS * members <= len(starts)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the segments that have ended, and cut those overdue."""
        late = overdue(time, self.max_delay)
        swept = self.sweep(state, time, late)
        if swept is None:
            return
        totals = keyed(state, "totals")
        closed, opened = cut(
            swept.rows,
            present=pl.col(ROWS) > 0,
            outputs=swept.outputs,
            counters=swept.counters,
            late=late,
        )
        opened = opened.filter(pl.col(ROWS) > 0)
        totals.insert(named(carry(opened, self._arguments), swept.names))
        if not closed.is_empty():
            yield self.emitted(named(closed, swept.names), Form.INTERVAL)

    def sweep(self, state: State, time: Time, late: Overdue | None) -> SweptGroups | None:
        """The groups that change before ``time`` or are overdue, whose totals are taken out."""
        since, state.numbers["watermark"] = state.numbers["watermark"], time
        keys, totals = self._contributions.key_columns(), keyed(state, "totals")
        changes = deltas(state, time, counters_of(state.tables["ends"]))
        known = take_totals(totals, changes, keys, late)
        if known.is_empty() and changes.is_empty():
            return None
        groups = pl.concat([pick(known, keys), pick(changes, keys)])
        bags = [bag for bag in self._bags if not bag.is_idle(state)]
        parts: list[Bag | Extreme | Leaders] = [*bags, *self._extremes, *self._leaders]
        frames = [frame for part in parts for frame in part.extract(state, time, groups)]
        names, (known, changes, *rest) = encode(keys, [known, changes, *frames])
        of_part = dict(zip(parts, zip(rest[::2], rest[1::2], strict=True), strict=True))

        swept = {b.argument: b.sweep(*of_part[b], since=since, time=time) for b in bags}
        for bag in bags:
            bag.store(state, swept[bag.argument], names)
        counters = counters_of(state.tables["totals"])
        rows = timeline(known, self._with_distinct(changes, swept), counters).with_row_index(ROW)
        values: dict[tuple[Argument, str], pl.Series] = {}
        for extreme in self._extremes:
            found, stairs = extreme.sweep(*of_part[extreme], rows, time)
            extreme.store(state, named(stairs, names))
            values[extreme.argument, extreme.function] = found
        step = SweptStep(rows, known, names, since, time)
        for leaders in self._leaders:
            found = leaders.sweep(state, *of_part[leaders], step)
            values[leaders.argument, leaders.function] = found
        for extreme in self._contributions.extremes:
            if (extreme.argument, extreme.function) not in values:
                pieces = located(rows, swept[extreme.argument].pieces)
                found = extremes(pieces, rows.height, greatest=extreme.greatest)
                values[extreme.argument, extreme.function] = found
        outputs = self._outputs(rows, swept, values)
        return SweptGroups(
            rows.with_columns(outputs), [o.name for o in outputs], counters, known, names
        )

    def held(self, state: State) -> Time:
        """The start of the oldest segment that is still open."""
        return oldest(state)

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """What the elements contribute, for each group since its output has been the same."""
        keys, counters = self._contributions.key_columns(), counters_of(state.tables["ends"])
        parts = dict(part.remembered(state, keys) for part in self.parts)
        return together({"pending": counted(state, "", keys, counters, keys), **parts})

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take in what elements contribute: what it brings about from its start on is owed."""
        take_in(batch, state.tables)

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: what has been emitted has ended."""
        return empty_batch(self.schema)

    def _with_distinct(self, changes: pl.DataFrame, swept: dict[Argument, Swept]) -> pl.DataFrame:
        """The changes of all counters: with those of arguments that are DISTINCT."""
        added = [
            bag.contributions(swept[bag.argument]) for bag in self._bags if bag.argument.distinct
        ]
        return pl.concat([changes, *added], how="diagonal").fill_null(0) if added else changes

    @property
    def parts(self) -> tuple[Bag | Extreme | Leaders, ...]:
        """What has tables of its own, besides the counters."""
        return (*self._bags, *self._extremes, *self._leaders)

    def emitted(self, rows: pl.DataFrame, form: Form) -> Batch:
        """Results with the names of their columns."""
        outputs = (output(i) for i in range(len(self.aggregates)))
        times = time_columns(form)
        batch = pick(rows, (*self._contributions.key_columns(), *outputs, *times))
        batch.columns = [*self.schema.names, *times]
        return batch

    def _outputs(
        self,
        rows: pl.DataFrame,
        swept: dict[Argument, Swept],
        extremes: dict[tuple[Argument, str], pl.Series],
    ) -> list[pl.Series]:
        """The value of each aggregate in each row of the timeline."""
        wide = {argument: _wide(argument, rows, swept) for argument in self._arguments}
        outputs: list[pl.Series] = []
        for i, aggregate in enumerate(self.aggregates):
            call = aggregate.call
            argument = argument_of(call, self._arguments)
            if argument is None:
                value = rows[ROWS]
            elif call.function in ("min", "max"):
                value = extremes[argument, call.function]
            elif call.function == "median":
                pieces = located(rows, swept[argument].pieces)
                value = median_of(middle(pieces, rows.height), argument.type)
            else:
                value = result(call, argument, rows, wide[argument])
            outputs.append(value.alias(output(i)))
        return outputs


def output(number: int) -> str:
    """The name of the column of an aggregate's values."""
    return f"@out{number}"


def _counter_types(known: Sequence[Argument]) -> dict[str, pl.DataType]:
    """The counters of a group: its rows, and those of arguments."""
    types: dict[str, pl.DataType] = {ROWS: pl.Int64()}
    for argument in known:
        types |= _contribution_types(argument)
    return types


@lru_cache(1024)
def _contribution_types(argument: Argument) -> dict[str, pl.DataType]:
    column = pl.DataFrame(schema={argument.column: polars_type(argument.type)})
    return dict(column.select(argument.contributions()).schema)


def counters_of(table: Table) -> list[str]:
    """The names of the counters in a table: no other column has a point in its name."""
    return [name for name in table.schema if name == ROWS or "." in name]


def _wide(argument: Argument, rows: pl.DataFrame, swept: dict[Argument, Swept]) -> Wide:
    """The sums of the wide values of an argument, by row of the timeline."""
    if not argument.keeps_wide or argument not in swept:
        return {}
    values = swept[argument].pieces
    is_wide = values.select(pl.col(VALUE).alias(argument.column)).select(argument.is_wide())
    pieces = values.filter(is_wide.to_series())
    return {} if pieces.is_empty() else wide_sums(located(rows, pieces))
