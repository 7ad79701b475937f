"""From ``clear(plan, t)`` on, what was before t does not matter; an instant earlier, it may."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from laws.catalogue import LAST, Inputs, S, inputs
from laws.derived_streams import dense_inputs
from laws.strategies import plans, time_windows
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import AggregateCall
from tidemill.algebra.plan import (
    Aggregate,
    Dstream,
    Istream,
    NamedAggregate,
    Plan,
    Relation,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.reach import (
    begun_at,
    clear,
    first_needed,
    forgets,
    is_silent,
    needs,
    newest,
    reach,
)
from tidemill.algebra.snapshot import Element, Reference
from tidemill.model.time import Time
from tidemill.model.types import BIGINT

COUNT = (NamedAggregate("n", AggregateCall("count", None, BIGINT)),)


@given(plan=plans(), content=inputs() | dense_inputs(), time=st.integers(1, LAST))
def test_from_there_on_the_past_does_not_matter(plan: Plan, content: Inputs, time: int) -> None:
    first = clear(plan, Time(time))
    assume(first is not None)
    assert first is not None, "assumed"
    reference, begun = content.reference(), begun_at(plan, Time(time))
    for instant in range(first, first + 8):
        whole, late = reference.snapshot(plan, instant), reference.snapshot(begun, instant)
        assert whole == late, f"at {instant}:\n{explain(plan)}"


@given(plan=plans(), content=inputs() | dense_inputs(), time=st.integers(0, LAST))
def test_what_is_not_needed_does_not_matter(plan: Plan, content: Inputs, time: int) -> None:
    first = needs(plan, Time(time))
    streams = {
        name: tuple(one for one in elements if one.time >= first.get(name, 0))
        for name, elements in content.streams.items()
    }
    late = Inputs(streams, content.relations).reference()
    reference = content.reference()
    for instant in range(time, time + 8):
        whole, without = reference.snapshot(plan, instant), late.snapshot(plan, instant)
        assert whole == without, f"at {instant}:\n{explain(plan)}"


@given(plan=plans(), time=st.integers(0, 40))
def test_all_that_is_needed_is_needed_by_some_stream(plan: Plan, time: int) -> None:
    """The first instant that is needed is the latest from which on a plan is clear in time."""
    first = first_needed(plan, Time(time))
    full = clear(plan, first)
    assert not first or (full is not None and full <= time)
    later = clear(plan, Time(first + 1))
    assert first >= time or later is None or later > time


@given(plan=plans(), content=inputs() | dense_inputs(), time=st.integers(0, LAST))
def test_what_is_newer_does_not_matter(plan: Plan, content: Inputs, time: int) -> None:
    last = newest(plan, Time(time))
    assert last <= time
    seen = content.until(last).reference().snapshot(plan, time)
    assert seen == content.reference().snapshot(plan, time), explain(plan)


@given(plan=plans(), content=inputs())
def test_what_is_silent_gives_nothing_while_nothing_comes(plan: Plan, content: Inputs) -> None:
    nothing = Inputs(dict.fromkeys(content.streams, ()), content.relations).reference()
    if is_silent(plan):
        assert not any(nothing.snapshot(plan, time) for time in range(LAST + 20)), explain(plan)


@given(plan=plans(), time=st.integers(1, 40))
def test_reach_is_the_longest_way(plan: Plan, time: int) -> None:
    first, longest = clear(plan, Time(time)), reach(plan)
    assert (first is None) == (longest is None)
    if first is not None and longest is not None:
        assert first <= time + longest
        assert longest in {c - t for t in range(60) if (c := clear(plan, Time(t))) is not None}


@st.composite
def _counting_plans(draw: st.DrawFn) -> Plan:
    """Plans that give another answer for every other input: what comes is only counted."""
    plan: Plan = S
    for _ in range(draw(st.integers(1, 3))):
        plan = Window(plan, draw(time_windows()))
        match draw(st.integers(0, 4)):
            case 0:
                plan = Istream(plan)
            case 1:
                plan = Dstream(plan)
            case 2:
                plan = Union(plan, S)
            case _:
                pass
    return plan


@given(plan=_counting_plans(), time=st.integers(1, 12))
def test_no_earlier_instant_will_do(plan: Plan, time: int) -> None:
    """Some input tells the whole stream from what began at the instant, just before ``clear``."""
    first = clear(plan, Time(time))
    assert first is not None, "these forget"
    found = set()
    for elements in _inputs_before(time):
        reference, begun = Reference({"S": elements}), begun_at(plan, Time(time))
        found |= {
            instant
            for instant in range(first)
            if reference.snapshot(plan, instant) != reference.snapshot(begun, instant)
        }
    # Windows that move by more than their size have instants that are in none of them.
    assert not found or max(found) < first
    if all(w.slide <= w.size for w in _windows(plan)) and not _has_changes(plan):
        assert max(found) == first - 1


def _inputs_before(time: int) -> list[list[Element]]:
    return [[Element(time - 1, 0, (1, "x"))], [Element(t, t, (1, "x")) for t in range(time)]]


def _windows(plan: Plan) -> list[TimeWindow]:
    match plan:
        case Window(input_, TimeWindow() as spec):
            return [spec, *_windows(input_)]
        case Istream() | Dstream():
            return _windows(plan.input)
        case Union(left):
            return _windows(left)
        case _:
            return []


def _has_changes(plan: Plan) -> bool:
    match plan:
        case Istream() | Dstream():
            return True
        case Window(input_):
            return _has_changes(input_)
        case Union(left):
            return _has_changes(left)
        case _:
            return False


def test_windows_add_up() -> None:
    counted = Aggregate(Window(S, TimeWindow(10)), (), COUNT)
    assert clear(counted, Time(100)) == 109
    assert clear(Window(Istream(counted), TimeWindow(5)), Time(100)) == 114
    assert clear(Window(S, TimeWindow(60, 10)), Time(100)) == 159
    assert clear(Window(S, TimeWindow(60, 10)), Time(101)) == 169
    assert reach(Window(S, TimeWindow(60, 10))) == 68


def test_what_is_counted_by_rows_or_pauses_is_not_forgotten_by_time() -> None:
    for spec in (RowWindow(3), SessionWindow(2), Unbounded()):
        assert not forgets(Window(S, spec))
        assert reach(Window(S, spec)) is None


def test_a_relation_is_always_there() -> None:
    relation = Relation("R", S.schema)
    assert clear(relation, Time(100)) == 0
    assert clear(Union(relation, Window(S, TimeWindow(4))), Time(100)) == 103
    assert reach(relation) == 0
