"""Drive one physical operator, and hold it to its contract.

``run(operator, schedule)`` feeds the batches and watermarks of a schedule to an operator, checks
after each step what ``physical/operator.py`` promises, and gives what was emitted. ``schedules``
draws random ones: elements with ties, duplicates, NULLs, nested and adjacent intervals and ends in
any order, cut into batches at random, with any watermarks that time allows.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from hypothesis import strategies as st

from stores import refill, save, save_again
from tidemill.algebra.values import NAN
from tidemill.model.batch import (
    END,
    ID,
    SIGN,
    START,
    TIME,
    TIME_TYPE,
    Form,
    polars_schema,
    time_columns,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, DataType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.types import Value
    from tidemill.physical.operator import Operator, State

__all__ = [
    "Advance",
    "Arrive",
    "Change",
    "Element",
    "Output",
    "Schedule",
    "at_once",
    "batch",
    "busy",
    "changes_of",
    "crowded",
    "crowds",
    "elements_of",
    "normal",
    "run",
    "same_state",
    "saved_and_loaded",
    "schedules",
    "snapshot",
]

LAST = 12
"""Elements start before this instant, so that they meet."""

VALUES: dict[DataType, tuple[Value, ...]] = {
    BIGINT: (None, 0, 1, 2),
    INTEGER: (None, 0, 1, 2),
    VARCHAR: (None, "x", "y"),
    BOOLEAN: (None, True, False),
    DOUBLE: (None, 0.0, 1.5, NAN),
}
"""Few values of each type, so that rows meet."""


@dataclass(frozen=True, slots=True)
class Element:
    """A row that is valid in ``[start, end)``."""

    row: Row
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Change:
    """A row that is there so many times more, or less, from an instant on."""

    row: Row
    start: int
    sign: int


Item: TypeAlias = Element | Change


@dataclass(frozen=True, slots=True)
class Arrive:
    """Elements, or changes, come in at a port, in one batch."""

    port: int
    elements: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Advance:
    """All ports have passed a time."""

    time: int


Event: TypeAlias = Arrive | Advance


@dataclass(frozen=True, slots=True)
class Schedule:
    """What happens to an operator; the watermark ``END_OF_TIME`` comes last of all, by itself."""

    schemas: tuple[Schema, ...]
    events: tuple[Event, ...]
    forms: tuple[Form, ...] = ()

    def form(self, port: int) -> Form:
        """The form of what comes in at a port."""
        return self.forms[port] if self.forms else Form.INTERVAL

    def elements(self, port: int = 0) -> list[Element]:
        """All elements that come in at a port in interval form."""
        return [item for item in self.items(port) if isinstance(item, Element)]

    def items(self, port: int = 0) -> list[Item]:
        """All that comes in at a port."""
        return [
            element
            for event in self.events
            if isinstance(event, Arrive) and event.port == port
            for element in event.elements
        ]

    def times(self) -> list[int]:
        """Every instant at which an input can change, the one before, and the last of all."""
        ports = range(len(self.schemas))
        edges = {t for port in ports for e in self.items(port) for t in _edges(e)}
        around = {t for edge in edges for t in (edge - 1, edge)}
        return sorted(t for t in around | {0, END_OF_TIME - 1} if 0 <= t < END_OF_TIME)

    def snapshot(self, port: int, time: int) -> Bag:
        """The rows of an input that are valid at an instant."""
        return snapshot(self.items(port), time)


@dataclass(frozen=True, slots=True)
class Output:
    """What an operator has emitted.

    Attributes:
        elements: All of it in interval form.
        changes: All of it in signed form.
        sizes: How many rows of state there were after each watermark.
    """

    elements: list[Element] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def snapshot(self, time: int) -> Bag:
        """The rows that are valid at an instant."""
        return snapshot([*self.elements, *self.changes], time)

    def text(self) -> str:
        """The elements of one column in the notation of the paper, in order."""
        parts = sorted((e.start, e.end, "".join(map(str, e.row))) for e in self.elements)
        return " ".join(
            f"{row}[{start},{'inf' if end == END_OF_TIME else end})" for start, end, row in parts
        )


def run(  # noqa: PLR0913 — how it is driven
    operator: Operator,
    schedule: Schedule,
    *,
    reload: bool = False,
    tight: bool = True,
    ids: bool = False,
    after: Callable[[State, Time], State] | None = None,
) -> Output:
    """What the operator makes of the schedule; fails where it breaks its contract.

    Args:
        operator: The operator.
        schedule: What comes in.
        reload: Whether state is saved and loaded after every event.
        tight: Whether no row that ends at the watermark may stay. A sweep keeps it until the
            watermark has passed, since more can happen at that instant.
        ids: Whether batches carry ``ID``, a number of its own for each element.
        after: What becomes of the state after each event, given the watermark.
    """
    state, output, next_id = operator.new_state(), Output(), 0
    least_start, watermark = 0, Time(0)
    for event in (*schedule.events, Advance(END_OF_TIME)):
        if isinstance(event, Arrive):
            schema, form = schedule.schemas[event.port], schedule.form(event.port)
            frame = batch(schema, event.elements, form)
            if ids:
                numbers = pl.int_range(next_id, next_id + frame.height, dtype=pl.Int64, eager=True)
                frame = frame.with_columns(numbers.alias(ID))
                next_id += frame.height
            emitted = list(operator.on_batch(state, event.port, frame))
        else:
            emitted = list(operator.on_watermark(state, Time(event.time)))
        for part in emitted:
            _check_batch(operator, part, least_start)
            if _form(part) is Form.INTERVAL:
                output.elements.extend(elements_of(operator.schema, part))
            else:
                output.changes.extend(_changes(operator.schema, part))
        if isinstance(event, Advance):
            _check_state(operator, state, event.time, tight=tight)
            least_start = min(event.time, operator.held(state))
            output.sizes.append(state.rows())
            watermark = Time(event.time)
        if reload:
            state = saved_and_loaded(operator, state)
        if after is not None:
            state = after(state, watermark)
    return output


def saved_and_loaded(operator: Operator, state: State) -> State:
    """A new state with the same tables and numbers."""
    fresh = operator.new_state()
    store = save(state)
    before = store.text, dict(store.segments)
    if state.remembers:
        refill(fresh, store)
        save_again(fresh, store)
    assert (store.text, store.segments) == before, "what was saved and loaded is saved alike"
    assert same_state(state, fresh), "segments keep their rows"
    return fresh


def same_state(one: State, other: State) -> bool:
    """Whether two states hold the same rows and numbers."""
    return one.numbers == other.numbers and all(
        Counter(map(normal, table.all().iter_rows()))
        == Counter(map(normal, other.tables[name].all().iter_rows()))
        for name, table in one.tables.items()
    )


def _check_batch(operator: Operator, part: Batch, least_start: int) -> None:
    form = _form(part)
    expected = {**polars_schema(operator.schema), **dict.fromkeys(time_columns(form), TIME_TYPE)}
    actual = dict(part.drop(ID, strict=False).schema)
    assert actual == expected, f"a batch has the columns {expected}, not {actual}"
    if form is Form.INTERVAL:
        assert (part[START] < part[END]).all(), "no interval is empty"
    else:
        assert (part[SIGN] != 0).all(), "a change changes something"
    first = part[time_columns(form)[0]].min()
    assert first is None or isinstance(first, int), "times are integers"
    assert first is None or first >= least_start, (
        f"starts at {first}, promised not before {least_start}"
    )


def _check_state(operator: Operator, state: State, watermark: int, *, tight: bool) -> None:
    if watermark == END_OF_TIME:
        left = {name: table.all() for name, table in state.tables.items() if table.rows()}
        assert not left, f"in the end nothing is left, but {left}"
    # What works lazily may keep a row for as long as it waits before it looks.
    lazy: int = getattr(operator, "evaluation", 0) + getattr(operator, "expiration", 0)
    over = watermark - lazy - (not tight)
    for name, table in state.tables.items():
        for column in {END, TIME} & set(table.schema):
            stale = table.all().filter(pl.col(column) <= over)
            assert stale.is_empty(), f"{name} keeps what is over at {watermark}: {stale}"
    delay: int | None = getattr(operator, "max_delay", None)
    held = operator.held(state)
    assert delay is None or held >= watermark - delay, f"held at {held}, the watermark {watermark}"


def batch(schema: Schema, elements: Iterable[Item], form: Form = Form.INTERVAL) -> Batch:
    """The elements or changes as a batch."""
    rows = [(*e.row, e.start, e.end if isinstance(e, Element) else e.sign) for e in elements]
    columns = {**polars_schema(schema), **dict.fromkeys(time_columns(form), TIME_TYPE)}
    return pl.DataFrame(rows, schema=columns, orient="row")


def elements_of(schema: Schema, frame: Batch) -> list[Element]:
    """The rows of a batch as elements."""
    # Not by select: to Polars some names are patterns.
    columns = [frame.get_column(name) for name in (*schema.names, START, END)]
    return [Element(normal(row[:-2]), row[-2], row[-1]) for row in zip(*columns, strict=True)]


def _changes(schema: Schema, frame: Batch) -> list[Change]:
    columns = [frame.get_column(name) for name in (*schema.names, TIME, SIGN)]
    return [Change(normal(row[:-2]), row[-2], row[-1]) for row in zip(*columns, strict=True)]


def _form(frame: Batch) -> Form:
    return Form.SIGNED if SIGN in frame.columns else Form.INTERVAL


def _edges(item: Item) -> tuple[int, ...]:
    return (item.start, item.end) if isinstance(item, Element) else (item.start,)


def normal(row: Sequence[Value]) -> Row:
    """The row with the only NaN and the only zero there are, so that it can be counted."""
    return tuple(
        (NAN if math.isnan(value) else value + 0.0) if isinstance(value, float) else value
        for value in row
    )


def snapshot(elements: Iterable[Item], time: int) -> Bag:
    """The rows that are there at an instant; none a negative number of times."""
    bag: Bag = Counter()
    for item in elements:
        if isinstance(item, Change):
            bag[normal(item.row)] += item.sign if item.start <= time else 0
        elif item.start <= time < item.end:
            bag[normal(item.row)] += 1
    assert min(bag.values(), default=0) >= 0, "only what is there is withdrawn"
    return Counter({row: count for row, count in bag.items() if count})


def at_once(*ports: tuple[Schema, Iterable[Element]]) -> Schedule:
    """Everything in one batch a port, and no watermark but the last."""
    events = tuple(Arrive(port, tuple(elements)) for port, (_, elements) in enumerate(ports))
    return Schedule(tuple(schema for schema, _ in ports), events)


# Random schedules


@cache
def _rows(schema: Schema) -> list[Row]:
    """Every row of the few values of each type."""
    choices = (
        [value for value in VALUES[f.type] if f.nullable or value is not None] for f in schema
    )
    return list(product(*choices))


def _ends(start: int, length: int) -> int:
    return END_OF_TIME if length == 0 else start + length


@cache
def _drawn_elements(schema: Schema, lengths: tuple[int, ...]) -> SearchStrategy[list[Element]]:
    # One draw an element, from a list of all there could be, is much faster than one a part.
    intervals = [(start, _ends(start, n)) for start in range(LAST) for n in lengths]
    moments = st.tuples(st.sampled_from(_rows(schema)), st.sampled_from(intervals))
    return st.lists(moments.map(lambda m: Element(m[0], *m[1])), max_size=14)


_CHANCES: SearchStrategy[Random] = st.integers(0, 2**32).map(Random)


@st.composite
def schedules(
    draw: DrawFn,
    *schemas: Schema,
    lengths: tuple[int, ...] = (1, 1, 2, 3, 4, 7, 0),
    rows: Mapping[int, SearchStrategy[Row]] | None = None,
    forms: tuple[Form, ...] = (),
) -> Schedule:
    """Schedules for an operator with these inputs.

    Args:
        draw: Given by Hypothesis.
        schemas: The schema of each port.
        lengths: How long elements may be valid; 0 is for ever. ``(1,)`` gives a stream of instants.
        rows: The rows that may come in at a port, if not those of the few values of each type.
        forms: In which form each port gets them; in signed form, an element comes as two changes,
            which need not come together.
    """
    ports = [
        draw(_drawn_elements(schema, lengths))
        if rows is None or port not in rows
        else draw(st.lists(_elements(rows[port], lengths), max_size=14))
        for port, schema in enumerate(schemas)
    ]
    watermarks = sorted(draw(st.lists(st.integers(0, LAST + 8), max_size=8)))
    items: list[list[Item]] = [
        changes_of(elements) if forms and forms[port] is Form.SIGNED else [*elements]
        for port, elements in enumerate(ports)
    ]
    return Schedule(schemas, _events(items, watermarks, draw(_CHANCES)), forms)


def changes_of(elements: Iterable[Element]) -> list[Item]:
    """The elements in signed form: what appears, and what is withdrawn."""
    return [
        change
        for e in elements
        for change in (Change(e.row, e.start, 1), Change(e.row, e.end, -1))
        if change.start < END_OF_TIME
    ]


def crowded(schema: Schema, row: Callable[[Random], Row], chance: Random) -> Schedule:
    """A schedule for an operator with one input, many of whose elements share their interval."""
    lengths = chance.sample((2, 3, 4, 7, 0), 2)
    starts = chance.sample(range(LAST), chance.randint(1, 4))
    elements = []
    for _ in range(chance.randrange(30)):
        start = chance.choice(starts)
        elements.append(Element(row(chance), start, _ends(start, chance.choice(lengths))))
    watermarks = sorted(chance.randint(0, LAST + 8) for _ in range(chance.randrange(6)))
    return Schedule((schema,), _events([elements], watermarks, chance))


def busy(schema: Schema, row: Callable[[Random], Row], chance: Random) -> Schedule:
    """A schedule for an operator with one input in signed form, with many watermarks."""
    elements = []
    for _ in range(chance.randint(10, 40)):
        start = chance.randrange(LAST)
        elements.append(Element(row(chance), start, start + chance.randint(1, LAST)))
    watermarks = sorted(chance.sample(range(2 * LAST), chance.randint(4, 12)))
    return Schedule((schema,), _events([changes_of(elements)], watermarks, chance), (Form.SIGNED,))


def crowds(
    schemas: tuple[Schema, ...],
    row: Callable[[Schema, Random], Row],
    chance: Random,
    forms: tuple[Form, ...],
) -> Schedule:
    """A schedule with many rows of every input and many watermarks."""
    ports: list[list[Item]] = []
    for schema, form in zip(schemas, forms, strict=True):
        elements = []
        for _ in range(chance.randint(12, 30)):
            start, length = chance.randrange(2 * LAST), chance.choice((1, 2, 3, 5, LAST, 0))
            elements.append(Element(row(schema, chance), start, _ends(start, length)))
        ports.append(changes_of(elements) if form is Form.SIGNED else [*elements])
    watermarks = sorted(chance.sample(range(3 * LAST), chance.randint(4, 12)))
    return Schedule(schemas, _events(ports, watermarks, chance), forms)


def _elements(rows: SearchStrategy[Row], lengths: tuple[int, ...]) -> SearchStrategy[Element]:
    build: Callable[[Row, int, int], Element] = lambda row, start, n: Element(  # noqa: E731
        row, start, _ends(start, n)
    )
    return st.builds(build, rows, st.integers(0, LAST - 1), st.sampled_from(lengths))


def _events(
    ports: Sequence[Sequence[Item]], watermarks: Sequence[int], chance: Random
) -> tuple[Event, ...]:
    """The elements, each some time before a watermark passes its start, in batches at random."""
    slots: list[list[tuple[int, Item]]] = [[] for _ in range(len(watermarks) + 1)]
    for port, elements in enumerate(ports):
        for element in elements:
            latest = sum(watermark <= element.start for watermark in watermarks)
            # Half of the elements come as late as they may.
            slot = latest if chance.random() < 0.5 else chance.randint(0, latest)
            slots[slot].append((port, element))
    events: list[Event] = []
    for i, arrivals in enumerate(slots):
        chance.shuffle(arrivals)
        events += _batches(arrivals, len(ports), chance)
        if i < len(watermarks):
            events.append(Advance(watermarks[i]))
    return tuple(events)


def _batches(arrivals: Sequence[tuple[int, Item]], ports: int, chance: Random) -> Iterable[Arrive]:
    left = list(arrivals)
    while left or chance.random() < 0.1:
        port = chance.randrange(ports)
        size = chance.choice((0, 1, 1, 2, 5, len(left)))
        taken = [e for p, e in left if p == port][:size]
        for element in taken:
            left.remove((port, element))
        if taken or chance.random() < 0.2:
            yield Arrive(port, tuple(taken))
