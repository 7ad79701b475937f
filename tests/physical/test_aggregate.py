"""Aggregation on the physical streams of the thesis, and sums that do not drift."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from physical.letters import arriving
from physical.run import Element, at_once, batch, elements_of, run
from physical.test_counting import LETTERS, P1, stream
from streams import LETTER, equal, text
from tidemill.algebra.expr import AggregateCall, Case, Column, Literal, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR, DataType, decimal
from tidemill.physical.kernels.exact import carried
from tidemill.physical.operators.aggregate.aggregate import Aggregate

if TYPE_CHECKING:
    from tidemill.model.types import Value

COUNT = AggregateCall("count", None, BIGINT)


def aggregation(schema: Schema, *calls: AggregateCall, by: tuple[str, ...] = ()) -> Aggregate:
    keys = tuple(Named(name, Column(name, schema[name].type)) for name in by)
    named = tuple(NamedAggregate(f"f{i}", call) for i, call in enumerate(calls))
    fields = (
        *(Field(k.name, k.expr.type) for k in keys),
        *(Field(a.name, a.call.type) for a in named),
    )
    return Aggregate(keys, named, schema, Schema(fields))


def of(function: str, type_: DataType, result: DataType | None = None) -> AggregateCall:
    return AggregateCall(function, Column("x", type_), result or type_)


def results(operator: Aggregate, *elements: Element) -> list[tuple[int, int, Value]]:
    """When, and what, of an aggregation with one output."""
    output = run(operator, at_once((operator.input_schema, elements)), tight=False)
    return sorted((e.start, e.end, e.row[0]) for e in output.elements)


def over(type_: DataType, *values: Value) -> list[Element]:
    """Elements that are all valid at the same time."""
    del type_
    return [Element((value,), 0, 1) for value in values]


def test_sum() -> None:
    worth = {"a": 1, "b": 10, "c": 100, "d": 1000}
    branches = tuple((equal(LETTER, text(k)), Literal(v, BIGINT)) for k, v in worth.items())
    value = Case(branches, Literal(None, BIGINT), BIGINT)
    total = aggregation(LETTERS, AggregateCall("sum", value, BIGINT))
    assert results(total, *stream(P1)) == [
        (1, 5, 100),
        (5, 6, 101),
        (6, 8, 1101),
        (8, 9, 1001),
        (9, 10, 1002),
        (10, 11, 1001),
        (11, 12, 1000),
        (12, 14, 1010),
        (14, 17, 10),
    ]


def test_count_by_letter() -> None:
    output = run(
        aggregation(LETTERS, COUNT, by=("letter",)), at_once((LETTERS, stream(P1))), tight=False
    )
    assert output.text() == ("c1[1,8) a1[5,9) d1[6,14) a2[9,10) a1[10,11) b1[12,17)")


def test_nothing_is_cut_where_the_result_stays_the_same() -> None:
    schema = Schema((Field("x", BIGINT),))
    elements = [Element((7,), 0, 4), Element((3,), 1, 3), Element((7,), 4, 9)]
    assert results(aggregation(schema, of("max", BIGINT)), *elements) == [(0, 9, 7)]


def test_an_open_segment_is_cut_when_it_is_overdue_and_goes_on() -> None:
    operator = replace(aggregation(LETTERS, COUNT, by=("letter",)), max_delay=3)
    output = run(operator, arriving("a[2,20) b[5,20)", 5, 6, 8, 9, "b[9,12)", 10), tight=False)
    assert output.text() == "a1[2,6) b1[5,9) a1[6,10) b2[9,12) a1[10,20) b1[12,20)"


def test_a_count_that_never_changes_does_not_hold_time_back() -> None:
    operator = replace(aggregation(LETTERS, COUNT), max_delay=10)
    state, emitted = operator.new_state(), 0
    for t in range(100):
        list(operator.on_batch(state, 0, batch(LETTERS, [Element(("a",), t, t + 5)])))
        emitted += sum(part.height for part in operator.on_watermark(state, Time(t + 1)))
        assert operator.held(state) >= t + 1 - 10
        assert state.rows() <= 7
    assert emitted == 4 + 95 // 11


def test_a_group_without_rows_is_absent_not_zero() -> None:
    elements = stream("a[0,2) a[5,inf)")
    assert results(aggregation(LETTERS, COUNT), *elements) == [(0, 2, 1), (5, END_OF_TIME, 1)]


def test_a_bigint_sum_that_overflows_is_null_and_recovers() -> None:
    schema = Schema((Field("x", BIGINT),))
    elements = [Element((2**63 - 1,), 0, 9), Element((1,), 3, 5)]
    assert sorted(results(aggregation(schema, of("sum", BIGINT)), *elements), key=str) == [
        (0, 3, 2**63 - 1),
        (3, 5, None),
        (5, 9, 2**63 - 1),
    ]


def test_a_decimal_sum_beyond_128_bits_is_null_and_recovers() -> None:
    type_ = decimal(38, 0)
    largest = Decimal(10**38 - 1)
    schema = Schema((Field("x", type_),))
    elements = [Element((largest,), 0, 9), *(Element((largest,), 3, 5) for _ in range(9))]
    assert sorted(results(aggregation(schema, of("sum", type_)), *elements), key=str) == [
        (0, 3, largest),
        (3, 5, None),
        (5, 9, largest),
    ]


@pytest.mark.parametrize("scale", [1.0, 2.0**-30, 2.0**-300, 2.0**200])
def test_a_sum_of_doubles_is_rounded_once(scale: float) -> None:
    chance = Random(7)  # noqa: S311 — the same numbers every time
    values = [math.ldexp(chance.getrandbits(53), chance.randrange(-93, 7)) for _ in range(300)]
    values = [value * scale * chance.choice((-1, 1)) for value in values]
    schema = Schema((Field("x", DOUBLE),))
    operator = aggregation(schema, of("sum", DOUBLE))
    assert results(operator, *over(DOUBLE, *values)) == [(0, 1, math.fsum(values))]


def test_two_hundred_thousand_tenths_come_and_go_without_a_trace() -> None:
    n, every = 200_000, 10_000
    schema = Schema((Field("k", VARCHAR), Field("x", DOUBLE)))
    calls = (of("sum", DOUBLE), of("avg", DOUBLE), of("stddev_pop", DOUBLE))
    operator = aggregation(schema, *calls, by=("k",))
    times = pl.int_range(n, eager=True).alias(START)
    frame = pl.DataFrame({"k": ["x"] * n, "x": [0.1] * n}).with_columns(
        times, (times + 3).alias(END)
    )
    state, found = operator.new_state(), []
    for first in range(0, n, every):
        list(operator.on_batch(state, 0, frame.slice(first, every)))
        for part in operator.on_watermark(state, Time(first + every)):
            found += elements_of(operator.schema, part)
        assert state.rows() <= 6
    for part in operator.on_watermark(state, END_OF_TIME):
        found += elements_of(operator.schema, part)
    tenths = [math.fsum([0.1] * count) for count in (1, 2, 3, 2, 1)]
    assert [e.row[1] for e in sorted(found, key=lambda e: e.start)] == tenths
    assert {e.row[2:] for e in found} == {(0.1, 0.0)}
    assert state.rows() == 0


def test_fractions_are_carried_over_and_a_group_still_goes_without_a_trace() -> None:
    schema = Schema((Field("k", VARCHAR), Field("x", DOUBLE)))
    operator = aggregation(schema, of("sum", DOUBLE), by=("k",))
    state = operator.new_state()
    elements = [Element(("x", 0.75), 0, 5), Element(("x", 0.75), 0, 6), Element(("x", -0.5), 1, 6)]
    list(operator.on_batch(state, 0, batch(schema, elements)))
    found = [
        e
        for t in (3, 7)
        for p in operator.on_watermark(state, Time(t))
        for e in elements_of(operator.schema, p)
    ]
    assert [(e.start, e.end, e.row[1]) for e in found] == [(0, 1, 1.5), (1, 5, 1.0), (5, 6, 0.25)]
    assert state.rows() == 0


def test_a_fraction_that_is_carried_over_is_below_one() -> None:
    full = pl.DataFrame({"w": [1, -1], "f": [2**126, -1]}, schema={"w": pl.Int128, "f": pl.Int128})
    assert full.select(carried("w", "f")).rows() == [(1 + 2**26, 0), (-2, 2**100 - 1)]


def test_the_least_and_greatest_remember_only_what_can_still_be() -> None:
    schema = Schema((Field("x", BIGINT),))
    operator = aggregation(schema, of("min", BIGINT))
    state = operator.new_state()
    values = pl.int_range(1000, eager=True)
    rising = pl.DataFrame({"x": values, START: values * 0, END: 2000 - values})
    list(operator.on_batch(state, 0, rising))
    list(operator.on_watermark(state, Time(500)))
    assert state.tables["min0.stairs"].rows() == 1


def test_elements_that_share_an_interval_become_one_pane() -> None:
    schema = Schema((Field("k", VARCHAR), Field("x", DOUBLE)))
    operator = aggregation(schema, of("sum", DOUBLE), COUNT, by=("k",))
    state = operator.new_state()
    many = pl.DataFrame(
        {"k": ["x", "y"] * 500, "x": [0.1] * 1000, START: [0] * 1000, END: [9] * 1000}
    )
    list(operator.on_batch(state, 0, many))
    assert state.rows() == 2
