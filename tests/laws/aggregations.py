"""Aggregations over columns of every kind, drawn at random, and what they mean.

There are very many, and Hypothesis prefers what is simple. Where a law is about a few of them, an
example has many aggregates and hard rows (``scalar_calls``, ``hard_row``), all from one seed.
"""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
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
from tidemill.physical.operators.aggregate.aggregate import Aggregate
from tidemill.physical.operators.aggregate.combine import can_combine

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from tidemill.algebra import plan
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Bag, Row
    from tidemill.model.types import Value

__all__ = [
    "DELAYS",
    "SAMPLE",
    "SEEDS",
    "aggregations",
    "assert_same_groups",
    "hard_row",
    "meaning",
    "sample_rows",
    "scalar_calls",
    "seeded",
]

SEEDS = st.integers(0, 2**32)


def seeded(seed: int) -> Random:
    """The random numbers of a seed, the same every time."""
    return Random(seed)  # noqa: S311 — nothing is to be kept secret


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


def _call(function: str, field: Field, *, distinct: bool = False) -> AggregateCall:
    argument = Column(field.name, field.type)
    return AggregateCall(function, argument, _result(function, field.type), distinct)


COUNT = AggregateCall("count", None, BIGINT)
CALLS = [
    _call(function, f, distinct=distinct)
    for f in SAMPLE
    for function in AGGREGATES
    if _takes(function, f.type)
    for distinct in (False, True)
]
COMBINABLE = [call_ for call_ in CALLS if can_combine([call_])]
"""Those that can be had from sums and extremes."""

ALWAYS = [COUNT, *(_call(function, SAMPLE["d"]) for function in ("sum", "avg", "min", "max"))]
"""Those in which nearly every fault shows."""

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
    some = st.builds(_filtered, st.sampled_from([*CALLS, COUNT]), st.sampled_from(CONDITIONS))
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


def scalar_calls(chance: Random) -> tuple[NamedAggregate, ...]:
    """Many aggregates, all from sums and extremes, some of rows that meet a condition."""
    others = [_filtered(c, chance.choice(CONDITIONS)) for c in chance.sample(COMBINABLE, 5)]
    return tuple(NamedAggregate(f"f{i}", c) for i, c in enumerate([*ALWAYS, *others]))


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


_HARD: dict[DataType, tuple[Value, ...]] = {
    VARCHAR: (None, "x", "y", ""),
    INTEGER: (None, 1, 2, -(2**31)),
    BIGINT: (None, 1, 5, 2**63 - 1, -(2**63)),
    DOUBLE: (None, 0.1, 0.2, -0.1, 1e-9, 3.5, 1e12, 1e300, -1e300, 5e-324, 1e-200),
    decimal(9, 2): (None, Decimal("0.01"), Decimal("9999999.99"), Decimal("-1.50")),
    decimal(38, 4): (None, Decimal("0.0001"), Decimal(10**34 - 1), Decimal(1 - 10**34)),
    BOOLEAN: (None, True, False),
}
_RARE = (math.nan, math.inf, -math.inf)


def hard_row(chance: Random) -> Row:
    """A row of values at the edges: huge and tiny numbers, and now and then one not finite."""
    row = {f.name: chance.choice(_HARD[f.type]) for f in SAMPLE}
    if chance.random() < 1 / 12:
        row["d"] = chance.choice(_RARE)
    return tuple(row.values())


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
