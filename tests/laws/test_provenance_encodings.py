"""Sets of row ids are stored without loss, and ADAPTIVE takes no more than the best of others."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from tidemill.engine.ingest import file_id
from tidemill.provenance.encode import (
    BACK,
    HIGH,
    LOW,
    PACKED,
    RUNS,
    Encoded,
    Encoding,
    covering,
    decode,
    encode,
    size,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 1 << 62
Sets = list[list[int]]


def column(sets: Sets) -> pl.Series:
    return pl.Series("ids", sets, pl.List(pl.Int64))


@st.composite
def sliding(draw: st.DrawFn) -> Sets:
    """Windows that slide over some rows of files."""
    first = draw(st.sampled_from([0, file_id(3, 0), file_id(7, (1 << 25) - 20), -MANY, MANY]))
    taken = draw(st.lists(st.booleans(), min_size=1, max_size=60))
    kept = draw(st.sampled_from([taken, [True] * len(taken)]))
    window, slide = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    return [
        [first + i for i in range(start, min(start + window, len(kept))) if kept[i]]
        for start in range(0, len(kept), slide)
    ]


@st.composite
def thinned(draw: st.DrawFn) -> Sets:
    """Sets that lose some ids anywhere, and get others anywhere."""
    known, found = set(draw(st.lists(st.integers(0, 40), max_size=30))), []
    for _ in range(draw(st.integers(0, 12))):
        known = known ^ draw(st.sets(st.integers(0, 40), max_size=4))
        found.append(sorted(known))
    return found


ids = st.one_of(st.integers(-5, 30), st.integers(-MANY, MANY), st.integers(-(2**63), 2**63 - 1))
at_random = st.lists(st.sets(ids, max_size=12).map(sorted), max_size=12)
equal = st.builds(lambda ids, n: [sorted(ids)] * n, st.sets(ids, max_size=12), st.integers(0, 12))
some_sets = st.one_of(
    sliding(),
    thinned(),
    at_random,
    equal,
    st.lists(st.one_of(sliding(), thinned(), at_random), max_size=3).map(
        lambda parts: [ids for part in parts for ids in part]
    ),
)
full_every = st.sampled_from([1, 2, 5, 256])
compressed_from = st.sampled_from([0, 100, None])
encodings = pytest.mark.parametrize("encoding", Encoding, ids=lambda e: e.value)


@encodings
@given(sets=some_sets, every=full_every, least=compressed_from)
def test_what_is_stored_is_decoded(
    encoding: Encoding, sets: Sets, every: int, least: int | None
) -> None:
    encoded = encode(column(sets), encoding, full_every=every, compressed_from=least)
    assert encoded.frame.height == len(sets)
    assert_series_equal(decode(encoded), column(sets))


@encodings
@given(sets=some_sets, every=full_every, least=compressed_from)
def test_a_file_of_sets_is_decoded(
    encoding: Encoding, sets: Sets, every: int, least: int | None
) -> None:
    written = encode(column(sets), encoding, full_every=every, compressed_from=least)
    parquet, ipc = BytesIO(), BytesIO()
    written.frame.write_parquet(parquet)
    written.frame.write_ipc(ipc)
    for read in (pl.read_parquet(parquet.getvalue()), pl.read_ipc(ipc.getvalue())):
        assert read.schema == written.frame.schema
        assert_series_equal(decode(Encoded(read)), column(sets))


@encodings
@given(one=some_sets, other=some_sets, every=full_every, least=compressed_from)
def test_frames_one_after_the_other_are_decoded(
    encoding: Encoding, one: Sets, other: Sets, every: int, least: int | None
) -> None:
    frames = [
        encode(column(sets), encoding, full_every=every, compressed_from=least).frame
        for sets in (one, other)
    ]
    assert_series_equal(decode(Encoded(pl.concat(frames))), column(one + other))


@encodings
@given(sets=some_sets, cut=st.integers(0, 5))
def test_sets_that_are_cut_out_are_stored_as_they_are(
    encoding: Encoding, sets: Sets, cut: int
) -> None:
    part = column(sets)[cut:-1]
    assert_series_equal(decode(encode(part, encoding)), column(part.to_list()))


@given(sets=some_sets, every=full_every, least=compressed_from)
def test_adaptive_takes_no_more_than_any_other_and_a_byte_a_set(
    sets: Sets, every: int, least: int | None
) -> None:
    sizes = {
        encoding: size(encode(column(sets), encoding, full_every=every, compressed_from=least))
        for encoding in Encoding
    }
    adaptive = sizes.pop(Encoding.ADAPTIVE)
    assert adaptive <= min(sizes.values()) + len(sets)


@given(sets=some_sets, every=full_every, least=compressed_from)
def test_changes_and_blocks_take_no_more_than_ids(
    sets: Sets, every: int, least: int | None
) -> None:
    single = size(encode(column(sets), Encoding.SINGLE))
    assert single == 8 * sum(map(len, sets))
    assert size(encode(column(sets), Encoding.DELTA, full_every=every)) <= single + len(sets)
    blocks = encode(column(sets), Encoding.DICTIONARY, full_every=every, compressed_from=least)
    assert size(blocks) <= single


@given(sets=some_sets)
def test_a_run_is_as_long_as_can_be(sets: Sets) -> None:
    encoded = encode(column(sets), Encoding.INTERVAL)
    gaps = [sum(b - a > 1 for a, b in pairwise(ids)) for ids in sets]
    runs = [gap + bool(ids) for gap, ids in zip(gaps, sets, strict=True)]
    assert encoded.frame[RUNS].list.len().to_list() == [2 * n for n in runs]
    assert size(encoded) == 16 * sum(runs)


@given(first=st.integers(-(2**63), 2**63 - 100), lengths=st.lists(st.integers(1, 99), max_size=9))
def test_what_follows_one_another_is_one_run(first: int, lengths: list[int]) -> None:
    sets = column([list(range(first, first + length)) for length in lengths])
    frame = encode(sets, Encoding.INTERVAL).frame
    assert frame[RUNS].to_list() == [[first, first + length - 1] for length in lengths]


@given(sets=some_sets)
def test_the_covering_interval_is_from_the_least_to_the_greatest(sets: Sets) -> None:
    found = covering(column(sets)).select(LOW, HIGH).rows()
    assert found == [(min(ids), max(ids)) if ids else (None, None) for ids in sets]


@given(sets=some_sets, every=full_every)
def test_a_change_is_to_the_last_full_set_of_its_block(sets: Sets, every: int) -> None:
    back = encode(column(sets), Encoding.DELTA, full_every=every).frame[BACK].to_list()
    full = [row for row, rows in enumerate(back) if rows == 0]
    assert full[: 1 if sets else 0] == [0][: len(sets)]
    assert all(row % every >= rows for row, rows in enumerate(back))
    assert all(row - rows == max(f for f in full if f <= row) for row, rows in enumerate(back))


def test_a_window_that_slides_drops_at_the_front_and_gets_at_the_end() -> None:
    sets = column([list(range(7 * i, 7 * i + 70)) for i in range(3)])
    assert encode(sets, Encoding.DELTA).frame.rows()[1:] == [
        (list(range(70, 77)), [0, 7], 1),
        (list(range(70, 84)), [0, 14], 2),
    ]


def test_what_is_dropped_anywhere_is_told_by_its_places() -> None:
    sets = column([[1, 5, 6, 9, 12, 20, 30, 40], [1, 9, 12, 13, 20, 30]])
    assert encode(sets, Encoding.DELTA).frame.row(1) == ([13], [1, 2, 7, 1], 1)


def test_a_block_is_compressed_if_it_is_large_enough() -> None:
    sets = column([list(range(0, 100, 2))] * 4)
    for least, blocks in ((1600, 1), (1601, 0)):
        frame = encode(sets, Encoding.DICTIONARY, compressed_from=least).frame
        assert (frame[PACKED].bin.size() > 0).sum() == blocks


@pytest.mark.parametrize(
    "shape",
    [lambda i: range(i, i + 50), lambda i: range(9 * i, 9 * i + 500, 9)],
    ids=["all", "9th"],
)
def test_many_blocks_are_decoded(shape: Callable[[int], range]) -> None:
    sets = column([list(shape(i)) for i in range(2000)])
    for encoding in Encoding:
        assert_series_equal(decode(encode(sets, encoding)), sets)


@pytest.mark.parametrize("wrong", [[[2, 1]], [[1, 1]], [None], [[None]], [[1], [3, 2]]])
def test_only_sets_are_stored(wrong: list[list[int | None] | None]) -> None:
    with pytest.raises(AssertionError):
        encode(pl.Series(wrong, dtype=pl.List(pl.Int64)), Encoding.SINGLE)


def test_half_of_the_rows_take_least_in_mixed_form() -> None:
    taken = np.flatnonzero(np.random.default_rng(1).random(400) < 0.6)
    sets = column([taken.tolist()])
    sizes = {e: size(encode(sets, e, compressed_from=None)) for e in Encoding}
    assert sizes[Encoding.ADAPTIVE] < min(sizes[Encoding.SINGLE], sizes[Encoding.INTERVAL])
