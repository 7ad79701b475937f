"""What is written of a plan is read again as it was, by both codecs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import PAIR, S
from laws.split_plans import split_plans
from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from laws.test_join_trees import stars
from laws.typed_values import values
from plans import implement
from streams import call
from tidemill.algebra.codec import plans as logical
from tidemill.algebra.codec.plans import meaning, read_plan, write_plan
from tidemill.algebra.codec.records import Record
from tidemill.algebra.codec.values import EXPR, PLAIN
from tidemill.algebra.expr import Column, Literal
from tidemill.algebra.plan import Plan as LogicalPlan
from tidemill.algebra.tree import share
from tidemill.errors import RunError
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    decimal,
)
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.search.extensions import all_trees
from tidemill.physical import interval, signed
from tidemill.physical.codec import operators
from tidemill.physical.codec.operators import OPERATORS, identity, read_operator, write_operator
from tidemill.physical.codec.plans import (
    plan_version,
    read_physical,
    read_plans,
    write_physical,
    write_plans,
)
from tidemill.physical.joining.tree import Stage
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.model.types import DataType

TYPES = (BOOLEAN, INTEGER, BIGINT, decimal(9, 2), DOUBLE, VARCHAR, DATE, TIMESTAMP)

PLANS = plans() | split_plans() | st.sampled_from(SHAPES).flatmap(strict_plans)


def through_text(written: object) -> Any:  # noqa: ANN401 — as json has it
    return json.loads(json.dumps(written))


@settings(max_examples=4 * settings().max_examples)
@given(plan=PLANS)
def test_a_logical_plan_is_read_as_it_was_written(plan: Plan) -> None:
    assert read_plan(through_text(write_plan(plan))) == plan
    assert meaning(share(plan)) == meaning(plan) == meaning(read_plan(write_plan(plan)))


@settings(max_examples=4 * settings().max_examples)
@given(
    plan=PLANS | stars(),
    technique=st.sampled_from(Technique),
    multiway=st.booleans(),
    lazy=st.sampled_from([0, 3]),
    adaptive=st.booleans(),
)
def test_a_physical_plan_is_read_as_it_was_written(
    plan: Plan, technique: Technique, *, multiway: bool, lazy: int, adaptive: bool
) -> None:
    made = implement(
        share(plan), technique=technique, multiway=multiway, lazy=lazy, adaptive=adaptive
    )
    again = read_physical(through_text(write_physical(made)))
    assert again == made
    assert write_physical(again) == write_physical(made)
    assert plan_version(again) == plan_version(made)
    for one, other in zip(walk_physical([made]), walk_physical([again]), strict=True):
        assert (one.fingerprint, one.schema) == (other.fingerprint, other.schema)
        if isinstance(one, Apply) and isinstance(other, Apply):
            assert one.operator == other.operator
            assert one.traits == other.traits


@given(plans=st.lists(PLANS, min_size=1, max_size=3))
def test_plans_that_share_parts_are_written_together(plans: list[Plan]) -> None:
    made = {f"q{n}": implement(plan) for n, plan in enumerate(plans)}
    assert read_plans(through_text(write_plans(made))) == made


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data())
def test_a_literal_keeps_its_value(data: st.DataObject, type_: DataType) -> None:
    value = data.draw(values(type_))
    literal = Literal(value.replace(fold=0) if isinstance(value, datetime) else value, type_)
    again = EXPR.read(through_text(EXPR.write(literal)))
    assert repr(again) == repr(literal)  # NaN is NaN, and -0.0 is not 0.0


# The tables are complete


def test_every_operator_is_written_with_all_that_describes_it() -> None:
    known = {getattr(module, name) for module in (interval, signed) for name in module.__all__}
    made = {kind for kind in known if isinstance(kind, type) and hasattr(kind, "on_batch")}
    assert {record.kind for record in OPERATORS} == made
    for record in OPERATORS:
        described = {f.name for f in fields(record.kind) if f.init} - {"members"}
        assert record.fields.keys() == described, record.name


def test_every_logical_operator_is_written_with_all_that_describes_it() -> None:
    assert set(logical._NODES) == set(get_args(LogicalPlan))  # noqa: SLF001
    for record in logical._NODES.values():  # noqa: SLF001 — the table itself is tested
        described = {f.name for f in fields(record.kind) if f.init}
        assert record.fields.keys() == described - {"input", "left", "right", "span"}, record.name


# Identity


@dataclass(frozen=True, slots=True)
class Grown(interval.TimeWindow):
    """The time window of a later version, which has one more field."""

    origin: int = field(default=0)


def test_an_operator_that_gained_a_field_with_a_default_is_the_same() -> None:
    old = interval.TimeWindow(PAIR, 5)
    later = Record("interval.TimeWindow", Grown, {**_fields(old), "origin": PLAIN})
    table = {**operators._BY_KIND, Grown: later}  # noqa: SLF001 — another version
    names = {**operators._BY_NAME, "interval.TimeWindow": later}  # noqa: SLF001
    with patch.object(operators, "_BY_KIND", table), patch.object(operators, "_BY_NAME", names):
        assert identity(Grown(PAIR, 5)) == identity(old)
        assert identity(Grown(PAIR, 5, origin=2)) != identity(old)
        assert read_operator(write_operator(old)) == Grown(PAIR, 5)


def _fields(operator: object) -> dict[str, Any]:
    return dict(next(r for r in OPERATORS if r.kind is type(operator)).fields)


@given(plan=st.sampled_from(SHAPES).flatmap(strict_plans))
def test_how_a_join_probes_is_no_part_of_its_identity(plan: Plan) -> None:
    made = implement(share(plan), multiway=True)
    for part in walk_physical([made]):
        if isinstance(part, Apply) and isinstance(part.operator, interval.MultiJoin):
            turned = tuple(order[::-1] for order in part.operator.orders)
            other = Apply(replace(part.operator, orders=turned), part.inputs)
            assert other.fingerprint == part.fingerprint
            if turned != part.operator.orders:
                assert plan_version(other) != plan_version(part)


def test_the_tree_of_a_join_is_no_part_of_its_identity() -> None:
    condition = call("=", Column("a", BIGINT), Column("c", BIGINT))
    trees = [tree for tree in all_trees(3) if isinstance(tree, Stage)]
    made = [interval.JoinTree((PAIR,) * 3, tuple("abcdef"), condition, tree) for tree in trees]
    assert len({identity(join) for join in made}) == 1
    assert len({Apply(join, (implement(S),) * 3).fingerprint for join in made}) == 1
    again = [read_operator(through_text(write_operator(join))) for join in made]
    assert [join.tree for join in again if isinstance(join, interval.JoinTree)] == trees


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 99},
        {"parts": [{"operator": "interval.Future", "on": []}]},
        {"parts": [{"input": "s"}]},
        {"parts": [{"exchange": 7, "keys": []}]},
        {"parts": "no"},
    ],
)
def test_a_plan_that_cannot_be_read_is_an_error(damage: dict[str, object]) -> None:
    with pytest.raises(RunError):
        read_physical({**write_physical(implement(S)), **damage})


@pytest.mark.parametrize("written", [None, [], "plan", 1])
def test_what_is_no_plan_at_all_is_an_error(written: object) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        read_physical(written)
