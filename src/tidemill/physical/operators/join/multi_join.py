"""Join of many interval streams in one operator: combinations that match, valid where all are.

Law:    snapshot(out, t) == snapshot(in 1, t) ⋈ … ⋈ snapshot(in n, t), for every t; whatever the
        orders of probing, when it is evaluated and when rows expire. Two things can be asked for
        that are something else: ``ShortLived.NO_RESTORE``, and ``within``, which looks at elements.
State:  the inputs, and nothing in between (Z06): an element until the watermark has reached its
        end, or is further from its start than any partner may be. What cannot match is never
        remembered. With lazy evaluation also what has come since the last one.
Order:  none promised; chronon if one of the inputs is. A combination leaves when its last element
        has come and, if evaluation is lazy, the watermark has passed a multiple of the interval.

An element of an input meets the others one after another, in an order of its input's own (G-29);
at each step all conditions apply whose columns are there. Values are looked up as in ``Join``, by
the columns that a step asks for, so that what a step costs follows the rows that come and match.

It hands over its state if evaluation is eager and nothing but values and ends decides. Of elements
that wait for an evaluation nothing says so but where they are; and ``within`` forgets elements
whose combinations stand.

Lazy evaluation joins what has come since the last time input by input, the rows of each remembered
before the next one's probe, so each combination is found once: by the last of its new elements
(G-31, G-32). Lazy expiration leaves rows that are over in the state for a while and passes over
them (G-30). Either saves work by doing it for many at once, and holds more for longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, Form, empty_batch, interval_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.joining.meeting import meeting_keys, passes_of
from tidemill.physical.joining.partners import Living
from tidemill.physical.joining.probe import probe
from tidemill.physical.joining.probe_plan import ProbePlan, begin, plan_probes
from tidemill.physical.joining.side import numbered_inside
from tidemill.physical.kernels.window_closure import Windows, closed_windows, reach
from tidemill.physical.operator import State
from tidemill.physical.operators.rows.granularity import round_up
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Instants, Traits, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch

__all__ = ["EAGER", "MultiJoin", "ShortLived"]

EAGER = 0
"""The interval of what is done at once."""

_WATERMARK = "watermark"


class ShortLived(Enum):
    """What becomes of results that begin and end between two evaluations."""

    RESTORE = auto()
    """They are given all the same: the answer is that of eager evaluation."""

    NO_RESTORE = auto()
    """They are missing, and the others begin late. The answer is not the snapshots' join.

    There are exactly the results that are alive at the first multiple of the interval at or after
    their start, each from that multiple on. So the snapshots are those of the join at multiples of
    the interval, and part of them in between.
    """


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """Combinations of one row of each input for which the condition is true.

    State does not depend on ``orders``, ``orderly`` and ``expiration``: if they change, it is kept,
    as the operator counts as the same.

    Attributes:
        inputs: The columns of each input; there are two at least.
        names: Names for the columns of all, in the order of the inputs.
        condition: What must be true, in these names.
        orders: For each input, the others in the order in which its elements probe them.
        orderly: For each input, whether elements end in the order of their starts; those that do
            not are laid out by expiry. Without any, all do.
        evaluation: ``EAGER``, or the interval in microseconds at whose multiples what has come is
            joined.
        expiration: ``EAGER``, or the interval at whose multiples what is over is forgotten.
        short_lived: What lazy evaluation does with results that are over before it.
        within: For each two inputs, how far the starts of their elements may be apart at most, if
            there is a bound. It is part of the meaning, and depends on how validity is cut into
            elements.
        schema: The columns of the output: those of all inputs under ``names``.
    """

    inputs: tuple[Schema, ...]
    names: tuple[str, ...]
    condition: Expr
    orders: tuple[tuple[int, ...], ...] = field(repr=False, compare=False)
    orderly: tuple[bool, ...] = field(default=(), repr=False, compare=False)
    evaluation: int = EAGER
    expiration: int = field(default=EAGER, repr=False, compare=False)
    short_lived: ShortLived = ShortLived.RESTORE
    within: Windows | None = None
    schema: Schema = field(init=False, repr=False, compare=False)
    _plan: ProbePlan = field(init=False, repr=False, compare=False)
    _closed: Windows | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ports = range(len(self.inputs))
        assert len(ports) > 1, "a join has two inputs at least"
        assert [sorted((port, *order)) for port, order in enumerate(self.orders)] == [
            list(ports) for _ in ports
        ], "every input probes each of the others once"
        assert len(self.orderly) in (0, len(ports)), "each input is orderly or not"
        assert min(self.evaluation, self.expiration) >= EAGER, "an interval is not negative"
        assert self.short_lived is ShortLived.RESTORE or self.evaluation, "eager gives all results"
        everything = (f for schema in self.inputs for f in schema)
        both = zip(self.names, everything, strict=True)
        fields = tuple(Field(name, f.type, f.nullable) for name, f in both)
        closed = None if self.within is None else closed_windows(self.within)
        object.__setattr__(self, "schema", Schema(fields))
        object.__setattr__(self, "_closed", closed)
        inside, condition = numbered_inside(self.names, fields, self.condition)
        plan = plan_probes(self.inputs, inside, condition, self.orders, closed)
        object.__setattr__(self, "_plan", plan)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=tuple(Form.INTERVAL for _ in self.inputs),
            gives=Form.INTERVAL,
            meets=meeting_keys(self.inputs, self.names, self.condition),
            passes=passes_of(self.inputs, self.names),
            # What waits for the next evaluation lies behind the watermark meanwhile.
            emits=Emission.WHEN_ENDED if self.evaluation else Emission.AT_ONCE,
            expiry=Expiry.JOINED,
            instants=Instants.JOINED,
            shortens=self.short_lived is ShortLived.RESTORE and self.within is None,
            tables=state_tables(self.new_state()),
            counts=bool(self.evaluation),
            hands_over=not self.evaluation and self.within is None,
        )

    def new_state(self) -> State:
        """No element of any input."""
        state = State()
        for port in self._ports():
            begins = () if self._closed is None else (begin(port),)
            columns = {**self._plan.sides[port].columns, **dict.fromkeys(begins, TIME_TYPE)}
            times = (START, END, *begins)
            by_expiry = bool(self.orderly) and not self.orderly[port]
            state.tables[_joined(port)] = Table(
                columns, times, key=self._plan.sides[port].keys, by_expiry=by_expiry
            )
            if self.evaluation:
                state.tables[_new(port)] = Table(columns, times)
        return state

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the elements; emit their combinations with what the other inputs have brought.

        If evaluation is lazy, the elements wait.
        """
        elements = self._entry(port, batch)
        if self.evaluation:
            state.tables[_new(port)].insert(elements)
        else:
            yield from self._join(state, port, elements)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Evaluate if it is time to; forget what no later element can meet if it is time to."""
        last = state.numbers.get(_WATERMARK)
        if self.evaluation or self.expiration:
            state.numbers[_WATERMARK] = time
        if self.evaluation and _passes(self.evaluation, last, time):
            for port in self._ports():
                waiting = state.tables[_new(port)]
                elements = waiting.all()
                waiting.clear()
                yield from self._join(state, port, elements)
        if not self.expiration or _passes(self.expiration, last, time):
            self._expire(state, time)

    def held(self, state: State) -> Time:
        """A combination starts no earlier than its last element, which waits or has not come."""
        waiting = self._waiting(state, (START for _ in self.inputs))
        return END_OF_TIME if waiting is None else waiting

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The elements that have not ended."""
        rows = state.tables[_joined(port)].all()
        return self._plan.sides[port].left(rows.filter(pl.col(END) > time))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in those of the elements that can have partners."""
        elements = self._entry(port, batch)
        state.tables[_joined(port)].insert(elements.filter(pl.col(END) > time))

    def standing(self, state: State, time: Time) -> Batch:
        """The combinations of what is remembered: all of them have left."""
        elements = state.tables[_joined(0)].all().filter(pl.col(END) > time)
        found = self._combinations(state, 0, elements, time, is_late=True)
        return pl.concat([empty_batch(self.schema), *found])

    def _ports(self) -> range:
        return range(len(self.inputs))

    def _entry(self, port: int, batch: Batch) -> pl.DataFrame:
        """The elements of a batch that can have partners."""
        elements = self._plan.sides[port].entry(batch)
        if self._closed is not None:
            elements = elements.with_columns(pl.col(START).alias(begin(port)))
        if self.short_lived is ShortLived.NO_RESTORE:
            # Rounding up keeps order: the latest start rounded is the latest of those rounded.
            rounded = elements.with_columns(round_up(pl.col(START), self.evaluation))
            elements = rounded.filter(pl.col(START) < pl.col(END))
        return elements.filter(*self._plan.entry[port])

    def _join(self, state: State, port: int, elements: pl.DataFrame) -> Iterator[Batch]:
        """Remember new elements of an input; emit their combinations with the other inputs'."""
        if elements.is_empty():
            return
        state.tables[_joined(port)].insert(elements)
        earliest = elements[START].min()
        assert isinstance(earliest, int), "times are integers"
        is_late = bool(self.expiration or self.evaluation)
        yield from self._combinations(state, port, elements, Time(earliest), is_late=is_late)

    def _combinations(
        self, state: State, port: int, elements: pl.DataFrame, after: Time, *, is_late: bool
    ) -> Iterator[Batch]:
        """The combinations of elements of an input with all others that end after a time."""
        partners = [
            Living(state.tables[_joined(other)], after, is_late) for other in self.orders[port]
        ]
        for found in probe(elements, self._plan.steps[port], partners):
            out = pick(found, (*(f"@{i}" for i in range(len(self.schema))), START, END))
            out.columns = interval_columns(self.schema)
            yield out

    def _expire(self, state: State, time: Time) -> None:
        """Forget what neither a later element can meet nor one that waits."""
        # Ends are exclusive: an element ending at the watermark does not meet one starting there.
        next_start = min(self._first_start(time), self.held(state))
        for port in self._ports():
            state.tables[_joined(port)].purge(END, Time(next_start))
        if self._closed is None:
            return
        waiting = self._waiting(state, map(begin, self._ports()))
        next_begin = time if waiting is None else min(time, waiting)
        for port in self._ports():
            if (far := reach(self._closed, port)) is not None:
                state.tables[_joined(port)].purge(begin(port), Time(next_begin - far - 1))

    def _first_start(self, time: Time) -> Time:
        """Where an element that comes at or after a time can start at the earliest."""
        if self.short_lived is ShortLived.RESTORE:
            return time
        return Time(min(-(-time // self.evaluation) * self.evaluation, END_OF_TIME))

    def _waiting(self, state: State, columns: Iterable[str]) -> Time | None:
        """The least time among the elements that wait, given its column for each input."""
        if not self.evaluation:
            return None
        least = (state.tables[_new(port)].least(name) for port, name in enumerate(columns))
        return min((Time(time) for time in least if time is not None), default=None)


def _joined(port: int) -> str:
    """The table of an input's elements that have been joined."""
    return f"joined{port}"


def _new(port: int) -> str:
    """The table of an input's elements that wait."""
    return f"new{port}"


def _passes(interval: int, last: int | None, time: Time) -> bool:
    """Whether a watermark passes a multiple of the interval; the first and the last ones do."""
    return last is None or time == END_OF_TIME or time // interval > last // interval
