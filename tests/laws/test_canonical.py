"""Queries that say the same with other words are one plan, which means what they mean."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, PAIR, VALUES, Inputs, inputs
from laws.respelling import exprs_respelled, plans_respelled
from laws.rule_shapes import SHAPES, sides
from laws.strategies import aggregate, expressions, join, plans, predicates
from laws.test_mutants import fails
from laws.test_optimizer import assert_schema_kept
from streams import assert_same
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Call, Column, Literal, Named
from tidemill.algebra.plan import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RowWindow,
    SemiJoin,
    Union,
    Window,
)
from tidemill.algebra.tree import share
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.logical import canonical as module
from tidemill.optimizer.logical import spelling
from tidemill.optimizer.logical.canonical import canonical
from tidemill.optimizer.logical.canonical_order import Places
from tidemill.optimizer.logical.empty import is_empty
from tidemill.optimizer.logical.rewrite import rewrite
from tidemill.optimizer.logical.spelling import respelled, spelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

FORMS, DONE = module._Forms, module._Done  # noqa: SLF001 — what is broken on purpose
often = settings(max_examples=2 * settings().max_examples)
JOINED = st.sampled_from([Join, Join, SemiJoin])


@st.composite
def conditions(draw: DrawFn) -> Call:
    """Conditions over (a BIGINT, b VARCHAR), IN among them."""
    column, kind = draw(st.sampled_from([("a", BIGINT), ("b", VARCHAR)]))
    items = draw(st.lists(st.sampled_from(VALUES[kind]), min_size=1, max_size=3))
    listed = Call("in", (Column(column, kind), *(Literal(v, kind) for v in items)), BOOLEAN)
    parts = predicates(PAIR) | st.just(listed)
    function = draw(st.sampled_from(["and", "or"]))
    return Call(function, (draw(parts), draw(parts)), BOOLEAN)


@often
@given(expr=conditions() | expressions(PAIR, BIGINT), data=st.data())
def test_one_spelling_has_the_value_of_all(expr: Call, data: st.DataObject) -> None:
    one = spelled(expr)
    assert spelled(one) == one
    assert spelled(data.draw(exprs_respelled(expr))) == one
    assert one.type == expr.type
    for a in VALUES[BIGINT]:
        for b in VALUES[VARCHAR]:
            row = {"a": a, "b": b}
            assert evaluate(one, row) is evaluate(expr, row) or (
                evaluate(one, row) == evaluate(expr, row)
            )


@often
@given(
    content=inputs(), plan=plans() | st.sampled_from(sorted(SHAPES)).flatmap(lambda n: SHAPES[n]())
)
def test_the_canonical_form_keeps_snapshots_and_columns(content: Inputs, plan: Plan) -> None:
    assert_form(content, plan)


def assert_form(content: Inputs, plan: Plan) -> None:
    form = canonical(respelled(plan))
    assert_schema_kept(plan, form)
    assert_same(content.reference(), plan, form, HORIZON)
    assert canonical(form) == form


@st.composite
def queries(draw: DrawFn) -> Plan:
    """Queries as texts say them: with a list of columns on top, and two inputs at most."""
    left, right = draw(sides()), draw(sides())
    how = draw(st.integers(0, 3))
    plan: Plan = left
    if how == 0:
        plan = Union(left, right)
    elif how > 1:
        kinds = st.sampled_from([JoinKind.INNER, JoinKind.INNER, *JoinKind])
        plan = join(draw, draw(JOINED), left, right, kinds)
    for _ in range(draw(st.integers(0, 2))):
        plan = _above(draw, plan)
    return Project(plan, tuple(Named(f"x{f.name}", Column(f.name, f.type)) for f in plan.schema))


def _above(draw: DrawFn, plan: Plan) -> Plan:
    match draw(st.integers(0, 4)):
        case 0:
            return Filter(plan, draw(predicates(plan.schema)))
        case 1:
            return Distinct(plan)
        case 2:
            return aggregate(draw, plan)
        case 3:
            return Window(plan, RowWindow(draw(st.integers(1, 3))))
        case _:
            columns = (Named(f"p{f.name}", Column(f.name, f.type)) for f in plan.schema)
            return Project(plan, tuple(columns))


@often
@given(query=queries(), data=st.data())
def test_spellings_of_a_query_have_one_form(query: Plan, data: st.DataObject) -> None:
    assert_one(query, data.draw(plans_respelled(query)))


def assert_one(query: Plan, other: Plan) -> None:
    forms = [canonical(rewrite(respelled(share(one))).plan) for one in (query, other)]
    # What can have no rows remembers nothing, and is left out in one way or another.
    assume(not any(map(is_empty, forms)))
    texts = [explain(form) for form in forms]
    assert texts[0] == texts[1]
    assert forms[0] == forms[1]


# The laws find what is wrong


def _turned_but_not_mirrored() -> ExitStack:
    return _patched(spelling, "_MIRRORED", {"<": "<", "<=": "<=", ">": ">", ">=": ">="})


def _opposites_that_leave_a_gap() -> ExitStack:
    return _patched(spelling, "_OPPOSITE", {**spelling._OPPOSITE, "<": ">"})  # noqa: SLF001


def _negated_in_its_parts_only() -> ExitStack:
    return _patched(spelling, "_DUAL", {"and": "and", "or": "or"})


def _turned_where_nothing_is_commutative() -> ExitStack:
    right = FORMS._join  # noqa: SLF001

    def turned(self: object, node: Join) -> object:
        other = Join(node.left, node.right, JoinKind.FULL, node.condition, node.names)
        return right(self, other if node.kind is JoinKind.LEFT else node)  # type: ignore[arg-type]

    return _patched(FORMS, "_join", turned)


def _columns_in_any_order() -> ExitStack:
    return _patched(DONE, "in_order", lambda self, _wanted=None: self.plan)


def _inputs_as_written() -> ExitStack:
    return _patched(Places, "compare", lambda _self, _one, _other: -1)


def _patched(where: object, name: str, wrong: object) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(patch.object(where, name, wrong))
    return stack


@pytest.mark.parametrize(
    ("law", "mistake"),
    [
        (test_one_spelling_has_the_value_of_all, _turned_but_not_mirrored),
        (test_one_spelling_has_the_value_of_all, _opposites_that_leave_a_gap),
        (test_one_spelling_has_the_value_of_all, _negated_in_its_parts_only),
        (test_the_canonical_form_keeps_snapshots_and_columns, _turned_where_nothing_is_commutative),
        (test_the_canonical_form_keeps_snapshots_and_columns, _columns_in_any_order),
        (test_spellings_of_a_query_have_one_form, _inputs_as_written),
    ],
)
def test_a_law_finds_what_is_wrong(
    law: Callable[..., None], mistake: Callable[[], ExitStack]
) -> None:
    with mistake():
        fails(law)
