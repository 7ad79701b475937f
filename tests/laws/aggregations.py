"""Aggregations over columns of every kind, drawn at random, and what they mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.typed_values import values
from physical.run import normal
from streams import call
from tidemill.algebra.aggregates import AGGREGATES, aggregate
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import NamedAggregate
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, DataType, Kind, decimal
from tidemill.physical.interval.aggregate import Aggregate
from tidemill.physical.interval.combine import can_combine

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from tidemill.algebra import plan
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.types import Value

__all__ = [
    "COMBINABLE",
    "DELAYS",
    "SAMPLE",
    "aggregate_calls",
    "aggregations",
    "assert_same_groups",
    "meaning",
    "sample_rows",
]

DELAYS = st.sampled_from((None, 0, 1, 3))
"""How far an open segment may lie behind the watermark; ``run`` sees to it that none does."""

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
    AggregateCall("count", None, BIGINT),
    *(
        AggregateCall(function, Column(f.name, f.type), _result(function, f.type), distinct)
        for f in SAMPLE
        for function in AGGREGATES
        if _takes(function, f.type)
        for distinct in (False, True)
    ),
]
COMBINABLE = [call_ for call_ in CALLS if can_combine([call_])]
"""Those that can be had from sums and extremes."""

CONDITIONS: list[Expr | None] = [
    None,
    call("is_null", Column("i", INTEGER)),
    call("<", Column("x", BIGINT), Column("x", BIGINT)),
    call("not", Column("b", BOOLEAN)),
]


def _filtered(call_: AggregateCall, condition: Expr | None) -> AggregateCall:
    return AggregateCall(call_.function, call_.argument, call_.type, call_.distinct, condition)


def aggregate_calls(
    calls: list[AggregateCall], *, least: int
) -> SearchStrategy[list[AggregateCall]]:
    """A few of some aggregates, some of rows that meet a condition."""
    some = st.builds(_filtered, st.sampled_from(calls), st.sampled_from(CONDITIONS))
    return st.lists(some, min_size=least, max_size=5)


@st.composite
def aggregations(
    draw: DrawFn, calls: list[AggregateCall] = CALLS, *, scalar: bool = False
) -> Aggregate:
    """Aggregations of a few columns, with and without keys."""
    most = 0 if scalar else 2
    keys = draw(st.lists(st.sampled_from(SAMPLE.fields), max_size=most, unique=True))
    drawn = draw(aggregate_calls(calls, least=0 if keys else 1))
    named = [NamedAggregate(f"f{i}", c) for i, c in enumerate(drawn)]
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


def sample_rows() -> SearchStrategy[Row]:
    """Rows of few values, which meet, and rows of any values."""
    few = {
        VARCHAR: (None, "x", "y"),
        DOUBLE: (None, 0.1, 0.2, 1e-9, 3.5, 1e12),
        BOOLEAN: (None, True, False),
    }
    common = [st.sampled_from(few.get(f.type, (None, 1, 2, 5))) for f in SAMPLE]
    rare = [values(f.type) for f in SAMPLE]
    return st.one_of(st.tuples(*common), st.tuples(*common), st.tuples(*rare))


def meaning(operator: Aggregate, rows: Bag) -> list[Row]:
    """The rows of an aggregation by definition."""
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


def assert_same_groups(operator: Aggregate | plan.Aggregate, found: Bag, wanted: list[Row]) -> None:
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
