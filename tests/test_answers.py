"""An answer's forms are functions of its snapshots, however its elements are cut."""

from __future__ import annotations

import itertools
from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.batch import END, SIGN, START, TIME, empty_batch
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT, DOUBLE
from tidemill.runtime.answers import Answer

SCHEMA = Schema((Field("k", BIGINT), Field("x", DOUBLE)))
TIMES = [0, 1, 2, 3, 5, 8, END_OF_TIME]

Timed = tuple[int | None, float | None, int, int]


@st.composite
def elements(draw: st.DrawFn) -> list[Timed]:
    keys, values = st.sampled_from([None, 1, 2]), st.sampled_from([None, 0.5, float("nan")])
    period = st.lists(st.sampled_from(TIMES), min_size=2, max_size=2, unique=True).map(sorted)
    drawn = draw(st.lists(st.tuples(keys, values, period), max_size=8))
    return [(k, x, start, end) for k, x, (start, end) in drawn]


def answer(rows: list[Timed]) -> Answer:
    found = Answer(SCHEMA)
    found.add([pl.DataFrame(rows, schema=empty_batch(SCHEMA).schema, orient="row")])
    return found


def bag(frame: pl.DataFrame) -> Counter[str]:
    return Counter(map(str, frame.rows()))


@given(rows=elements(), data=st.data())
def test_how_elements_are_cut_does_not_show(rows: list[Timed], data: st.DataObject) -> None:
    cut: list[Timed] = []
    for k, x, start, end in rows:
        inner = [t for t in TIMES if start < t < end]
        chosen = [start, *(t for t in inner if data.draw(st.booleans())), end]
        cut += [(k, x, a, b) for a, b in itertools.pairwise(chosen)]
    one, other = answer(rows), answer(data.draw(st.permutations(cut)))
    assert str(one.results().rows()) == str(other.results().rows())
    assert str(one.changes().rows()) == str(other.changes().rows())


@given(rows=elements())
def test_all_forms_have_the_same_snapshots(rows: list[Timed]) -> None:
    found = answer(rows)
    results, changes = found.results(), found.changes()
    for time in range(10):
        expected = bag(found.snapshot(time))
        valid = (pl.col("start") <= time) & (pl.col("end") > time)
        assert bag(results.filter(valid).select("k", "x")) == expected
        signed: Counter[str] = Counter()
        for *row, _, sign in changes.filter(pl.col("time") <= time).rows():
            signed[str(tuple(row))] += sign
        assert +signed == expected


def test_what_goes_on_is_one_element() -> None:
    rows: list[Timed] = [(1, 0.5, 0, 3), (1, 0.5, 3, END_OF_TIME), (1, 0.5, 2, 5)]
    assert answer(rows).results().rows() == [(1, 0.5, 0, 5), (1, 0.5, 2, END_OF_TIME)]
    assert START in answer(rows).elements().columns
    assert END in answer(rows).elements().columns


@given(rows=elements())
def test_the_signed_form_gives_the_same_answer(rows: list[Timed]) -> None:
    whole, signed = answer(rows), Answer(SCHEMA)
    changes = whole.changes().rename({"time": TIME, "sign": SIGN})
    signed.add([changes.cast({SIGN: pl.Int64})])
    assert str(signed.changes().rows()) == str(whole.changes().rows())
    for time in range(10):
        assert bag(signed.snapshot(time)) == bag(whole.snapshot(time))
    ended = whole.results().filter(pl.col("end") < END_OF_TIME)
    assert bag(signed.results()) == bag(ended), "what has no end yet is no result"
    signed.known = END_OF_TIME
    assert str(signed.results().rows()) == str(whole.results().rows())


@given(rows=elements(), since=st.sampled_from(TIMES))
def test_what_appeared_before_the_session_is_no_result(rows: list[Timed], since: int) -> None:
    """First in first out: of equal rows, the one that appeared first is withdrawn first."""
    whole, later = answer(rows), Answer(SCHEMA)
    changes = whole.changes().filter(pl.col("time") >= since)
    later.add([changes.rename({"time": TIME, "sign": SIGN}).cast({SIGN: pl.Int64})])
    later.known = END_OF_TIME
    assert str(later.changes().rows()) == str(changes.rows())
    assert bag(later.results()) == bag(whole.results().filter(pl.col("start") >= since))
