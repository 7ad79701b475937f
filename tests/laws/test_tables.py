"""A table has, at every instant that is known and kept, the rows that its query answers.

Drawn are queries in both forms, what is asked of them while they run, inputs, batches, watermarks,
partitions, for how long rows are kept, when pieces are made anew, and after which batches the table
is opened again, or a batch is cut short and taken once more.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.delivering import SinkQuery
from laws.living import END, version
from laws.test_changes import FAR, Scene, scenes
from laws.test_delivered import asked
from tidemill.catalog.entries import Kept
from tidemill.catalog.records import Record
from tidemill.connectors.forms import Delivered
from tidemill.errors import RunError
from tidemill.history.settling import Kind, columns_of
from tidemill.history.table_list import GoneError, State
from tidemill.history.table_view import TableView
from tidemill.history.tables import Limits, Table
from tidemill.model.batch import END as ROW_END
from tidemill.model.batch import SIGN, START, TIME, TIME_TYPE, Form, polars_schema
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.runtime import table_files
from tidemill.runtime.shapes import Shape
from tidemill.runtime.table_files import MemoryTable, TableFiles
from tidemill.runtime.tables import known_up_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.snapshot import Row
    from tidemill.history.table_list import Store
    from tidemill.model.batch import Batch


class Disk(MemoryTable):
    """What is left when a process is over."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def lines(self) -> Iterator[object]:
        return map(json.loads, self.written)

    def append(self, line: str) -> None:
        self.written.append(line)

    def rewrite(self, lines: Sequence[str]) -> None:
        self.written = [*lines]


KEEPS = st.sampled_from([0, 1, 3, 10, None]).map(Kept)
LIMITS = st.builds(
    Limits, st.integers(1, 8), st.integers(2, 4), st.sampled_from([4, 100]), st.integers(1, 5)
)


@dataclass
class TableQuery(SinkQuery):
    """A query whose answer is a table.

    Attributes:
        keep: For how long rows are kept that have gone.
        limits: When pieces are made anew.
        happens: What happens to a batch: it is done, the table is opened again after it, or it is
            cut short before it is done, and taken once more.
        kind: The table, or one that a mutant writes.
    """

    keep: Kept = field(default_factory=Kept)
    limits: Limits = field(default_factory=Limits)
    happens: Callable[[], str] = lambda: "done"
    kind: type[Table] = Table
    disk: Disk = field(default_factory=Disk)
    table: Table | None = None

    def open(self, done: int) -> Table:
        """The table as it was left."""
        schema = self.record.versions[0].plan.schema
        self.table = self.kind(self.disk, schema, self.keep, done=done, limits=self.limits)
        return self.table

    def take(self, given: Mapping[str, list[Batch]]) -> None:
        table = self.open(0) if self.table is None else self.table
        names = [name for name in given if name[0] == "q"]
        columns = [*table.schema.names, TIME, SIGN]
        batches = [batch.select(columns) for name in names for batch in given[name]]
        changes = pl.concat(batches) if batches else None
        numbers = [int(name[2:]) for name in names]
        known = known_up_to([(self.cuts[n], self.answers[n].known) for n in numbers])
        if numbers:
            self.deliver(table, changes, known)

    def deliver(self, table: Table, changes: Batch | None, known: Time) -> None:
        batch = self.steps - 1
        table.take(batch, changes, known=known, read=None)
        match self.happens():
            case "cut":
                table = self.open(batch)
                table.take(batch, changes, known=known, read=None)
            case "again":
                table.take(batch, changes, known=known, read=None)
            case "opened":
                table.publish()
                table = self.open(batch + 1)
                table.take(batch, changes, known=known, read=None)  # which it has already
        table.publish()


def living(scene: Scene, data: st.DataObject) -> TableQuery:
    """The first query of a scene as a table, before anything has come."""
    happenings = st.sampled_from(["done", "done", "again", "cut", "opened"])
    shape = Shape(Delivered.CHANGES)
    return TableQuery(
        Record((version(1, scene.asked[0]),)),
        scene.content,
        scene.planning,
        scene.neighbours,
        scene.partitions,
        form=shape.form,
        keeps=scene.keeps,
        shape=shape,
        keep=data.draw(KEEPS),
        limits=data.draw(LIMITS),
        happens=lambda: data.draw(happenings),
    )


def view(table: Table) -> TableView:
    return TableView("q", table.schema, table.keep, table.state, table.store)


def wrong(query: TableQuery, scene: Scene) -> str:
    """What is wrong with what can be read now, if anything is."""
    table = query.table
    if table is None:
        return ""
    now, record, reference = view(table), query.record, scene.content.reference()
    present = now.state.present
    wanted = 0 if present is None or now.keep.length is None else present - now.keep.length
    if now.known < END_OF_TIME and now.since > max(wanted, 0):
        return f"known up to {now.known}, and kept from {now.since} on"
    for time in range(now.since, min(now.known, FAR)):
        there: Counter[Row] = Counter()
        for part in record.parts:
            if part.since <= time < part.until:
                one = record.instance(part.instance)
                plan = record.version(one.version).plan
                there += reference.snapshot(one.begun(plan), time)
        try:
            found = Counter(now.at(Time(time)).rows.rows())
        except AssertionError as error:
            return f"at {time}: {error}"
        if found != there:
            return f"at {time}: {found}, and not {there}"
    return ""


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data(), scene=scenes(versions=2))
def test_a_table_has_what_the_parts_of_its_query_answer(data: st.DataObject, scene: Scene) -> None:
    query = living(scene, data)
    for step in [*scene.arrival.steps, END, END]:
        if step is not END:
            for _ in range(data.draw(st.integers(0, 1))):
                try:
                    query.record = asked(data, query, scene).record
                except RunError:
                    continue
        query.step(step)
        assert not wrong(query, scene)


# Rows alone: how much is kept, and what is found by key


TIMES = {START: TIME_TYPE, ROW_END: TIME_TYPE}
SCHEMA = Schema((Field("a", BIGINT), Field("b", VARCHAR), Field("c", DOUBLE)))
VALUES = (
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, "", "x", "é"]),
    st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("inf")]),
)
Element = tuple[tuple[object, ...], int, int]
"""A row and the instants at which it is there."""


@dataclass(frozen=True)
class Story:
    """Elements, and up to when they are known after each batch."""

    elements: list[Element]
    marks: list[int]
    keep: Kept
    limits: Limits


@st.composite
def stories(draw: DrawFn) -> Story:
    spans = st.tuples(st.integers(0, 40), st.integers(1, 20) | st.just(END_OF_TIME))
    rows = st.tuples(*VALUES)
    drawn = draw(st.lists(st.tuples(rows, spans), max_size=25))
    elements: list[Element] = [
        (row, start, min(start + length, END_OF_TIME)) for row, (start, length) in drawn
    ]
    marks = sorted(draw(st.lists(st.integers(0, 70), max_size=12)))
    return Story(elements, marks, draw(KEEPS), draw(LIMITS))


def changes(elements: list[Element], since: int, until: int) -> pl.DataFrame:
    """What appears and goes in ``[since, until)``."""
    moves = [(row, start, 1) for row, start, _ in elements]
    moves += [(row, end, -1) for row, _, end in elements]
    now = [(*row, time, sign) for row, time, sign in moves if since <= time < until]
    return pl.DataFrame(now, schema=columns_of(SCHEMA, Kind.CHANGES), orient="row")


def same(value: object) -> object:
    """The value, equal to what is equal to it."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0  # noqa: PLR0124
    return value


def bag(rows: pl.DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(same, row)) for row in rows.rows())


def at(elements: list[Element], time: int) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(same, row)) for row, start, end in elements if start <= time < end)


def told(story: Story, kind: type[Table] = Table, disk: Store | None = None) -> Iterator[Table]:
    """The table after each batch, as a reader sees it; all goes wrong that can."""
    store = Disk() if disk is None else disk
    table = kind(store, SCHEMA, story.keep, done=0, limits=story.limits)
    before = 0
    for batch, mark in enumerate(story.marks):
        came = changes(story.elements, before, mark)
        table.take(batch, came, known=Time(mark), read=None)
        table = kind(store, SCHEMA, story.keep, done=batch, limits=story.limits)
        table.take(batch, came, known=Time(mark), read=None)
        table.publish()
        table.take(batch, came, known=Time(mark), read=None)
        table.publish()
        before = max(before, mark)
        yield table


def is_wrong(story: Story, kind: type[Table] = Table) -> bool:
    """Whether a reader finds other rows, or fewer instants, than there are to be."""
    for table in told(story, kind):
        now = view(table)
        present = max(now.known - 1, 0)
        first = 0 if story.keep.length is None else max(present - story.keep.length, 0)
        if now.since > first:
            return True
        for time in range(first, now.known):
            try:
                if bag(now.at(Time(time)).rows) != at(story.elements, time):
                    return True
            except (AssertionError, GoneError):
                return True
    return False


@given(story=stories())
def test_a_table_has_the_rows_of_each_instant(story: Story) -> None:
    assert not is_wrong(story)


@settings(max_examples=max(settings().max_examples // 4, 5))
@given(story=stories(), data=st.data())
def test_rows_are_found_by_any_columns(story: Story, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(["a", "b", "c"]), min_size=1))
    where = {n: data.draw(v) for n, v in zip("abc", VALUES, strict=True) if n in names}
    places = [(SCHEMA.names.index(name), same(value)) for name, value in where.items()]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "_GROUP_ROWS", 3)
        for table in told(story, disk=TableFiles(Path(folder) / "q")):
            now = view(table)
            for time in {*range(now.since, now.known, 5), now.known - 1} - {-1}:
                there = at(story.elements, time)
                wanted = {r: n for r, n in there.items() if all(r[i] == v for i, v in places)}
                assert bag(now.at(Time(time), where).rows) == wanted


@given(story=stories())
def test_of_what_is_kept_at_most_half_has_gone_too_long_ago(story: Story) -> None:
    limits, before, gone = story.limits, State(), Time(0)
    came = 0
    for table, mark in zip(told(story), story.marks, strict=True):
        state = table.state
        gone = before.first(story.keep)  # what is done decides: a batch may be taken again
        needed = sum(gone < end <= before.known for _, _, end in story.elements)
        assert state.rows(Kind.PAST) <= 2 * needed
        largest = changes(story.elements, came, mark).height
        standing, there = state.rows(Kind.STANDING), names(state)
        if there != names(before):
            assert standing <= sum(start < before.known <= end for _, start, end in story.elements)
        assert state.rows(Kind.CHANGES) <= max(limits.changes, standing) + largest
        assert len(table.store.written) <= limits.lines + 2  # type: ignore[attr-defined]
        assert len({*table.store._rows}) == len(state.pieces)  # type: ignore[attr-defined]  # noqa: SLF001
        came, before = max(came, mark), state


def names(state: State) -> list[str]:
    """What the pieces are called of what is there."""
    return [piece.name for piece in state.pieces if piece.kind is Kind.STANDING]


# Rows that come with their ends


@given(story=stories())
def test_rows_with_ends_are_kept_as_they_come(story: Story) -> None:
    """What begins before a watermark has come; each instant, and each span, has its rows."""
    disk, before = Disk(), 0
    for batch, mark in enumerate(story.marks):
        new = [(*row, start, end) for row, start, end in story.elements if before <= start < mark]
        rows = pl.DataFrame(new, schema={**polars_schema(SCHEMA), **TIMES}, orient="row")
        for again in (True, False):
            table = Table(
                disk, SCHEMA, story.keep, done=batch, limits=story.limits, form=Form.INTERVAL
            )
            table.take(batch, rows, known=Time(mark))
            if not again:
                table.publish()
        now, before = view(table), max(before, mark)
        for time in range(now.since, now.known):
            assert bag(now.at(Time(time)).rows) == at(story.elements, time)
            found = now.elements(Time(time), Time(time))
            there = ((*map(same, r), s, e) for r, s, e in story.elements if s <= time < e)
            assert bag(found) == Counter(there), f"at {time}"


@given(story=stories())
def test_elements_are_made_of_changes_as_well(story: Story) -> None:
    for table in told(story):
        now = view(table)
        for time in range(now.since, now.known):
            found = now.elements(Time(time), Time(time))
            assert bag(found.select(SCHEMA.names)) == at(story.elements, time)


# Mutants: the law must fail for them.


class Hasty(Table):
    """It removes what goes an instant too early."""

    def _maintain(self) -> None:
        keep = self.keep
        if keep.length is not None:
            self.keep = replace(keep, length=keep.length - 1)
        super()._maintain()
        self.keep = keep


class Twice(Table):
    """A batch that is delivered once more, although it is done, is added once more."""

    def take(
        self, batch: int, changes: Batch | None, *, known: Time, read: int | None = None
    ) -> None:
        if batch < self.state.done:
            self._next = self.state = replace(self.state, done=batch)
        super().take(batch, changes, known=known, read=read)


class Unsettled(Table):
    """It leaves out what is still there when it settles."""

    def _settled(self, pieces: tuple[object, ...], first: Time) -> tuple[object, ...]:  # type: ignore[override]
        made = super()._settled(pieces, first)  # type: ignore[arg-type]
        return tuple(piece for piece in made if piece.kind is not Kind.STANDING)


@pytest.mark.parametrize("kind", [Hasty, Twice, Unsettled])
def test_a_mutant_is_found(kind: type[Table]) -> None:
    quick = settings(max_examples=2000, phases=[Phase.generate], database=None, deadline=None)
    assert is_wrong(find(stories(), lambda story: is_wrong(story, kind), settings=quick), kind)
