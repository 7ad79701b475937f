"""Stretch in signed form: the changes of an answer at the instants that are asked for.

Law:    snapshot(out, t) == n(t) · snapshot(in, t), where n(t) is how many spans have t: where a
        span begins, what is there is announced, and where it ends, withdrawn. At a seam another
        instance has the rows that are there, so neither is done. Rows of a span that waits leave
        when it does not wait any more in a later operator of this identity.
State:  ``pending`` changes at or after the watermark; what is ``standing`` at the watermark, as
        changes that are added up from time to time, if it ``counts``; and the ``spool``.
Order:  in that of time, from one watermark to the next; what waited comes after that.

The spool is made of logs, each of a stretch of instants that wait and of which rows were given
equally often: what is there at its beginning, and all changes until its end. So every part of a log
can be given later, whatever the spans are then.

It stands where ``interval.Stretch`` does, above operators that let changes go when they are due.
Like that one it does not hand over its state: what waits belongs to the answer and its spans.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.model.batch import SIGN, TIME, TIME_TYPE, Form, signed_columns
from tidemill.model.spans import Span, begun_at, seams_at, segments
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.rows import number_columns, restored
from tidemill.physical.operator import State
from tidemill.physical.operators.rows.stretch import SPANS, spans_number
from tidemill.physical.signs.net import net
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.spans import Segment

__all__ = ["Stretch"]

_AT, _LOG = "@at", "@log"
_PASSED, _NET = "passed", "net"
_FEW = 1024
"""So many changes of what stands are not worth adding up."""


class _Log(NamedTuple):
    """A log of the spool: from when to when, and how often its rows were given."""

    since: int
    until: int
    given: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The changes of an answer at some instants.

    Attributes:
        schema: The columns of the input, and of the output.
        owner: Whose answer it is: no two queries share one.
        counts: Whether it remembers what stands. Without that, spans begin and end at seams, or
            where nothing stands.
        spans: The instants, and when their rows leave.
    """

    schema: Schema
    owner: str
    counts: bool = True
    spans: tuple[Span, ...] = field(default=(Span(),), compare=False)

    def __post_init__(self) -> None:
        ends = all(span.hands_on or span.until == END_OF_TIME for span in self.spans)
        assert self.counts or ends, "what is not known cannot be withdrawn"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.SIGNED,),
            gives=Form.SIGNED,
            meets=(None,),
            passes=(pass_all(self.schema),),
            emits=Emission.WHEN_ENDED,
            expiry=Expiry.STRICT,
            waits=True,
            tables=state_tables(self.new_state()),
            counts=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row, sign = number_columns(self.schema), {SIGN: pl.Int64()}
        tables = {"pending": Table({**row, TIME: TIME_TYPE, **sign}, (TIME,))}
        if self.counts:
            tables["standing"] = Table({**row, **sign}, ())
            logged = {_AT: TIME_TYPE, **sign, _LOG: TIME_TYPE}
            tables["spool"] = Table({**row, **logged}, (_AT,))
        return State(tables)

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        del port
        changes = pick(batch, signed_columns(self.schema))
        changes.columns = [*number_columns(self.schema), TIME, SIGN]
        state.tables["pending"].insert(changes)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the changes before ``time`` that are asked for, and what does not wait any more."""
        has_ended = time == END_OF_TIME
        out = self._released(state, has_ended=has_ended)
        out += self._passed(state, time, has_ended=has_ended)
        if has_ended:
            for table in state.tables.values():
                table.clear()
        due = net(pl.concat(out)) if out else None
        if due is not None and not due.is_empty():
            yield restored(due, self.schema, Form.SIGNED)

    def held(self, state: State) -> Time:
        """What waits begins here."""
        least = state.tables["spool"].least(_AT) if self.counts else None
        # What is there when a log begins is noted an instant before.
        return END_OF_TIME if least is None else Time(max(least, _logs(state)[0].since))

    # The instants that the watermark passes

    def _passed(self, state: State, time: Time, *, has_ended: bool) -> list[pl.DataFrame]:
        """What leaves of the instants between the last watermark and this one."""
        before = Time(state.numbers.get(_PASSED, 0))
        if time <= before:
            return []
        changes = state.tables["pending"].extract(TIME, time)
        state.numbers[_PASSED] = time
        out: list[pl.DataFrame] = []
        for one in segments(self.spans, before, time, has_ended=has_ended):
            here = changes.filter(pl.col(TIME).is_between(one.since, one.until, closed="left"))
            jump = begun_at(self.spans, one.since, has_ended=has_ended)
            if jump and self.counts:
                out.append(_at(self._standing(state), one.since, jump))
            if one.given:
                out.append(here.with_columns(pl.col(SIGN) * one.given))
            if one.kept:
                assert self.counts, "what waits is counted"
                self._log(state, one, here)
            if self.counts:
                state.tables["standing"].insert(here.drop(TIME))
        if self.counts and state.tables["standing"].rows() > 2 * state.numbers.get(_NET, 0) + _FEW:
            self._standing(state)
        return out

    def _standing(self, state: State) -> pl.DataFrame:
        """What stands after the changes so far."""
        table = state.tables["standing"]
        total = net(table.all())
        if table.rows() > total.height:
            table.clear()
            table.insert(total)
        state.numbers[_NET] = total.height
        return total

    # What waits

    def _log(self, state: State, one: Segment, changes: pl.DataFrame) -> None:
        """Put aside what is there in a segment that waits."""
        log = next((log for log in _logs(state) if log.until == one.since), None)
        if log is None or log.given != one.given:
            log = _Log(one.since, one.until, one.given)
            self._spool(state, log, _at(self._standing(state), one.since - 1))
        self._spool(state, log._replace(until=one.until), changes)

    def _spool(self, state: State, log: _Log, rows: pl.DataFrame) -> None:
        """Add rows to a log, which may be new."""
        state.numbers[f"until {log.since}"] = log.until
        state.numbers[f"given {log.since}"] = log.given
        tagged = rows.rename({TIME: _AT}).with_columns(pl.lit(log.since, TIME_TYPE).alias(_LOG))
        state.tables["spool"].insert(tagged)

    def _released(self, state: State, *, has_ended: bool) -> list[pl.DataFrame]:
        """What does not wait any more, if the spans are others than they were."""
        number = spans_number(self.spans)
        if not self.counts or (state.numbers.get(SPANS) == number and not has_ended):
            return []
        state.numbers[SPANS] = number
        out: list[pl.DataFrame] = []
        logs, spool = _logs(state), state.tables["spool"].all().rename({_AT: TIME})
        state.tables["spool"].clear()
        for log in logs:
            del state.numbers[f"until {log.since}"], state.numbers[f"given {log.since}"]
        for log in logs:
            rows = spool.filter(pl.col(_LOG) == log.since).drop(_LOG)
            for one in segments(self.spans, Time(log.since), Time(log.until), has_ended=has_ended):
                out += self._given_of(state, log, rows, one, has_ended=has_ended)
        return out

    def _given_of(
        self, state: State, log: _Log, rows: pl.DataFrame, one: Segment, *, has_ended: bool
    ) -> Iterator[pl.DataFrame]:
        """Give what a log holds of a segment and was not given; keep it if it still waits."""
        there = net(rows.filter(pl.col(TIME) < one.since).drop(TIME))
        here = rows.filter(pl.col(TIME).is_between(one.since, one.until, closed="left"))
        more = one.given - log.given
        if more > 0:
            joins, _ = seams_at(self.spans, one.since, has_ended=has_ended)
            if more > joins:
                yield _at(there, one.since, more - joins)
            yield here.with_columns(pl.col(SIGN) * more)
            if one.until < state.numbers.get(_PASSED, 0):  # after that it is still to be decided
                _, hands_on = seams_at(self.spans, one.until, has_ended=has_ended)
                gone = net(rows.filter(pl.col(TIME) < one.until).drop(TIME))
                if more > hands_on:
                    yield _at(gone, one.until, hands_on - more)
        if one.kept:
            again = _Log(one.since, one.until, max(one.given, log.given))
            self._spool(state, again, _at(there, one.since - 1))
            self._spool(state, again, here)


def _logs(state: State) -> list[_Log]:
    """The logs of the spool, in the order of time."""
    numbers = state.numbers
    begins = sorted(int(name[6:]) for name in numbers if name.startswith("until "))
    return [_Log(at, numbers[f"until {at}"], numbers[f"given {at}"]) for at in begins]


def _at(rows: pl.DataFrame, time: int, times: int = 1) -> pl.DataFrame:
    """Rows that stand, as changes at one time."""
    *row, sign = rows.columns
    assert sign == SIGN, "the sign comes last"
    made = rows.with_columns(pl.lit(time, TIME_TYPE).alias(TIME), pl.col(SIGN) * times)
    return pick(made, (*row, TIME, SIGN))
