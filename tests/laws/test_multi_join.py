"""The join of many inputs in interval form obeys its law for every batching and schedule.

Its answer is computed here from the elements that come in: all combinations, instant by instant.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import predicates
from physical.letters import is_chronon
from physical.run import Advance, Element, Event, Schedule, batch, elements_of, normal, run, schedules
from streams import both, call
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import TRUE, Call, Column, Expr, Literal, conjunction, used_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.interval import pairs as pairs_module
from tidemill.physical.interval.join import Join
from tidemill.physical.interval.multi_join import EAGER, MultiJoin, ShortLived
from tidemill.physical.kernels.window_closure import window_closure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidemill.algebra.snapshot import Bag
    from tidemill.model.types import DataType
    from tidemill.physical.operator import Operator

PAIR = Schema((Field("x", BIGINT), Field("y", VARCHAR)))
NUMBER = Schema((Field("x", DOUBLE),))

NAMES = ("ax", "ay", "bx", "by", "cx", "cy")
AX, AY, BX, BY, CX, CY = (Column(n, BIGINT if n[1] == "x" else VARCHAR) for n in NAMES)
THREE = Schema(tuple(Field(c.name, c.type) for c in (AX, AY, BX, BY, CX, CY)))

ROUND = ((1, 2), (2, 0), (0, 1))
"""An order of probing for three inputs."""

ORDERS3 = [tuple(o) for o in product(*(list(permutations({0, 1, 2} - {i})) for i in range(3)))]


def plus(*arguments: Expr) -> Call:
    return Call("+", arguments, BIGINT)


def equality(left: Expr, right: Expr) -> st.SearchStrategy[Expr]:
    sides = [(left, right), (right, left)]
    return st.sampled_from([call(f, *both) for f in ("=", "is_not_distinct") for both in sides])


COMMON = both(call("=", AX, BX), call("=", BX, CX))
CONDITIONS = st.one_of(
    st.just(TRUE),
    st.just(COMMON),
    predicates(THREE),
    st.builds(both, equality(AX, BX), equality(BY, CY)),
    st.builds(both, equality(AX, BX), predicates(THREE)),
    st.builds(conjunction, equality(AX, CX), equality(BX, CX), equality(AY, CY)),
    st.builds(conjunction, equality(AX, AX), equality(BX, BX), equality(AX, CX)),
    st.builds(conjunction, equality(plus(AX, BX), CX), equality(AY, BY)),
    st.builds(conjunction, equality(plus(AX, BX), CX), equality(BX, CX), equality(AX, BX)),
    st.builds(both, equality(plus(AX, Literal(1, BIGINT)), BX), st.just(call("<=", BX, CX))),
    st.just(both(call("=", AX, BX), call("<", plus(AX, BX), plus(CX, Literal(1, BIGINT))))),
    st.just(conjunction(call("=", AX, plus(BX, BX)), call("=", AX, plus(BX, Literal(0, BIGINT))))),
)

TIMINGS = [EAGER, 1, 3, 5]


def combinations(schedule: Schedule, names: Sequence[str], condition: Expr, time: int) -> Bag:
    """The relational join of the snapshots of all inputs."""
    ports = range(len(schedule.schemas))
    rows = product(*(schedule.snapshot(port, time).elements() for port in ports))
    joined = (tuple(value for row in found for value in row) for found in rows)
    return Counter(
        row for row in joined if evaluate(condition, dict(zip(names, row, strict=True))) is True
    )


def results(schedule: Schedule, names: Sequence[str], condition: Expr) -> Iterator[Element]:
    """Every combination of elements, as one element that begins with the last of them."""
    for found in product(*(schedule.elements(port) for port in range(len(schedule.schemas)))):
        start, end = max(e.start for e in found), min(e.end for e in found)
        row = normal([value for e in found for value in e.row])
        if start < end and evaluate(condition, dict(zip(names, row, strict=True))) is True:
            yield Element(row, start, end)


def tree(schedule: Schedule, condition: Expr) -> list[Element]:
    """What two joins of two inputs give, one on top of the other."""
    lower = Join(PAIR, PAIR, NAMES[:4], TRUE)
    below = run(lower, Schedule((PAIR, PAIR), tuple(_ports(schedule, (0, 1)))))
    upper = Join(lower.schema, PAIR, NAMES, condition)
    state = upper.new_state()
    frames = [
        *upper.on_batch(state, 0, batch(lower.schema, below.elements)),
        *upper.on_batch(state, 1, batch(PAIR, schedule.elements(2))),
    ]
    return [element for frame in frames for element in elements_of(upper.schema, frame)]


def _ports(schedule: Schedule, ports: Iterable[int]) -> Iterator[Event]:
    return (e for e in schedule.events if isinstance(e, Advance) or e.port in ports)


@pytest.mark.parametrize("many", [4, 1 << 21], ids=["bounded", "free"])
@given(
    schedule=schedules(PAIR, PAIR, PAIR),
    condition=CONDITIONS,
    orders=st.sampled_from(ORDERS3),
    orderly=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    evaluation=st.sampled_from(TIMINGS),
    expiration=st.sampled_from(TIMINGS),
    reload=st.booleans(),
)
def test_a_join_of_three_is_snapshot_reducible(
    *,
    schedule: Schedule,
    condition: Expr,
    orders: tuple[tuple[int, ...], ...],
    orderly: tuple[bool, ...],
    evaluation: int,
    expiration: int,
    reload: bool,
    many: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "_MANY", many)
        join = MultiJoin(
            (PAIR, PAIR, PAIR), NAMES, condition, orders, orderly, evaluation, expiration
        )
        output = run(join, schedule, reload=reload)
    for t in schedule.times():
        assert output.snapshot(t) == combinations(schedule, NAMES, condition, t), t
