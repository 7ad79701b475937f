"""Split: the fixture of the paper, progress, and elements that never end."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from physical.letters import (
    LETTERS,
    P1,
    arriving,
    assert_stream,
    is_chronon,
    is_end_ordered,
    one_by_one,
    stream,
    together,
)
from physical.run import Element, batch, run
from tidemill.errors import PlanError
from tidemill.model.batch import START
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operators.rows import split
from tidemill.physical.operators.rows.split import Split


def test_split_1_gives_the_chronons_of_the_fixture() -> None:
    output = run(Split(LETTERS, 1), together(P1))
    ordered = sorted((e.start, "".join(map(str, e.row))) for e in output.elements)
    assert len(ordered) == 27
    texts = [f"{letter}{start}" for start, letter in ordered]
    assert texts[:4] == ["c1", "c2", "c3", "c4"]
    assert sorted(texts[4:9]) == ["a5", "a6", "c5", "c6", "d6"]
    assert texts[-1] == "b16"
    assert is_chronon(output)


def test_pieces_are_counted_from_the_elements_own_start() -> None:
    output = run(Split(LETTERS, 5), together(stream("x[0,6) y[3,20)")))
    assert_stream(output, "x[0,5) x[5,6) y[3,8) y[8,13) y[13,18) y[18,20)")
    # Erratum E-01: pieces longer than 1 do not keep the order of ends.
    assert not is_end_ordered(output)


def test_pieces_leave_as_the_watermark_passes_their_start() -> None:
    operator = Split(LETTERS, 3)
    output = run(operator, arriving("a[0,8)", 1, 4, 6))
    assert_stream(output, "a[0,3) a[3,6) a[6,8)")
    assert output.sizes == [1, 1, 1, 0]


def test_short_elements_pass_at_once() -> None:
    operator = Split(LETTERS, 3)
    output = run(operator, arriving("a[0,3) b[2,3)"))
    assert_stream(output, "a[0,3) b[2,3)")


@pytest.mark.parametrize("length", [1, 2, 3, 100])
def test_an_endless_element_is_cut_as_far_as_the_watermark(length: int) -> None:
    output = run(Split(LETTERS, length), arriving("a[1,inf)", 8))
    ordered = sorted((e.start, e.end) for e in output.elements)
    assert ordered[0][0] == 1
    assert ordered[-1] == (ordered[-1][0], END_OF_TIME)
    assert all(end == start for (_, end), (start, _) in pairwise(ordered))
    assert all(end - start == length for start, end in ordered[:-1])


def test_where_pieces_must_be_short_an_endless_element_is_an_error() -> None:
    operator = Split(LETTERS, 1, must_cut=True)
    with pytest.raises(PlanError, match="rows that stay for ever cannot be cut"):
        run(operator, arriving("a[1,inf)", 8))


def test_the_end_of_time_is_not_passed() -> None:
    late = END_OF_TIME - 4
    output = run(Split(LETTERS, 3), together([Element(("a",), late, END_OF_TIME - 1)]))
    assert sorted((e.start, e.end) for e in output.elements) == [(late, late + 3)]
    output = run(Split(LETTERS, 2), together([Element(("a",), late, END_OF_TIME - 1)]))
    assert sorted((e.start, e.end) for e in output.elements) == [
        (late, late + 2),
        (late + 2, late + 3),
    ]
    whole = run(Split(LETTERS, END_OF_TIME), together(P1))
    assert len(whole.elements) == len(P1)


def test_many_pieces_come_in_batches_of_bounded_size() -> None:
    operator = Split(LETTERS, 1)
    state = operator.new_state()
    rows = [Element((x,), 0, n) for x, n in (("a", 200_000), ("b", 3), ("c", 70_000))]
    assert list(operator.on_batch(state, 0, batch(LETTERS, rows))) == []
    parts = list(operator.on_watermark(state, END_OF_TIME))
    assert max(part.height for part in parts) <= split._CHUNK  # noqa: SLF001 — it is the subject
    pieces = pl.concat(parts).group_by("letter").agg(pl.len(), pl.n_unique(START).alias("starts"))
    assert sorted(pieces.rows()) == [("a", 200_000, 200_000), ("b", 3, 3), ("c", 70_000, 70_000)]


def test_batches_of_one_element_give_the_same_pieces() -> None:
    single = run(Split(LETTERS, 2), one_by_one(P1))
    whole = run(Split(LETTERS, 2), together(P1))
    assert sorted(map(str, single.elements)) == sorted(map(str, whole.elements))
