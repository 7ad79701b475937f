"""What is measured does not depend on how rows are cut, and is as exact as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate, pairwise
from math import exp, inf
from pathlib import Path
from typing import TypeAlias

import polars as pl
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tidemill.engine.ingest import file_id
from tidemill.optimizer.selectivity import seen
from tidemill.runtime.measuring.observed import MEMORY, Observed, values_behind
from tidemill.runtime.measuring.sample import LIMIT, Sample, Sampler
from tidemill.runtime.measuring.sketch import ERROR, Sketch

Harm: TypeAlias = Callable[[list[Sample]], list[Sample]]

SIGMAS = 5


@st.composite
def cuts(draw: st.DrawFn, rows: int) -> list[int]:
    """Places at which rows are cut into batches, the ends among them."""
    inside = draw(st.sets(st.integers(1, max(rows - 1, 1)), max_size=6))
    return sorted({0, rows, *(cut for cut in inside if cut < rows)})


def samples(frame: pl.DataFrame, places: list[int]) -> list[Sample]:
    """What each batch says."""
    found = []
    for first, end in pairwise(places):
        sampler, rows = Sampler(), frame[first:end]
        sampler.take(rows, file_id(0, first), rows["at"], rows["at"][-1])
        found.append(sampler.drain())
    return found


def observed(batches: list[Sample]) -> Observed:
    found = Observed()
    for one in batches:
        found.take(one)
    return found


@st.composite
def regular(draw: st.DrawFn) -> tuple[int, list[Sample]]:
    """The samples of a stream whose rows are so far apart."""
    distance, rows = draw(st.integers(1, 10**9)), draw(st.integers(3, 300))
    first = draw(st.integers(0, 10**12)) * draw(st.sampled_from([1, distance]))
    frame = pl.DataFrame({"at": [first + distance * n for n in range(rows)]})
    return distance, samples(frame, draw(cuts(rows)))


def is_exact(distance: int, batches: list[Sample]) -> bool:
    found = observed(batches)
    return found.distance == pytest.approx(distance, rel=1e-6)


@given(regular())
def test_the_distance_of_a_regular_stream_is_exact(drawn: tuple[int, list[Sample]]) -> None:
    assert is_exact(*drawn)


@st.composite
def rows(draw: st.DrawFn) -> pl.DataFrame:
    """Rows at any times that rise, with values and without."""
    gaps = draw(st.lists(st.integers(0, 5_000) | st.just(MEMORY // 50), min_size=5, max_size=60))
    count = len(gaps)
    first = draw(st.integers(0, 10**6))
    ats = [first + gap for gap in accumulate(gaps)]
    value = st.none() | st.integers(0, 9)
    text = st.none() | st.text("abc", max_size=20)
    return pl.DataFrame(
        {
            "a": draw(st.lists(value, min_size=count, max_size=count)),
            "b": draw(st.lists(text, min_size=count, max_size=count)),
            "at": ats,
        },
        schema={"a": pl.Int64, "b": pl.String, "at": pl.Int64},
    )


@given(rows(), st.data())
def test_batches_make_no_difference_but_for_the_tolerance(
    frame: pl.DataFrame, data: st.DataObject
) -> None:
    places = [data.draw(cuts(frame.height)) for _ in range(2)]
    one, other = (observed(samples(frame, cut)) for cut in places)
    assert (one.rows, one.first, one.latest) == (other.rows, other.first, other.latest)
    assert one.granule == other.granule
    for column in frame.columns:
        assert one.distinct(column) == other.distinct(column)
    longest = max(
        frame["at"][end - 1] - frame["at"][max(first - 1, 0)]
        for cut in places
        for first, end in pairwise(cut)
    )
    # A row counts more or less by no more than what the longest batch has let it fade.
    factor = exp(2 * longest / MEMORY) * (1 + 1e-9)
    _assert_within(one.distance, other.distance, factor)
    for column in frame.columns:
        _assert_within(one.null_share(column), other.null_share(column), factor)
    _assert_within(one.row_bytes, other.row_bytes, factor)


def _assert_within(one: float | None, other: float | None, factor: float) -> None:
    if not one or not other:
        assert one == other
    else:
        assert max(one, other) <= min(one, other) * factor


def test_all_values_that_are_looked_at_are_counted_right() -> None:
    frame = pl.DataFrame({"a": [1, None, 1, 3], "b": ["x", "xyz", "", None], "at": [4, 8, 8, 12]})
    (sample,) = samples(frame, [0, 4])
    assert (sample.rows, sample.least, sample.latest, sample.looked_at) == (4, 4, 12, 4)
    assert sample.granule == 4
    assert sample.nulls == {"a": 1, "b": 1, "at": 0}
    assert {name: round(s.estimate()) for name, s in sample.values.items()} == {
        "a": 2,
        "b": 3,
        "at": 3,
    }


@given(st.integers(1, 60_000), st.integers(0, 2**40), st.data())
@settings(max_examples=30)
def test_a_sketch_is_within_its_error(count: int, first: int, data: st.DataObject) -> None:
    values = pl.Series(range(first, first + count))
    whole = Sketch()
    whole.add(values)
    assert abs(whole.estimate() - count) <= SIGMAS * ERROR * count + 1
    parts = [Sketch() for _ in range(3)]
    for number, part in enumerate(parts):
        part.add(values.gather_every(3, number).shuffle(seed=data.draw(st.integers(0, 9))))
        part.add(values.head(count // 2))
    merged = Sketch.merged(Sketch.read(part.write()) for part in parts)
    assert merged.estimate() == whole.estimate()


@given(st.integers(1, 3_000), st.integers(3, 30_000))
def test_values_are_found_from_those_of_a_part_of_the_rows(values: int, looked_at: int) -> None:
    found = seen(values, looked_at)
    guess = values_behind(found, looked_at, 1e9)
    if found < looked_at * (1 - 2 * ERROR):
        assert guess == pytest.approx(values, rel=0.01)
    else:
        assert guess >= values
    assert values_behind(found, looked_at, looked_at) <= max(looked_at, found)


@given(rows(), st.data())
def test_what_is_written_is_read(frame: pl.DataFrame, data: st.DataObject) -> None:
    places = data.draw(cuts(frame.height))
    found = observed(samples(frame, places))
    again = Observed.read(json.loads(json.dumps(found.write())))
    assert again.write() == found.write()
    more = samples(frame.with_columns(pl.col("at") + 10**9), places)
    for one in more:
        found.take(one)
        again.take(Sample.read(json.loads(json.dumps(one.write()))))
    assert again.write() == found.write()


def test_what_was_long_ago_counts_less() -> None:
    slow, fast = 1_000_000, 1_000
    before = pl.DataFrame({"at": [slow * n for n in range(600)]})
    after = pl.DataFrame({"at": [slow * 600 + fast * n for n in range(300_000)]})
    found = observed([*samples(before, [0, 600]), *samples(after, [0, 150_000, 300_000])])
    share = exp(-0.5)  # five minutes, of a memory of ten
    rate = (share * (1 - exp(-1)) / slow + (1 - share) / fast) / (share * (1 - exp(-1)) + 1 - share)
    assert found.distance == pytest.approx(1 / rate, rel=0.01)


def test_values_are_those_of_the_last_periods() -> None:
    found = Observed()
    for period in range(5):
        at = [period * MEMORY + n for n in range(2_000)]
        frame = pl.DataFrame({"a": [period * 2_000 + n // 2 for n in range(2_000)], "at": at})
        (sample,) = samples(frame, [0, 2_000])
        found.take(sample)
    values = found.distinct("a")
    assert values is not None
    assert 800 < values < 3_000, "not those of all five periods"


def test_a_batch_has_a_sample_of_bounded_size() -> None:
    sampler = Sampler()
    for number in range(40):  # of these files the first rows are in the sample
        frame = pl.DataFrame({"at": range(number * 1_000, number * 1_000 + 500)})
        sampler.take(frame, file_id(16 * number, 0), frame["at"], frame["at"][-1])
    sample = sampler.drain()
    assert sample.rows == 40 * 500
    assert sample.looked_at == LIMIT


def resident() -> int:
    """How many bytes of memory this process has."""
    found = re.search(r"VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found
    return int(found[1]) << 10


def test_rows_that_wait_do_not_keep_the_texts_of_their_batch() -> None:
    """Of each batch a few rows wait; all batches have 400 MB of texts."""
    sampler, before = Sampler(), resident()
    for number in range(20):
        texts = pl.Series("name", ["x" * 1_000]).new_from_index(0, 20_000) + str(number)
        frame = texts.to_frame().with_columns(at=pl.int_range(pl.len()))
        sampler.take(frame, file_id(16 * number, 0), frame["at"], 20_000)
        del texts, frame
    assert resident() - before < 150 << 20
    assert sampler.drain().looked_at > 0


@pytest.mark.parametrize("broken", [{}, {"rows": -1}, {"elapsed": inf}, {"recent": []}, {"x": 1}])
def test_what_is_no_observation_is_refused(broken: dict[str, object]) -> None:
    written = {**Observed().write(), **broken} if broken else {}
    if broken == {"x": 1}:
        assert Observed.read(written) == Observed(recent=Observed.read(written).recent)
        return
    with pytest.raises(ValueError, match=r"observed|range"):
        Observed.read(written)


def all_rows_have_a_gap(batches: list[Sample]) -> list[Sample]:
    first, *others = batches
    more = Sample(first.rows + 1, first.least, first.latest)
    return [more, *others]


def batches_begin_with_their_first_row(batches: list[Sample]) -> list[Sample]:
    """Leaves out the time between two batches."""
    shift, out = 0, list[Sample]()
    for before, one in zip([None, *batches], batches, strict=False):
        assert one.least is not None
        assert one.latest is not None
        shift += 0 if before is None else one.least - (before.latest or 0)
        out.append(Sample(one.rows, one.least - shift, one.latest - shift))
    return out


def a_batch_is_lost(batches: list[Sample]) -> list[Sample]:
    return [*batches[:1], *batches[2:]]


@pytest.mark.parametrize(
    "harm", [all_rows_have_a_gap, batches_begin_with_their_first_row, a_batch_is_lost]
)
def test_the_law_finds_what_is_wrong(harm: Harm) -> None:
    find(
        regular(),
        lambda drawn: not is_exact(drawn[0], harm(drawn[1])),
        settings=settings(max_examples=400, deadline=None, phases=[Phase.generate]),
    )


def test_a_column_that_rows_do_not_have_is_measured_in_the_others() -> None:
    sampler, found = Sampler(("a", "b")), Observed()
    both = pl.DataFrame({"a": [1, 2], "b": [None, "x"]}, schema={"a": pl.Int64, "b": pl.String})
    starts = pl.Series([0, 10])
    sampler.take(both, 0, starts, 10)
    sampler.take(both.select("a"), 2, starts + 20, 30)
    found.take(sampler.drain())
    assert (found.null_share("a"), found.null_share("b")) == (0.0, 0.5)
    assert (found.looked_at, found.row_bytes) == (4, 24.5)
    again = Observed.read(found.write())
    assert (again.null_share("b"), again.distinct("b")) == (0.5, found.distinct("b"))
