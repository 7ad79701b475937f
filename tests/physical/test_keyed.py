"""Keyed tables behave like the bag of their rows, whatever their hashes."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physical.run import normal
from stores import refill, save
from tidemill.algebra.values import NAN
from tidemill.model.batch import END, START
from tidemill.model.time import Time
from tidemill.physical.operator import State
from tidemill.physical.state import keyed
from tidemill.physical.state.hashes import key_hash
from tidemill.physical.state.keyed import KeyedTable
from tidemill.physical.state.levels import merge_from
from tidemill.physical.state.removals import SEGMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Row: TypeAlias = tuple[float | None, str | None, int, int]
Hash: TypeAlias = "Callable[[pl.DataFrame], pl.Series]"

SCHEMA: dict[str, pl.DataType] = {
    "*": pl.Float64(),
    "^b$": pl.String(),
    START: pl.Int64(),
    END: pl.Int64(),
}
NAMES = list(SCHEMA)


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def table(index: Sequence[str] = ("*",), within: Sequence[str] = ()) -> KeyedTable:
    return KeyedTable(SCHEMA, (START, END), index=index, within=within)


def reloaded(
    rows: KeyedTable, index: Sequence[str] = ("*",), within: Sequence[str] = ()
) -> KeyedTable:
    fresh = table(index, within)
    refill(State({"t": fresh}), save(State({"t": rows})))
    return fresh


def names(rows: KeyedTable) -> list[int]:
    return [segment.name for segment in rows.segments()]


def collide(keys: pl.DataFrame) -> pl.Series:
    return pl.repeat(7, keys.height, dtype=pl.UInt64, eager=True)


def collide_often(keys: pl.DataFrame) -> pl.Series:
    return keys.to_struct("").hash(seed=1) % 3


def all_of(index: Sequence[str], *keys: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(keys, schema={name: SCHEMA[name] for name in index}, orient="row")


def test_take_removes_the_rows_of_the_keys_and_no_other() -> None:
    rows = table()
    rows.insert(frame([(1, "x", 0, 9), (2, "y", 1, 9), (1, "z", 2, 9)]))
    assert sorted(rows.take(all_of(["*"], (1,), (3,)))["^b$"].to_list()) == ["x", "z"]
    assert rows.all().rows() == [(2, "y", 1, 9)]


def test_find_leaves_the_rows_where_they_are() -> None:
    rows = table()
    rows.insert(frame([(1, "x", 0, 9), (2, "y", 1, 9)]))
    before = names(rows)
    assert rows.find(all_of(["*"], (2,))).rows() == [(2, "y", 1, 9)]
    assert (rows.rows(), names(rows)) == (2, before)


def test_more_columns_than_the_key_tell_its_rows_apart() -> None:
    rows = table()
    rows.insert(frame([(1, "x", 0, 9), (1, "y", 1, 9), (2, "y", 2, 9)]))
    assert rows.take(all_of(["*", "^b$"], (1, "y"))).rows() == [(1, "y", 1, 9)]
    assert rows.rows() == 2


@pytest.mark.parametrize("index", [["*"], []])
def test_rows_are_found_within_a_key(index: list[str]) -> None:
    rows = table(index, ["^b$"])
    rows.insert(frame([(1, "x", 0, 9), (1, "y", 1, 9), (2, "y", 2, 9)]))
    assert rows.find(all_of(["*"], (1,))).height == 2
    assert rows.take(all_of(["*", "^b$"], (1, "y"))).rows() == [(1, "y", 1, 9)]
    assert sorted(rows.find(all_of(["*"], (1,), (2,)))["^b$"].to_list()) == ["x", "y"]


def test_a_table_that_finds_within_a_key_takes_over_one_that_did_not() -> None:
    rows = table()
    rows.insert(frame([(1, "x", 0, 9), (1, "y", 1, 9)]))
    fresh = table(["*"], ["^b$"])
    refill(State({"t": fresh}), save(State({"t": rows})))
    assert fresh.take(all_of(["*", "^b$"], (1, "y"))).rows() == [(1, "y", 1, 9)]


def test_without_a_key_all_rows_have_the_same() -> None:
    rows = table(())
    rows.insert(frame([(1, "x", 0, 9), (2, "y", 1, 9)]))
    assert rows.find(pl.DataFrame()).height == 2
    assert rows.take(all_of(["^b$"], ("y",))).height == 1
    assert rows.take(pl.DataFrame()).height == 1
    assert rows.rows() == 0


def test_keys_are_equal_as_polars_groups_them() -> None:
    rows = table()
    rows.insert(frame([(0.0, "a", 0, 9), (NAN, "b", 0, 9), (None, "c", 0, 9)]))
    negative = math.copysign(NAN, -1)
    assert rows.take(all_of(["*"], (-0.0,)))["^b$"].to_list() == ["a"]
    assert rows.take(all_of(["*"], (negative,)))["^b$"].to_list() == ["b"]
    assert rows.take(all_of(["*"], (None,)))["^b$"].to_list() == ["c"]


# The log


def test_what_did_not_change_keeps_its_name() -> None:
    rows = table()
    rows.insert(frame([(i, "x", i, i + 1) for i in range(100)]))
    rows.take(all_of(["*"], (5,)))
    first = names(rows)
    assert len(first) == 2, "the rows, and which of them is gone"
    again = reloaded(rows)
    assert names(again) == first
    again.insert(frame([(5, "y", 5, 6)]))
    assert names(again)[:1] == first[:1]
    assert len(set(names(again)) - set(first)) == 1, "only what is new is written"


def test_a_segment_is_written_anew_when_more_than_half_of_it_is_gone() -> None:
    rows = table()
    rows.insert(frame([(i, "x", i, i + 1) for i in range(100)]))
    rows.take(all_of(["*"], *((i,) for i in range(50))))
    assert rows.segments()[0].frame.height == 100
    rows.take(all_of(["*"], (50,)))
    assert [segment.frame.height for segment in rows.segments()] == [49]


def test_an_empty_table_has_no_segments() -> None:
    rows = table()
    rows.insert(frame([(i, "x", i, i + 1) for i in range(9)]))
    rows.take(all_of(["*"], *((i,) for i in range(3))))
    rows.take(all_of(["*"], *((i,) for i in range(9))))
    assert (rows.segments(), rows.least(START), rows.bytes()) == ((), None, 0)


@given(st.lists(st.integers(1, 1000), min_size=1))
def test_levels(inserted: list[int]) -> None:
    sizes: list[int] = []
    written = 0
    for size in inserted:
        first = merge_from([*sizes, size])
        sizes[first:] = [sum(sizes[first:]) + size]
        written += sizes[-1]
        assert all(one > sum(sizes[i + 1 :]) for i, one in enumerate(sizes))
    assert written <= sum(inserted) * (sum(inserted).bit_length() + 1)


def _made(rows: KeyedTable, known: set[int]) -> int:
    """How many rows stand in segments that are not known, which then are."""
    new = [segment for segment in rows.segments() if segment.name not in known]
    known.update(segment.name for segment in new)
    return sum(segment.frame.height for segment in new)


@pytest.mark.parametrize("size", [1_000, 64_000])
def test_small_steps_write_little_whatever_the_size_of_the_table(size: int) -> None:
    rows, known = table(), set[int]()
    rows.insert(frame([(i, "x", i, i + 1) for i in range(size)]))
    _made(rows, known)
    steps, width, written = 300, 10, 0
    for step in range(steps):
        keys = [((step * width + i) * 7919 % size,) for i in range(width)]
        taken = rows.take(all_of(["*"], *keys))
        assert taken.height == width
        rows.insert(taken)
        assert len(rows.segments()) <= 2 * size.bit_length()
        written += _made(rows, known)
    assert rows.rows() == size
    assert written <= 2 * steps * width * size.bit_length()


# The hash


@pytest.mark.parametrize("other", ["version", "hash"])
def test_rows_hashed_otherwise_are_hashed_anew(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table()
    rows.insert(frame([(i, "x", i, i + 1) for i in range(50)]))
    rows.take(all_of(["*"], (3,)))
    saved = save(State({"t": rows}))
    if other == "version":
        monkeypatch.setattr(pl, "__version__", "0.0.0")
    else:
        monkeypatch.setattr(keyed, "key_hash", collide_often)
    fresh = table()
    refill(State({"t": fresh}), saved)
    assert set(names(fresh)).isdisjoint(names(rows)), "other rows have other names"
    assert fresh.rows() == 49
    assert fresh.take(all_of(["*"], *((i,) for i in range(10)))).height == 9
    assert names(reloaded(fresh)) == names(fresh)


# The law

values = st.sampled_from([None, 0.0, -0.0, 1.5, NAN])
letters = st.sampled_from([None, "", "y", "ÿ"])
elements = st.tuples(values, letters, st.integers(0, 9), st.integers(10, 19))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(elements, max_size=12)),
        st.tuples(st.just("take"), st.lists(elements, max_size=6)),
        st.tuples(st.just("find"), st.lists(elements, max_size=4)),
        st.tuples(st.just("extract"), st.sampled_from([START, END]), st.integers(0, 20)),
        st.tuples(st.just("purge"), st.just(END), st.integers(10, 20)),
        st.tuples(st.just("reload")),
    ),
    max_size=16,
)


@pytest.fixture(params=[key_hash, collide, collide_often], ids=lambda f: f.__name__)
def hashing(request: pytest.FixtureRequest) -> Iterator[Hash]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed, "key_hash", request.param)
        yield request.param


def _bag(found: pl.DataFrame) -> Counter[tuple[object, ...]]:
    assert dict(found.schema) == SCHEMA
    return Counter(map(normal, found.iter_rows()))


def _agreeing(
    model: Counter[tuple[object, ...]], keys: list[Row], width: int
) -> Counter[tuple[object, ...]]:
    wanted = {normal(key)[:width] for key in keys}
    return Counter({row: n for row, n in model.items() if row[:width] in wanted or not width})


@pytest.mark.usefixtures("hashing")
@given(steps=actions, index=st.integers(0, 2), inner=st.integers(0, 2), more=st.integers(0, 1))
def test_a_keyed_table_is_the_bag_of_its_rows(
    steps: list[tuple[object, ...]], index: int, inner: int, more: int
) -> None:
    key, within, width = NAMES[:index], NAMES[index : index + inner], index + more
    rows, model = table(key, within), Counter[tuple[object, ...]]()
    for step in steps:
        match step:
            case ("insert", list(new)):
                rows.insert(frame(new))
                model.update(map(normal, new))
            case ("take" | "find" as verb, list(keys)):
                wanted = frame(keys).get_columns()[:width]
                action = rows.take if verb == "take" else rows.find
                due = _agreeing(model, keys, width)
                assert _bag(action(pl.DataFrame(wanted))) == due
                model -= due if verb == "take" else Counter()
            case ("extract" | "purge" as verb, str(column), int(time)):
                last = time - 1 if verb == "extract" else time
                due = Counter({r: n for r, n in model.items() if _time(r, column) <= last})
                if verb == "extract":
                    assert _bag(rows.extract(column, Time(time))) == due
                else:
                    rows.purge(column, Time(time))
                model -= due
            case _:
                before = names(rows)
                rows = reloaded(rows, key, within)
                assert names(rows) == before
        _assert_is(rows, model)


def _time(row: tuple[object, ...], column: str) -> int:
    time = row[NAMES.index(column)]
    assert isinstance(time, int)
    return time


def _assert_is(rows: KeyedTable, model: Counter[tuple[object, ...]]) -> None:
    assert _bag(rows.all()) == model
    ends = Counter(_time(row, END) for row in model.elements())
    assert Counter(end for part in rows.values(END) for end in part) == ends
    assert rows.rows() == model.total()
    for column in (START, END):
        least = min((_time(row, column) for row in model), default=None)
        assert rows.least(column) == least
    texts = sum(len(str(row[1]).encode()) * n for row, n in model.items() if row[1] is not None)
    assert rows.bytes() == model.total() * (8 + 16 + 8 + 8 + 8) + texts
    listed = [s.frame.height for s in rows.segments() if SEGMENT in s.frame.columns]
    held = [s.frame.height for s in rows.segments() if SEGMENT not in s.frame.columns]
    assert sum(held) <= 2 * model.total()
    assert sum(listed) <= 2 * (sum(held) - model.total()) + 64
