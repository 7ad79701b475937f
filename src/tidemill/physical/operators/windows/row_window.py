"""Row window over a stream of instants: the last rows, of each group if it is partitioned.

Law:    where a group has n elements up to t, snapshot(out, t) holds its elements number
        ``max(m - rows + 1, 1) … m`` with ``m = n // slide * slide`` (17.2), over all groups.
        Elements are in the order of their instants, those of one instant by ``ID`` or by values
        (NULLs first, NaN last). NULL = NULL and NaN = NaN in groups. The input are chronons.
        Of a window of one row: elements of which ``unless`` is true are not in the snapshot.
State:  ``pending`` elements at or after the watermark; ``open``, of each group those in the window
        and the at most ``slide - 1`` not yet in it, with their positions; ``counts``, how many
        elements each group has had. A group lives for ever, since its last elements never leave
        (E18): state grows with the number of groups. A group whose last element is not seen, by
        ``unless``, is forgotten. Of the open elements a watermark touches only those that come in
        or go out.
Order:  ends are in the order of starts if there is one group and no ``max_delay``; never chronon.

Element i comes in with element ``ceil(i / slide)·slide`` of its group and goes out with element
``ceil((i + rows) / slide)·slide``. When both come at one instant it is never seen (E13). It is
emitted when it goes out, at the latest at ``END_OF_TIME``; with ``max_delay``, an element that
has been in for longer is emitted up to the watermark, and goes on from there (K68).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import (
    END,
    ID,
    START,
    TIME_TYPE,
    Form,
    empty_batch,
    interval_columns,
    polars_schema,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.eval import compile_predicate
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import GROUP, encode, named
from tidemill.physical.operator import State
from tidemill.physical.state.delay import cut_open
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["WAS_IN", "RowWindow"]

WAS_IN = "@was_in"

# Of an open element START is where it comes in, or END_OF_TIME while it has not.
_POSITION = "@position"
# Of a group: how many elements it has had before and after new ones, and where these begin.
_BEFORE, _AFTER, _FIRST = "@before", "@after", "@first"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The last ``rows`` elements of each group; the content moves after every ``slide`` elements.

    Attributes:
        schema: The columns of the input, and of the output.
        rows: How many elements the window holds.
        slide: After how many new elements it moves.
        partition_by: The columns whose values make a group.
        by_id: Whether elements of one instant are ordered by ``ID``, which the batches then carry,
            rather than by their values.
        max_delay: How far an open element may lie behind the watermark before it is cut.
        unless: Of a window of one row, which elements are not seen, but displace those before them.
    """

    schema: Schema
    rows: int
    slide: int = 1
    partition_by: tuple[str, ...] = ()
    by_id: bool = True
    max_delay: int | None = None
    unless: Expr | None = None

    def __post_init__(self) -> None:
        one = (self.rows, self.slide) == (1, 1)
        assert one or self.unless is None, "where more rows are held, none stands for its group"
        assert self.rows > 0, "the binder refuses empty windows"
        assert self.slide > 0, "the binder refuses windows that do not move"
        assert self.max_delay is None or self.max_delay >= 0, "a delay is not negative"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.INTERVAL)

    def traits_in(self, form: Form) -> Traits:
        """What it promises if its rows leave in a form."""
        holds = form is Form.INTERVAL
        keys = (Column(name, self.schema[name].type) for name in self.partition_by)
        return Traits(
            takes=(Form.INTERVAL,),
            gives=form,
            meets=(tuple(keys),),
            passes=(pass_all(self.schema),),
            emits=Emission.WHEN_ENDED if holds else Emission.ON_WATERMARK,
            needs_ids=self.by_id,
            delays=holds,
            expiry=Expiry.STRICT,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """No element."""
        payload = polars_schema(self.schema)
        ids = {ID: TIME_TYPE} if self.by_id else {}
        keys = {name: payload[name] for name in self.partition_by}
        return State(
            {
                "pending": Table({**payload, START: TIME_TYPE, **ids}, (START,)),
                "open": KeyedTable(
                    {**payload, START: TIME_TYPE, _POSITION: TIME_TYPE},
                    (START,),
                    index=(*keys, _POSITION),
                ),
                "counts": KeyedTable({**keys, _BEFORE: TIME_TYPE}, (), index=list(keys)),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Wait until the order is certain."""
        state.tables["pending"].insert(batch)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Count the elements before ``time``; emit those that go out, and cut those overdue."""
        due = state.tables["pending"].extract(START, time)
        if not due.is_empty():
            yield from self._out(self.move(state, due).filter(pl.col(END).is_not_null()))
        if time == END_OF_TIME:
            rest = keyed(state, "open").drain()
            state.tables["counts"].clear()
            yield from self._out(rest.with_columns(pl.lit(END_OF_TIME, TIME_TYPE).alias(END)))
        elif self.max_delay is not None:
            yield from self._out(cut_open(state.tables["open"], time, self.max_delay))

    def held(self, state: State) -> Time:
        """The first open element that is in; what is not in yet comes in after the watermark."""
        least = state.tables["open"].least(START)
        return END_OF_TIME if least is None else Time(least)

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """The elements to come, and those that are open, with their positions and since when."""
        opened = state.tables["open"].all()
        since = pl.when(pl.col(START) < END_OF_TIME).then(START).otherwise(time - 1)
        parts = [opened.with_columns(since.alias(START)), state.tables["pending"].all()]
        batch = pl.concat(parts, how="diagonal").with_columns((pl.col(START) + 1).alias(END))
        ids = (ID,) if self.by_id else ()
        return pick(batch, (*interval_columns(self.schema), *ids, _POSITION))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take them in: what has a position has been counted."""
        keys, is_counted = list(self.partition_by), batch[_POSITION].is_not_null()
        state.tables["pending"].insert(batch.filter(~is_counted))
        names, (opened,) = encode(keys, [batch.filter(is_counted)])
        counts = opened.group_by(GROUP).agg(pl.col(_POSITION).max().alias(_BEFORE))
        keyed(state, "counts").insert(named(counts, names))
        last = pl.col(_POSITION).max().over(GROUP)
        is_in = pl.col(_POSITION) <= last // self.slide * self.slide
        start = pl.when(is_in).then(START).otherwise(END_OF_TIME)
        keyed(state, "open").insert(opened.with_columns(start.alias(START)))

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: what has been emitted has ended."""
        return empty_batch(self.schema)

    def move(self, state: State, due: pl.DataFrame) -> pl.DataFrame:
        """Move the window over new elements, and forget those that go out.

        Returns:
            The elements that come in or go out, with ``START``, ``END``, NULL while they stay, and
            ``WAS_IN``, whether they had come in before.
        """
        opened, counts, keys = keyed(state, "open"), keyed(state, "counts"), list(self.partition_by)
        arrived = due.sort([START, ID] if self.by_id else [START, *self.schema.names])
        known = counts.take(arrived.select(keys))
        names, (known, arrived) = encode(keys, [known, arrived])
        if keys:
            arrived = arrived.sort(GROUP, maintain_order=True)
        groups = _counted(arrived, known)
        moving = opened.take(named(_moving(groups, self.rows, self.slide), names))

        # From here on a group has its number in ``groups``.
        _, (_, moving) = encode(keys, [named(groups.select(GROUP), names), moving])
        arrivals = arrived[START]
        arrived = arrived.with_columns(
            pl.col(GROUP).rle_id(), pl.lit(END_OF_TIME, TIME_TYPE).alias(START)
        )
        rows = pl.concat([moving, _placed(arrived, groups).select(moving.columns)])
        rows = rows.with_columns((pl.col(START) < END_OF_TIME).alias(WAS_IN))
        rows = _moved(rows, groups, arrivals, self.rows, self.slide)
        known = groups.select(GROUP, pl.col(_AFTER).alias(_BEFORE))
        if self.unless is not None:
            unseen = compile_predicate(self.unless)
            over = rows.filter(pl.col(END).is_null() & unseen)[GROUP]
            known = known.filter(~pl.int_range(pl.len()).is_in(over.cast(pl.Int64).implode()))
            rows = rows.filter(~unseen)
        counts.insert(named(known, names))
        opened.insert(rows.filter(pl.col(END).is_null()))
        return rows

    def _out(self, rows: pl.DataFrame) -> Iterator[Batch]:
        seen = rows.filter(pl.col(START) < pl.col(END)).select(interval_columns(self.schema))
        if not seen.is_empty():
            yield seen


def _counted(arrived: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """The groups of new elements, in their order: ``_BEFORE``, ``_AFTER`` and ``_FIRST``."""
    counted = arrived.group_by(GROUP, maintain_order=True).agg(pl.len().cast(TIME_TYPE).alias("@n"))
    before = pl.col(_BEFORE).fill_null(0)
    return counted.join(
        known.select(GROUP, _BEFORE), on=GROUP, how="left", maintain_order="left"
    ).select(
        GROUP,
        before,
        (before + pl.col("@n")).alias(_AFTER),
        (pl.col("@n").cum_sum() - pl.col("@n")).alias(_FIRST),
    )


def _moving(groups: pl.DataFrame, size: int, slide: int) -> pl.DataFrame:
    """``GROUP`` and ``_POSITION`` of the open elements that go out or come in now."""
    before, after = pl.col(_BEFORE), pl.col(_AFTER)
    was, now = before // slide * slide, after // slide * slide
    first_out = pl.max_horizontal(was - size, 0) + 1
    last_out = pl.min_horizontal(now - size, before)
    first_in = pl.max_horizontal(was, now - size) + 1
    last_in = pl.min_horizontal(now, before)
    ranges = [(first_out, last_out), (first_in, last_in)]
    return pl.concat(
        groups.select(GROUP, pl.int_ranges(first, last + 1, dtype=pl.Int64).alias(_POSITION))
        .explode(_POSITION)
        .drop_nulls()
        for first, last in ranges
    )


def _placed(arrived: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """New elements, by group, with their positions."""
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    offset = (groups[_BEFORE] - groups[_FIRST] + 1).gather(arrived[GROUP])
    return arrived.with_columns((row + offset).alias(_POSITION))


def _moved(
    rows: pl.DataFrame, groups: pl.DataFrame, arrivals: pl.Series, size: int, slide: int
) -> pl.DataFrame:
    """The elements with ``START``, and ``END``, NULL while they stay.

    What comes in or goes out now does so with one of the new elements, whose arrivals stand by
    group, so that element j of a group is found ``j - i`` rows below its element i.
    """
    before, after, first = (
        pl.lit(groups[name].gather(rows[GROUP]) if groups.height > 1 else groups[name].first())
        for name in (_BEFORE, _AFTER, _FIRST)
    )

    def arrival_of(element: pl.Expr) -> pl.Expr:
        is_new = (element > before) & (element <= after)
        return pl.lit(arrivals).gather(pl.when(is_new).then(element - before - 1 + first))

    def move_after(element: pl.Expr) -> pl.Expr:
        return element if slide == 1 else (element + slide - 1) // slide * slide

    return rows.with_columns(
        pl.min_horizontal(START, arrival_of(move_after(pl.col(_POSITION)))).alias(START),
        arrival_of(move_after(pl.col(_POSITION) + size)).alias(END),
    )
