"""State tables behave like the bag of their rows, whatever their layout."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physical.searching import collide, collide_in_half, search_all
from stores import StateStore, refill, save
from tidemill.model.batch import END, START
from tidemill.model.time import Time
from tidemill.physical.operator import State
from tidemill.physical.state.at_rest import Remembered, Saved
from tidemill.physical.state.hashes import row_hash
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

Hash: TypeAlias = "Callable[[pl.DataFrame], pl.Series]"

SCHEMA: dict[str, pl.DataType] = {"x": pl.Int64(), START: pl.Int64(), END: pl.Int64()}
LAYOUTS = [False, True]


def frame(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def table(*, by_expiry: bool = False) -> Table:
    return Table(SCHEMA, (START, END), key=("x",), by_expiry=by_expiry)


@pytest.mark.parametrize("by_expiry", LAYOUTS)
def test_insert_extract_and_purge(*, by_expiry: bool) -> None:
    rows = table(by_expiry=by_expiry)
    rows.insert(frame([(1, 0, 10), (2, 5, 12), (3, 7, 8)]))
    assert rows.extract(START, Time(5)).rows() == [(1, 0, 10)]
    rows.purge(END, Time(8))
    assert (rows.rows(), rows.all().rows()) == (1, [(2, 5, 12)])


def test_whole_segments_are_dropped_without_being_read() -> None:
    rows = table()
    rows.insert(frame([(1, 0, 10)]))
    rows.insert(frame([(2, 0, 20)]))
    rows.purge(END, Time(10))
    assert [segment.name for segment in rows.segments()] == [1]


def test_a_layout_by_expiry_keeps_rows_that_expire_together_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemill.physical.state.table._SMALL_ROWS", 2)
    rows = table(by_expiry=True)
    rows.insert(frame([(1, 0, 4), (2, 0, 13), (3, 1, 3), (4, 1, 11)]))
    assert [segment.frame["x"].to_list() for segment in rows.segments()] == [[3, 1], [4, 2]]
    rows.purge(END, Time(4))
    assert [segment.frame["x"].to_list() for segment in rows.segments()] == [[4, 2]]


def test_segments_that_end_too_early_are_skipped() -> None:
    rows = table()
    rows.insert(frame([(1, 0, 10)]))
    rows.insert(frame([(2, 0, 20), (3, 0, 5)]))
    whole = pl.DataFrame()
    found = rows.meeting(END, after=Time(10), by=[], keys=whole)
    assert found.rows() == [(2, 0, 20), (3, 0, 5)]
    assert rows.meeting(END, after=Time(9), by=[], keys=whole).height == 3


def test_few_keys_are_searched_for_in_large_segments_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search_all(monkeypatch, small=3)
    monkeypatch.setattr("tidemill.physical.state.segment._MANY_MORE", 8)
    rows = Table(SCHEMA, (START, END), key=("x",))
    rows.insert(frame([(n % 40, 0, 10 + n) for n in range(100)]))
    rows.insert(frame([(1, 0, 500), (2, 0, 500)]))
    wanted = pl.DataFrame({"another": [7, 7, 300]})
    found = rows.meeting(END, after=Time(0), by=["x"], keys=wanted)
    assert found.sort(END).rows() == [
        *((7, 0, 10 + n) for n in (7, 47, 87)),
        *((x, 0, 500) for x in (1, 2)),
    ]
    assert rows.meeting(END, after=Time(200), by=["x"], keys=wanted).height == 2
    assert rows.meeting(END, after=Time(0), by=["x"], keys=frame([])[["x"]]).height == 2
    assert rows.meeting(END, after=Time(0), by=[END], keys=wanted + 33).height == 3
    assert rows.meeting(END, after=Time(0), by=[], keys=pl.DataFrame()).height == 102


def test_what_finds_rows_goes_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    search_all(monkeypatch, small=3)
    rows = Table(SCHEMA, (START, END), key=("x",))
    one = pl.DataFrame({"x": [7]})
    for number in range(5):
        rows.insert(frame([(n, number, number + 1) for n in range(100)]))
        before = rows.bytes()
        found = rows.meeting(END, after=Time(number), by=["x"], keys=one)
        assert found.rows() == [(7, number, number + 1)]
        assert rows.bytes() - before == 100 * 8, "half of a hash and a number for each row"
        rows.purge(END, Time(number + 1))
    assert rows.bytes() == 0


def test_many_small_segments_become_few() -> None:
    rows = table()
    for number in range(100):
        rows.insert(frame([(number, number, number + 1)]))
    assert len(rows.segments()) < 20
    assert rows.rows() == 100


@pytest.mark.parametrize(("small", "many"), [(1, 16), (5, 3), (20, 4)])
@given(
    sizes=st.lists(st.integers(1, 9), min_size=20, max_size=60),
    length=st.integers(1, 40),
    wanted=st.lists(st.integers(0, 7), max_size=2, unique=True),
)
def test_a_long_window_has_few_segments_and_none_for_long(
    sizes: list[int], length: int, wanted: list[int], small: int, many: int
) -> None:
    """Rows come and go in order; at each step a key is looked for."""
    with pytest.MonkeyPatch.context() as patch:
        search_all(patch, small=small)
        patch.setattr("tidemill.physical.state.table._MANY_SMALL", many)
        rows, held = table(), list[tuple[int, int, int]]()
        for time, size in enumerate(sizes):
            rows.purge(END, Time(time))
            held = [row for row in held if row[2] > time]
            keys = pl.DataFrame({"x": wanted}, schema={"x": pl.Int64})
            found = Counter(rows.meeting(END, after=Time(time), by=["x"], keys=keys).rows())
            assert found <= Counter(held)
            assert found >= Counter(row for row in held if row[0] in wanted)
            new = [((time + n) % 8, time, time + length) for n in range(size)]
            rows.insert(frame(new))
            held += new
            assert Counter(rows.all().rows()) == Counter(held)
            assert sum(s.frame.height for s in rows.segments()) <= 2 * len(held)
        assert len(rows.segments()) <= 24


def test_small_and_large_segments_are_merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been merged may be small still: it was lost."""
    monkeypatch.setattr("tidemill.physical.state.table._SMALL_ROWS", 20)
    rows = table()
    rows.insert(frame([(n, 0, 100) for n in range(1000)]))
    rows.insert(frame([(n, 0, 5 if n < 60 else 100) for n in range(80)]))
    for _ in range(3):
        rows.insert(frame([(n, 0, 100) for n in range(20)]))
    for number in range(15):
        rows.insert(frame([(number, 0, 100)]))
    # What is left of the second is of the size of the three: four of them are merged.
    rows.purge(END, Time(5))
    rows.insert(frame([(15, 0, 100)]))
    assert [segment.frame.height for segment in rows.segments()] == [1000, 80, 16]


@pytest.mark.parametrize(("small", "many", "few"), [(4, 2, 2), (8, 2, 2), (8, 2, 3), (8, 3, 4)])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from([0, 12, 30]), st.sampled_from([0, 1, 2, 4, 8, 24]), st.booleans()
        ),
        min_size=10,
        max_size=40,
    )
)
def test_no_row_is_lost_where_segments_shrink(
    steps: list[tuple[int, int, bool]], small: int, many: int, few: int
) -> None:
    """Of the rows of a step some end with the next purge, some stay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemill.physical.state.table._SMALL_ROWS", small)
        patch.setattr("tidemill.physical.state.table._MANY_SMALL", many)
        patch.setattr("tidemill.physical.state.levels._TIER_SEGMENTS", few)
        rows, held = table(), list[tuple[int, int, int]]()
        for time, (soon, late, is_purged) in enumerate(steps):
            new = [(n, time, time + 1 if n < soon else 1000) for n in range(soon + late)]
            rows.insert(frame(new))
            held += new
            if is_purged:
                rows.purge(END, Time(time + 1))
                held = [row for row in held if row[2] > time + 1]
            assert Counter(rows.all().rows()) == Counter(held)
            assert rows.rows() == len(held)


def test_a_large_segment_is_not_written_anew_for_every_row_that_leaves() -> None:
    rows = table()
    rows.insert(frame([(n, n, n + 1) for n in range(100)]))
    for time in range(1, 51):
        assert rows.extract(START, Time(time))["x"].to_list() == [time - 1]
    assert [(s.name, s.frame.height) for s in rows.segments()] == [(0, 100)]
    assert (rows.rows(), rows.least(START)) == (50, 50)
    rows.extract(START, Time(51))
    assert [(s.name, s.frame.height) for s in rows.segments()] == [(1, 49)]


def test_a_segment_is_written_once() -> None:
    rows, store, saved = table(), StateStore(), Saved()
    states = {"operator": Remembered(State({"t": rows}), Time(0))}
    rows.insert(frame([(1, 0, 10)]))
    saved.save(states, store, "t0")
    first = store.segments["t0"]
    rows.insert(frame([(2, 0, 10)]))
    saved.save(states, store, "t1")
    assert store.segments.keys() == {"t0", "t1"}
    assert store.segments["t0"] == first
    saved.save(states, store, "t2")
    assert store.segments.keys() == {"t0", "t1"}


actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("insert"),
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(10, 19))),
        ),
        st.tuples(st.just("extract"), st.sampled_from([START, END]), st.integers(0, 20)),
        st.tuples(st.just("purge"), st.just(END), st.integers(0, 20)),
        st.tuples(
            st.just("meeting"),
            st.integers(0, 20),
            st.sampled_from([["x"], [START], ["x", START], [START, "x"], []]),
            st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=3),
        ),
        st.tuples(st.just("reload")),
    ),
    max_size=12,
)


@pytest.mark.parametrize("hashing", [row_hash, collide, collide_in_half])
@pytest.mark.parametrize("small", [1, 3, 4096])
@given(steps=actions, by_expiry=st.booleans(), patience=st.integers(0, 2))
def test_a_table_is_the_bag_of_its_rows(
    steps: list[tuple[object, ...]], small: int, hashing: Hash, patience: int, *, by_expiry: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        search_all(patch, small=small, patience=patience)
        patch.setattr("tidemill.physical.state.table.row_hash", hashing)
        patch.setattr("tidemill.physical.state.segment.row_hash", hashing)
        _is_the_bag_of_its_rows(steps, by_expiry=by_expiry)


def _is_the_bag_of_its_rows(steps: list[tuple[object, ...]], *, by_expiry: bool) -> None:
    rows, model = table(by_expiry=by_expiry), Counter[tuple[int, ...]]()
    floor = -1
    for step in steps:
        match step:
            case ("insert", list(new)):
                # What is inserted is never over already.
                alive = [row for row in new if row[2] > floor]
                rows.insert(frame(alive))
                model.update(alive)
            case ("extract", str(column), int(before)):
                place = list(SCHEMA).index(column)
                due = Counter({row: n for row, n in model.items() if row[place] < before})
                assert Counter(rows.extract(column, Time(before)).rows()) == due
                model -= due
            case ("purge", str(column), int(time)):
                floor = max(floor, time)
                rows.purge(column, Time(time))
                model = Counter({row: n for row, n in model.items() if row[2] > time})
            case ("meeting", int(after), list(by), list(keys)):
                places = [list(SCHEMA).index(name) for name in by]
                given = frame([(x, start, 0) for x, start in keys])[by] if by else pl.DataFrame()
                found = Counter(rows.meeting(END, after=Time(after), by=by, keys=given).rows())
                assert found <= model
                asked = set(given.rows())
                wanted = {
                    row: n
                    for row, n in model.items()
                    if row[2] > after and (not by or tuple(row[i] for i in places) in asked)
                }
                assert Counter(wanted) <= found
            case _:
                fresh = table(by_expiry=by_expiry)
                state = State({"t": fresh})
                refill(state, save(State({"t": rows})))
                rows = fresh
        assert Counter(rows.all().rows()) == model
        ends = Counter(row[2] for row in model.elements())
        assert Counter(end for part in rows.values(END) for end in part) == ends
        assert rows.rows() == model.total()
        assert rows.least(START) == min((row[1] for row in model), default=None)
