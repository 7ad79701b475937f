"""Set operations, aggregation and changes obey their laws for every batching and schedule."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.typed_values import values
from physical.run import Schedule, normal, run, schedules
from streams import call
from tidemill.algebra.aggregates import AGGREGATES, aggregate
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, DataType, Kind, decimal
from tidemill.physical.interval.aggregate import Aggregate
from tidemill.physical.interval.changes import Change, Changes
from tidemill.physical.interval.counting import Counting, Multiplicity

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.types import Value

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
OTHER = Schema((Field("c", BIGINT), Field("d", VARCHAR)))
NUMBER = Schema((Field("x", DOUBLE),))

DELAYS = st.sampled_from((None, 0, 1, 3))
"""How far an open segment may lie behind the watermark; ``run`` sees to it that none does."""

ONE_INPUT = schedules(PAIR) | schedules(NUMBER)


def _strict(left: Bag, right: Bag) -> Bag:
    return Counter({row: n for row, n in left.items() if row not in right})


MEANINGS: dict[Multiplicity, Callable[[Bag, Bag], Bag]] = {
    Multiplicity.DIFFERENCE: Counter.__sub__,
    Multiplicity.STRICT_DIFFERENCE: _strict,
    Multiplicity.INTERSECT: Counter.__and__,
    Multiplicity.MAX_UNION: Counter.__or__,
}


@pytest.mark.parametrize("function", MEANINGS, ids=lambda f: f.name.lower())
@given(schedule=schedules(PAIR, OTHER), delay=DELAYS, reload=st.booleans())
def test_a_set_operation_counts_rows_at_every_instant(
    function: Multiplicity, schedule: Schedule, delay: int | None, *, reload: bool
) -> None:
    operator = Counting(function, (PAIR, OTHER), PAIR, delay)
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        left, right = schedule.snapshot(0, t), schedule.snapshot(1, t)
        assert output.snapshot(t) == MEANINGS[function](left, right), t


@given(schedule=ONE_INPUT, delay=DELAYS, reload=st.booleans())
def test_distinct_has_each_row_once_at_every_instant(
    schedule: Schedule, delay: int | None, *, reload: bool
) -> None:
    (schema,) = schedule.schemas
    operator = Counting(Multiplicity.DISTINCT, (schema,), schema, delay)
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == Counter(dict.fromkeys(schedule.snapshot(0, t), 1)), t


@given(schedule=ONE_INPUT, reload=st.booleans())
def test_istream_is_what_has_come(schedule: Schedule, *, reload: bool) -> None:
    (schema,) = schedule.schemas
    output = run(Changes(Change.INSERTED, schema), schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t) - schedule.snapshot(0, t - 1), t


@given(schedule=ONE_INPUT, reload=st.booleans())
def test_dstream_is_what_has_gone(schedule: Schedule, *, reload: bool) -> None:
    (schema,) = schedule.schemas
    output = run(Changes(Change.DELETED, schema), schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t - 1) - schedule.snapshot(0, t), t


# Aggregation

SAMPLE = Schema(
    (
        Field("k", VARCHAR),
        Field("i", INTEGER),
        Field("x", BIGINT),
        Field("d", DOUBLE),
        Field("m", decimal(9, 2)),
        Field("w", decimal(38, 4)),
        Field("b", BOOLEAN),
    )
)
_ALWAYS = frozenset({"count", "min", "max"})


def _result(function: str, type_: DataType) -> DataType:
    if function == "count":
        return BIGINT
    if function == "sum":
        return decimal(38, type_.scale) if type_.kind is Kind.DECIMAL else _widened(type_)
    return type_ if function in _ALWAYS or type_ == BOOLEAN else DOUBLE


def _widened(type_: DataType) -> DataType:
    return BIGINT if type_.is_integer else type_


def _takes(function: str, type_: DataType) -> bool:
    if function.startswith("bool"):
        return type_ == BOOLEAN
    return function in _ALWAYS or type_.is_numeric


CALLS = [
    AggregateCall(function, Column(f.name, f.type), _result(function, f.type), distinct)
    for f in SAMPLE
    for function in AGGREGATES
    if _takes(function, f.type)
    for distinct in (False, True)
]
CONDITIONS: list[Expr | None] = [
    None,
    call("is_null", Column("i", INTEGER)),
    call("<", Column("x", BIGINT), Column("x", BIGINT)),
    call("not", Column("b", BOOLEAN)),
]


def _filtered(call_: AggregateCall, condition: Expr | None) -> AggregateCall:
    return AggregateCall(call_.function, call_.argument, call_.type, call_.distinct, condition)


@st.composite
def aggregations(draw: DrawFn) -> Aggregate:
    """Aggregations of a few columns, with and without keys."""
    keys = draw(st.lists(st.sampled_from(SAMPLE.fields), max_size=2, unique=True))
    count = AggregateCall("count", None, BIGINT)
    some = st.builds(_filtered, st.sampled_from([*CALLS, count]), st.sampled_from(CONDITIONS))
    calls = draw(st.lists(some, min_size=0 if keys else 1, max_size=5))
    named = [NamedAggregate(f"f{i}", c) for i, c in enumerate(calls)]
    schema = (
        *(Field(f"k_{f.name}", f.type) for f in keys),
        *(Field(a.name, a.call.type) for a in named),
    )
    return Aggregate(
        tuple(Named(f"k_{f.name}", Column(f.name, f.type)) for f in keys),
        tuple(named),
        SAMPLE,
        Schema(schema),
        panes=draw(st.booleans()),
        max_delay=draw(DELAYS),
    )


def _sample_rows() -> SearchStrategy[Row]:
    """Rows of few values, which meet, and rows of any values."""
    few = {
        VARCHAR: (None, "x", "y"),
        DOUBLE: (None, 0.1, 0.2, 1e-9, 3.5, 1e12),
        BOOLEAN: (None, True, False),
    }
    common = [st.sampled_from(few.get(f.type, (None, 1, 2, 5))) for f in SAMPLE]
    rare = [values(f.type) for f in SAMPLE]
    return st.one_of(st.tuples(*common), st.tuples(*common), st.tuples(*rare))


def _meaning(operator: Aggregate, rows: Bag) -> list[Row]:
    groups: dict[Row, list[tuple[dict[str, Value], int]]] = {}
    for row, n in rows.items():
        columns = dict(zip(SAMPLE.names, row, strict=True))
        key = tuple(evaluate(k.expr, columns) for k in operator.keys)
        groups.setdefault(key, []).append((columns, n))
    return [
        (*key, *(aggregate(a.call, members) for a in operator.aggregates))
        for key, members in groups.items()
    ]


def _is_near(one: Value, other: Value) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))


def _assert_same_groups(operator: Aggregate, found: Bag, wanted: list[Row]) -> None:
    """Fail unless the groups are the same, to the last bit but for variances."""
    width = len(operator.keys)
    by_key = {normal(row[:width]): normal(row[width:]) for row in wanted}
    assert sum(found.values()) == len(found) == len(by_key)
    for row in found:
        for a, one, other in zip(
            operator.aggregates, row[width:], by_key[row[:width]], strict=True
        ):
            is_variance = a.call.function.startswith(("var", "stddev"))
            same = _is_near(one, other) if is_variance else normal([one]) == normal([other])
            assert same, f"{a.call} is {one!r}, not {other!r}"


@given(
    operator=aggregations(),
    schedule=schedules(SAMPLE, rows={0: _sample_rows()}),
    reload=st.booleans(),
)
@settings(max_examples=3 * settings().max_examples)  # there are very many aggregations
def test_aggregation_has_a_row_for_each_group_at_every_instant(
    operator: Aggregate, schedule: Schedule, *, reload: bool
) -> None:
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        wanted = _meaning(operator, schedule.snapshot(0, t))
        _assert_same_groups(operator, output.snapshot(t), wanted)
