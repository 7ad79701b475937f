"""What elements of joins are made of: waves, and combinations of columns; by hand, and as laws."""

from __future__ import annotations

from math import exp, inf
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.algebra.expr import TRUE, Call, Column, Named
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.estimates.joined import Input, Joined, Side, Wave, met

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr

NAMES = "abcdefgh"


def column(name: str) -> Column:
    return Column(name, BIGINT)


def equal(one: str, other: str) -> Call:
    return Call("=", (column(one), column(other)), BOOLEAN)


def of_stream(columns: str, rate: float, size: float, counted: float = inf) -> Input:
    return Input(None, rate, Side(frozenset(columns), size, counted))


def ten_each(keys: Sequence[Expr]) -> float:
    """Ten values in each column."""
    return 10.0 ** len(keys)


# Streams of 40 and 60 rows a second, windows of 5 and 10 seconds, 200 values: of each window of
# 200 and 600 rows, a row of the other stream has 1 and 3 partners.
LEFT, RIGHT = of_stream("ab", 40.0, 200.0), of_stream("cd", 60.0, 600.0)


def pairs() -> Joined:
    joined = met(LEFT, RIGHT, 1 / 200, equal("b", "c"))
    assert joined is not None
    return joined


def test_a_row_begins_as_many_results_as_it_has_partners() -> None:
    left, right = pairs().waves
    assert left.rate == pytest.approx(40 * (1 - exp(-3)))
    assert left.rows == pytest.approx(3 / (1 - exp(-3)))
    assert left.shared == set("abc")
    assert right.rate == pytest.approx(60 * (1 - exp(-1)))
    assert right.rows == pytest.approx(1 / (1 - exp(-1)))
    assert right.shared == set("cdb")


def test_a_group_changes_once_for_a_row_that_all_its_elements_have() -> None:
    joined = pairs()
    left, right = joined.waves
    # By "b" all elements of a wave are in one group, by "a" those of the right are in several.
    by_b = (left.rate * left.rows + right.rate * right.rows) / (left.rate + right.rate)
    assert joined.together([column("b")], ten_each) == pytest.approx(by_b)
    groups = 10 * (1 - 0.9**right.rows)
    by_a = 180 / (left.rate + right.rate * groups)
    assert joined.together([column("a")], ten_each) == pytest.approx(by_a)
    assert joined.together([], ten_each) == pytest.approx(by_b)


def test_elements_that_agree_on_a_key_meet_the_same_partners() -> None:
    third = of_stream("ef", 10.0, 100.0)
    both = Input(pairs(), 180.0, Side(frozenset("abcd"), 900.0))
    same, other = (met(both, third, 1 / 200, equal(key, "e")) for key in "bd")
    assert same is not None
    assert other is not None
    left, agrees = same.waves[0], same.waves[0].shared
    assert agrees == set("abce")
    assert left.rate == pytest.approx(40 * (1 - exp(-3)) * (1 - exp(-0.5)))
    # Of a wave of the left stream the values of "d" differ: each element has its own partners.
    apart = other.waves[0]
    assert apart.rate == pytest.approx(40 * (1 - exp(-3)) * (1 - exp(-1.5 / (1 - exp(-3)))))
    assert apart.shared == set("abc")


def test_no_more_combinations_than_rows() -> None:
    joined = met(
        of_stream("ab", 1.0, 5.0, 30.0), of_stream("cd", 1.0, 1e6, 1e9), 0.1, equal("a", "c")
    )
    assert joined is not None
    keys = [column("a"), column("b")]
    assert joined.combinations(keys, ten_each, present=False) == 30
    # Of five rows two may be alike.
    assert joined.combinations(keys, ten_each, present=True) == pytest.approx(4.9, rel=0.01)
    # "c" is equal to "a": the same five rows; "d" is another row's.
    assert joined.combinations([column("c"), column("b")], ten_each, present=False) == 30
    assert joined.combinations([*keys, column("d")], ten_each, present=False) == 300
    assert joined.combinations([column("x"), *keys], ten_each, present=False) == 300


def test_computed_columns_agree_where_those_do_that_they_are_of() -> None:
    double = Call("+", (column("a"), column("b")), BIGINT)
    mixed = Call("+", (column("a"), column("d")), BIGINT)
    columns = [Named("x", double), Named("y", mixed), Named("z", column("d"))]
    moved = pairs().projected(columns)
    assert [wave.shared for wave in moved.waves] == [{"x"}, {"z"}]
    assert [side.columns for side in moved.sides] == [{"x"}, {"z"}]


@st.composite
def chains(draw: st.DrawFn) -> tuple[Joined, float]:
    """Some inputs joined one after the other, and the rate of all."""
    count = draw(st.integers(2, 4))
    size = draw(st.lists(st.floats(0, 1e4), min_size=count, max_size=count))
    rate = draw(st.lists(st.floats(1e-3, 1e3), min_size=count, max_size=count))
    inputs = [of_stream(NAMES[2 * i : 2 * i + 2], rate[i], size[i]) for i in range(count)]
    left = inputs[0]
    for other in inputs[1:]:
        own = draw(st.sampled_from(sorted(left.side.columns)))
        condition = equal(own, min(other.side.columns)) if draw(st.booleans()) else TRUE
        share = draw(st.floats(1e-6, 1))
        joined = met(left, other, share, condition)
        assert joined is not None
        coming = share * (left.rate * other.side.size + other.rate * left.side.size)
        there = Side(left.side.columns | other.side.columns, share * left.side.size)
        left = Input(joined, coming, there)
    assert left.joined is not None
    return left.joined, left.rate


@given(chains(), st.sets(st.sampled_from(NAMES)))
def test_waves_have_all_elements(chain: tuple[Joined, float], keys: set[str]) -> None:
    joined, rate = chain
    rows = sum(wave.rate * wave.rows for wave in joined.waves)
    assert rows == pytest.approx(rate, rel=1e-6, abs=1e-9)
    assert all(wave.rows >= 1 for wave in joined.waves)
    columns = [column(name) for name in sorted(keys)]
    together = joined.together(columns, ten_each)
    assert 1 <= together <= max((wave.rows for wave in joined.waves), default=1.0) * (1 + 1e-9)
    # Groups by more columns are smaller.
    assert joined.together(columns[:1], ten_each) >= together * (1 - 1e-9)


@given(chains(), st.sets(st.sampled_from(NAMES)))
def test_rows_of_inputs_bound_combinations(chain: tuple[Joined, float], keys: set[str]) -> None:
    joined, _ = chain
    columns = [column(name) for name in sorted(keys)]
    for present in (True, False):
        found = joined.combinations(columns, ten_each, present=present)
        assert 0 <= found <= ten_each(columns) * (1 + 1e-9)


@given(chains(), st.floats(0, 1))
def test_thinned_waves_have_their_share(chain: tuple[Joined, float], share: float) -> None:
    joined, _ = chain
    before = sum(wave.rate * wave.rows for wave in joined.waves)
    after = sum(wave.rate * wave.rows for wave in joined.thinned(share).waves)
    assert after == pytest.approx(before * share, rel=1e-6, abs=1e-9)


def test_the_law_finds_a_wave_that_is_counted_by_its_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_often(self: Wave, rows: float, chance: float) -> Wave:
        del chance
        return Wave(self.rate, max(rows, 1.0), self.shared)

    monkeypatch.setattr(Wave, "left", as_often)
    rows = sum(wave.rate * wave.rows for wave in pairs().thinned(0.1).waves)
    assert rows != pytest.approx(18, rel=0.1)
