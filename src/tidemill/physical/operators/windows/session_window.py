"""Session window over a stream of instants: the rows since the last pause, of each group.

Law:    snapshot(out, t) holds an element of instant s ≤ t if and only if at every instant of
        ``[s, t]`` a time window of size ``gap`` holds an element of its group. NULL = NULL and
        NaN = NaN in groups. The input are chronons.
State:  ``pending`` elements at or after the watermark; ``open``, the elements of the sessions that
        are not over; ``sessions``, the last instant of each of these. A group is forgotten when its
        session is over; a session lasts for as long as elements keep coming, and state with it. A
        watermark touches only groups that have new elements or whose session is over.
Order:  ends are in the order of starts if there is one group and no ``max_delay``; never chronon.

Elements of a group belong to one session if each comes at most ``gap`` after the one before; all of
them end ``gap`` after the last. That is certain when the watermark has passed that end, since an
element of that very instant would still go on with the session. Then they are emitted, at the
latest at ``END_OF_TIME``; with ``max_delay``, an element that has been in for longer is emitted up
to the watermark, and goes on from there (K68). Times after ``END_OF_TIME`` are ``END_OF_TIME``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import (
    END,
    START,
    TIME_TYPE,
    Form,
    empty_batch,
    interval_columns,
    polars_schema,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import GROUP, encode, named
from tidemill.physical.operator import State
from tidemill.physical.state.delay import cut_open
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["WAS_IN", "SessionWindow"]

WAS_IN = "@was_in"

_LAST = "@last"
# Of an instant of a group: which new element it is, NULL for the last one of an open session, and
# whether it is the last of its session.
_ROW, _IS_LAST = "@row", "@is_last"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The elements of each group since its last pause of more than ``gap``, until the next.

    Attributes:
        schema: The columns of the input, and of the output.
        gap: How long after an element the next one still belongs to its session.
        partition_by: The columns whose values make a group.
        max_delay: How far an open element may lie behind the watermark before it is cut.
    """

    schema: Schema
    gap: int
    partition_by: tuple[str, ...] = ()
    max_delay: int | None = None

    def __post_init__(self) -> None:
        assert 0 < self.gap < END_OF_TIME, "the binder refuses empty windows and endless ones"
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
            delays=holds,
            expiry=Expiry.STRICT,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """No element."""
        payload = polars_schema(self.schema)
        keys = {name: payload[name] for name in self.partition_by}
        elements = {**payload, START: TIME_TYPE}
        return State(
            {
                "pending": Table(elements, (START,)),
                "open": KeyedTable(elements, (START,), index=list(keys)),
                "sessions": KeyedTable({**keys, _LAST: TIME_TYPE}, (_LAST,), index=list(keys)),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Wait until it is certain what came before."""
        state.tables["pending"].insert(batch)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the elements of the sessions that are over, and cut those overdue."""
        rows = self.move(state, time)
        if not rows.is_empty():
            yield from self._out(rows.filter(pl.col(END).is_not_null()))
        if self.max_delay is not None and time < END_OF_TIME:
            yield from self._out(cut_open(state.tables["open"], time, self.max_delay))

    def held(self, state: State) -> Time:
        """The first open element."""
        least = state.tables["open"].least(START)
        return END_OF_TIME if least is None else Time(least)

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """The elements to come, and those that are open, with the last instants of their groups."""
        tables = (keyed(state, name).all() for name in ("open", "sessions"))
        _, (opened, sessions) = encode(self.partition_by, list(tables))
        last = pick(sessions, (GROUP, _LAST))
        parts = [opened.join(last, on=GROUP, how="left"), state.tables["pending"].all()]
        batch = pl.concat(parts, how="diagonal").with_columns((pl.col(START) + 1).alias(END))
        return pick(batch, (*interval_columns(self.schema), _LAST))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take them in: those of which the last instant is known have been seen."""
        is_open = batch[_LAST].is_not_null()
        state.tables["pending"].insert(batch.filter(~is_open))
        names, (opened,) = encode(self.partition_by, [batch.filter(is_open)])
        sessions = opened.group_by(GROUP).agg(pl.col(_LAST).max())
        keyed(state, "sessions").insert(named(sessions, names))
        keyed(state, "open").insert(opened)

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: what has been emitted has ended."""
        return empty_batch(self.schema)

    def move(self, state: State, time: Time) -> pl.DataFrame:
        """Take in the elements before ``time``, and forget the sessions that are over.

        Returns:
            The elements that come in or go out, with ``START``, ``END``, NULL while they stay, and
            ``WAS_IN``, whether they had come in before.
        """
        opened, sessions = keyed(state, "open"), keyed(state, "sessions")
        came = state.tables["pending"].extract(START, time)
        # A session is over if its last element is from before this instant.
        before = time if time == END_OF_TIME else Time(time - self.gap)
        known = sessions.extract(_LAST, before)
        if came.is_empty() and known.is_empty():
            return came  # nothing comes in or goes out
        if not came.is_empty():
            known = pl.concat([known, sessions.take(pick(came, self.partition_by))])
        names, (known, came) = encode(self.partition_by, [known, came])
        instants = _in_sessions(known, came, self.gap, before)
        lasting = instants.filter(pl.col(_IS_LAST) & pl.col(END).is_null())
        sessions.insert(named(pick(lasting, (GROUP, _LAST)), names))

        is_new = pl.col(_ROW).is_not_null()
        over = instants.filter(~is_new & pl.col(END).is_not_null())
        went = self._taken(opened, named(pick(over, (GROUP, END)), names))
        came = came.hstack([instants.filter(is_new).sort(_ROW)[END]])
        opened.insert(came.filter(pl.col(END).is_null()))
        return pl.concat([self._flagged(went, was_in=True), self._flagged(came, was_in=False)])

    def _taken(self, opened: KeyedTable, over: pl.DataFrame) -> pl.DataFrame:
        """Remove and return the open elements of groups, each with the ``END`` of its group."""
        if over.is_empty():
            return opened.none().with_columns(pl.lit(None, TIME_TYPE).alias(END))
        taken = opened.take(pick(over, self.partition_by))
        _, (over, taken) = encode(self.partition_by, [over, taken])
        return taken.join(pick(over, (GROUP, END)), on=GROUP, how="left")

    def _flagged(self, rows: pl.DataFrame, *, was_in: bool) -> pl.DataFrame:
        flag = pl.lit(was_in).alias(WAS_IN)
        return pick(rows, interval_columns(self.schema)).with_columns(flag)

    def _out(self, rows: pl.DataFrame) -> Iterator[Batch]:
        seen = pick(rows.filter(pl.col(START) < pl.col(END)), interval_columns(self.schema))
        if not seen.is_empty():
            yield seen


def _in_sessions(known: pl.DataFrame, came: pl.DataFrame, gap: int, before: Time) -> pl.DataFrame:
    """The last instants of open sessions, and those of new elements, by group and time.

    Each has ``_IS_LAST``, ``_LAST``, the last instant of its session, and ``END``, where that ends:
    NULL while it may go on, since ``_LAST`` is not before ``before``.
    """
    new = came.select(GROUP, pl.col(START).alias(_LAST)).with_row_index(_ROW)
    instants = pl.concat([known.select(GROUP, _LAST), new], how="diagonal").sort(GROUP, _LAST)
    group, instant = pl.col(GROUP), pl.col(_LAST)
    ends_group = (group != group.shift(-1)).fill_null(value=True)
    ends_session = ends_group | (instant.shift(-1) - instant > gap)
    last = pl.when(ends_session).then(instant).backward_fill()
    end = last.clip(upper_bound=END_OF_TIME - gap) + gap
    return instants.with_columns(
        ends_session.alias(_IS_LAST),
        last.alias(_LAST),
        pl.when(last < before).then(end).alias(END),
    )
