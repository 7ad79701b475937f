"""The rows that an answer is made of are those found by trying all sets of rows there are.

Inputs are tiny, so that all parts of them can be tried. The last laws are the declarative
definition of provenance (P5), read at one instant: of a row of the answer at t, it is the smallest
part of the input with which

1. the answer at t is that row and nothing else;
2. the row is there at t if all else is there up to the last of the part as well;
3. every window holds at t, of the row's group, what it holds with the whole input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.lineage_plans import (
    DIFFERENCES,
    all_origins,
    apart,
    by_time,
    one_step,
    only,
    origins_of,
    positive,
    simple,
    snapshot,
    some_instant,
)
from laws.strategies import plans
from streams import call, cross, number, project
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import (
    Aggregate,
    NamedAggregate,
    Plan,
    RowWindow,
    Source,
    TimeWindow,
    Unbounded,
    Window,
    WindowSpec,
)
from tidemill.algebra.snapshot import Bag, Element, Reference, Row
from tidemill.algebra.tree import walk
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tidemill.algebra.origins import Origin

MOST = 6
MANY = settings(max_examples=4 * settings().max_examples)

COUNT = NamedAggregate("n", AggregateCall("count", None, BIGINT))


def parts(whole: Collection[Origin]) -> Iterator[frozenset[Origin]]:
    """All parts, the smaller ones first."""
    for size in range(len(whole) + 1):
        yield from (frozenset(part) for part in combinations(sorted(whole), size))


def minimal(found: Collection[frozenset[Origin]]) -> set[frozenset[Origin]]:
    """Those that no other one is part of."""
    return {part for part in found if not any(other < part for other in found)}


def tiny(data: st.DataObject, plan: Plan, content: Inputs) -> tuple[Inputs, int]:
    """An instant with a row, and inputs with few rows, some of those that it is made of."""
    time, rows = some_instant(data, plan, content)
    origins = sorted(data.draw(st.sampled_from(rows))[1])[:MOST]
    others = st.lists(st.sampled_from(all_origins(content, plan)), max_size=MOST - len(origins))
    return only(content, plan, {*origins, *data.draw(others)}), time


@MANY
@given(
    data=st.data(),
    plan=plans().map(by_time).map(positive)
    | one_step(lambda plan: positive(by_time(plan)), DIFFERENCES)
    | plans(2).map(by_time).map(simple).map(lambda plan: Aggregate(plan, (), (COUNT,))),
    content=inputs() | dense_inputs(),
)
def test_the_origins_are_what_matters(data: st.DataObject, plan: Plan, content: Inputs) -> None:
    """Positive plans, one difference of them, COUNT over simple plans: nothing can be spared.

    For each origin of a row, and for nothing else, there is a part of the input in which it changes
    how often the row is there.
    """
    few, time = tiny(data, plan, content)
    tree = apart(plan)
    tried = {p: snapshot(few, tree, p, time) for p in parts(all_origins(few, tree))}
    for row, origins in origins_of(few.lineage().rows(tree, time)).items():
        matters = {
            one
            for part, bag in tried.items()
            for one in part
            if bag[row] != tried[part - {one}][row]
        }
        assert origins == matters, f"{row} at {time}:\n{explain(plan)}"


@MANY
@given(data=st.data(), plan=plans().map(by_time).map(simple), content=inputs() | dense_inputs())
def test_the_origins_of_copies_are_the_smallest_parts_that_make_the_row(
    data: st.DataObject, plan: Plan, content: Inputs
) -> None:
    """Simple plans: the origins of a row that is made in one way are the only such part."""
    few, time = tiny(data, plan, content)
    tree = apart(plan)
    tried = {p: snapshot(few, tree, p, time) for p in parts(all_origins(few, tree))}
    made = few.lineage().rows(tree, time)
    for row in {row for row, _ in made}:
        smallest = minimal([part for part, bag in tried.items() if bag[row]])
        assert smallest == {o for other, o in made if other == row}, explain(plan)


# The declarative definition (P5)

READINGS = Schema((Field("n", BIGINT), Field("room", VARCHAR), Field("value", BIGINT)))
"""The number of a reading tells it from others, in windows as well."""


def last_of(part: Collection[Origin], content: Inputs) -> int:
    times = {
        (n, e.id): e.time for n in range(len(content.streams)) for e in content.streams[str(n)]
    }
    return max((times[origin] for origin in part), default=-1)


@dataclass(frozen=True, slots=True)
class Asked:
    """A row of the answer of a plan whose leaves are apart, and its room if it is of one."""

    plan: Plan
    content: Inputs
    time: int
    row: Row
    room: str | None = None

    def is_explained_by(self, part: Collection[Origin]) -> bool:
        """Whether the three conditions hold of a part of the input."""
        reference, whole = (
            only(self.content, self.plan, part).reference(),
            self.content.reference(),
        )
        until = self.content.until(last_of(part, self.content)).reference()
        windows = [node for node in walk(self.plan) if isinstance(node, Window)]
        return (
            reference.snapshot(self.plan, self.time) == Counter([self.row])
            and self.row in until.snapshot(self.plan, self.time)
            and all(self._held(reference, w) == self._held(whole, w) for w in windows)
        )

    def _held(self, reference: Reference, window: Window) -> Bag:
        held = reference.snapshot(window, self.time)
        return Counter({row: n for row, n in held.items() if self.room in (None, row[1])})

    def assert_is_explained(self) -> None:
        """Require that what the row is made of is the only smallest part that explains it."""
        made = self.content.lineage().rows(self.plan, self.time)
        [origins] = (origins for row, origins in made if row == self.row)
        whole = all_origins(self.content, self.plan)
        found = [part for part in parts(whole) if self.is_explained_by(part)]
        assert minimal(found) == {origins}, f"{self.row} at {self.time}:\n{explain(self.plan)}"


def summed(window: WindowSpec, *, by_room: bool) -> Plan:
    if by_room and isinstance(window, RowWindow):
        # Without it a prefix of the input can hold older rows of a room instead of others' rows.
        window = replace(window, partition_by=("room",))
    keys = (Named("room", Column("room", VARCHAR)),) if by_room else ()
    total = AggregateCall("sum", Column("value", BIGINT), BIGINT)
    held = Window(Source("0", READINGS), window)
    return Aggregate(held, keys, (NamedAggregate("total", total),))


@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from("xy"), st.integers(0, 2)), max_size=5
    ),
    window=st.builds(TimeWindow, st.integers(1, 3), st.integers(1, 2))
    | st.builds(RowWindow, st.integers(1, 3))
    | st.just(Unbounded()),
)
@pytest.mark.parametrize("by_room", [False, True])
def test_a_sum_is_explained_by_its_group_and_nothing_less(
    drawn: list[tuple[int, str, int]], window: WindowSpec, *, by_room: bool
) -> None:
    """SUM over time, ROWS (one by one) and unbounded windows."""
    times = sorted(time for time, _, _ in drawn)
    rows = [(n, room, value) for n, (_, room, value) in enumerate(drawn)]
    elements = (Element(t, i, row) for i, (t, row) in enumerate(zip(times, rows, strict=True)))
    plan, content = summed(window, by_room=by_room), Inputs({"0": tuple(elements)}, {})
    for time in HORIZON[:7]:
        for row in content.reference().snapshot(plan, time):
            room = str(row[0]) if by_room else None
            Asked(plan, content, time, row, room).assert_is_explained()


def test_equal_sums_at_different_instants_are_made_of_different_rows() -> None:
    """SUM of the last two of 5, 5, 5, 5 is 10 three times."""
    elements = tuple(Element(time, time, (time, "x", 5)) for time in range(4))
    plan, content = summed(RowWindow(2), by_room=False), Inputs({"0": elements}, {})
    for time in (1, 2, 3):
        [(_, origins)] = content.lineage().rows(plan, time)
        assert origins == {(0, time - 1), (0, time)}
        Asked(plan, content, time, (10,)).assert_is_explained()
        older = {(0, time - 2), (0, time - 1)}
        alone = only(content, plan, older).reference().snapshot(plan, time)
        assert alone == Counter([(10,) if time > 1 else (5,)]), "so the value alone does not tell"


# Example 2: three sensors, and whether the mean of two seconds is above 150

SENSORS = ((70, 166, 143, 161, 170), (30, 40, 37, 60, 23), (130, 152, 153, 151, 145))
FOUND = {2: (False, False, False), 3: (True, False, True), 4: (True, False, True)} | {
    5: (True, False, False)
}
"""At the instant of the second of the two readings that the paper numbers by the first."""


def is_hot(sensor: int) -> Plan:
    mean = AggregateCall("avg", Column("value", BIGINT), DOUBLE)
    window = Window(Source(str(sensor), READINGS), TimeWindow(2))
    plan = Aggregate(window, (), (NamedAggregate("mean", mean),))
    return project(plan, hot=call(">", Column("mean", DOUBLE), number(150)))


@pytest.mark.parametrize("time", FOUND)
def test_three_sensors_are_explained_by_two_readings_each(time: int) -> None:
    streams = {
        str(sensor): tuple(Element(t, t, (t, "x", value)) for t, value in enumerate(values, 1))
        for sensor, values in enumerate(SENSORS)
    }
    content, plan = Inputs(streams, {}), cross(cross(is_hot(0), is_hot(1)), is_hot(2))
    expected = {(sensor, t) for sensor in range(3) for t in (time - 1, time)}
    assert content.lineage().rows(plan, time) == [(FOUND[time], frozenset(expected))]
    # All parts of what is there in the window, and one reading of each before it.
    near = {(sensor, t) for sensor in range(3) for t in (time - 2, time - 1, time) if t > 0}
    Asked(plan, only(content, plan, near), time, FOUND[time]).assert_is_explained()
