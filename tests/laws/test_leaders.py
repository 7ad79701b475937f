"""The least and the greatest of values that come and go: found among a few that lead."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.aggregations import SAMPLE, SEEDS, assert_same_groups, hard_row, meaning, seeded
from physical.run import busy, run
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import SIGN, TIME, TIME_TYPE, Form, polars_type
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.physical import interval, signed
from tidemill.physical.grouping import leaders
from tidemill.physical.kernels.cover import VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.operator import State

GIVES = st.sampled_from((interval.Aggregate, signed.Aggregate))


def extremes(
    keys: Sequence[str], columns: Sequence[str], gives: type[interval.Aggregate] = signed.Aggregate
) -> interval.Aggregate:
    """The least and the greatest value of some columns."""
    types = {field.name: field.type for field in SAMPLE}
    calls = [
        NamedAggregate(
            f"{function}_{name}",
            AggregateCall(function, Column(name, types[name]), types[name], distinct=False),
        )
        for name in columns
        for function in ("min", "max")
    ]
    schema = (
        *(Field(f"k_{name}", types[name]) for name in keys),
        *(Field(call.name, call.call.type) for call in calls),
    )
    named = tuple(Named(f"k_{name}", Column(name, types[name])) for name in keys)
    return gives(named, tuple(calls), SAMPLE, Schema(schema), takes=Form.SIGNED)


@settings(max_examples=settings().max_examples // 2)  # each has many watermarks
@given(seed=SEEDS, gives=GIVES)
def test_however_few_lead_the_best_is_found(seed: int, gives: type[interval.Aggregate]) -> None:
    chance = seeded(seed)
    keys = chance.sample(("k", "b"), chance.choice((0, 0, 1)))
    operator = extremes(keys, chance.sample(SAMPLE.names, 1), gives)
    schedule = busy(SAMPLE, hard_row, chance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaders, "_LEAST_LEADERS", chance.choice((1, 1, 2)))
        patch.setattr(leaders, "_ROOTS", 0)
        patch.setattr(leaders, "_REFRESH_RATIO", chance.choice((1, 1, 2)))
        output = run(operator, schedule, reload=chance.random() < 0.2, tight=False)
    for t in schedule.times():
        wanted = meaning(operator, schedule.snapshot(0, t))
        assert_same_groups(operator, output.snapshot(t), wanted)


@pytest.mark.parametrize("ordered", ["at random", "best first", "worst first"])
@settings(max_examples=1)
@given(seed=SEEDS)
def test_of_many_values_each_is_found_when_those_before_it_have_gone(
    ordered: str, seed: int
) -> None:
    chance = seeded(seed)
    operator = extremes(["b"], ["x"])
    state = operator.new_state()
    there = [(chance.random() < 0.1, chance.randrange(5_000)) for _ in range(2_000)]
    known: Counter[tuple[object, ...]] = Counter()
    time = 0

    def step(rows: list[tuple[bool, int]], sign: int) -> None:
        nonlocal time
        frame = pl.DataFrame(
            {
                f.name: pl.Series([_value(f.name, row) for row in rows], dtype=type_)
                for f, type_ in zip(SAMPLE, _types(), strict=True)
            }
        ).with_columns(pl.lit(time, TIME_TYPE).alias(TIME), pl.lit(sign, TIME_TYPE).alias(SIGN))
        assert not list(operator.on_batch(state, 0, frame))
        time += 1
        for out in operator.on_watermark(state, Time(time)):
            for *row, _, s in out.iter_rows():
                known[tuple(row)] += s
        _assert_the_law(state)

    step(there, 1)
    chance.shuffle(there)
    if ordered != "at random":
        there.sort(key=lambda row: row[1], reverse=ordered == "best first")
    while there:
        gone, there = there[:170], there[170:]
        step(gone, -1)
        expected = {
            (b, min(of_b), max(of_b))
            for b in (False, True)
            if (of_b := [x for other, x in there if other is b])
        }
        assert {row for row, n in known.items() if n} == expected
        assert all(n in (0, 1) for n in known.values())
    assert sum(table.rows() for table in state.tables.values()) == 0


def _value(name: str, row: tuple[bool, int]) -> object:
    return {"b": row[0], "x": row[1]}.get(name)


def _types() -> list[pl.DataType]:
    return [polars_type(field.type) for field in SAMPLE]


def _assert_the_law(state: State) -> None:
    """Each leader is better than all others of its group."""
    for function, worst, best in (("min", pl.max, pl.min), ("max", pl.min, pl.max)):
        lead, others = (state.tables[f"{function}0.{p}"].all() for p in ("leaders", "others"))
        both = lead.group_by("@key0").agg(worst(VALUE).alias("lead"))
        both = both.join(others.group_by("@key0").agg(best(VALUE).alias("other")), on="@key0")
        better = pl.col("lead") < pl.col("other")
        assert both.select((better if function == "min" else ~better).all()).item()
        assert set(others["@key0"]) <= set(lead["@key0"]), "a group with values has leaders"
