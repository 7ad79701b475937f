"""Inner joins have the same snapshots in every order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, S, T, U, inputs
from laws.strategies import join, pairs, predicates
from streams import assert_same, differing
from tidemill.algebra.expr import TRUE, Column, Named
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Project
from tidemill.optimizer.logical.join_block import JoinBlock, Shape, join_block, leaves
from tidemill.physical.joining.condition_parts import ConditionParts

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.expr import Expr

INNER = st.just(JoinKind.INNER)
often = settings(max_examples=2 * settings().max_examples)


@st.composite
def blocks(draw: DrawFn) -> Plan:
    """Inner joins of inner joins, with filters and projects in between."""
    plan = draw(pairs(1))
    for _ in range(draw(st.integers(1, 3))):
        other = draw(pairs(1))
        if draw(st.integers(0, 3)) == 0:
            other = join(draw, Join, other, draw(pairs(0)), INNER)
        sides = (plan, other) if draw(st.booleans()) else (other, plan)
        plan = join(draw, Join, *sides, INNER)
        if draw(st.integers(0, 2)) == 0:
            plan = Filter(plan, draw(predicates(plan.schema)))
        if draw(st.integers(0, 3)) == 0:
            fields = draw(st.permutations(plan.schema.fields))
            plan = Project(plan, tuple(Named(f"q{f.name}", Column(f.name, f.type)) for f in fields))
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return plan


@st.composite
def shapes(draw: DrawFn, block: JoinBlock) -> Shape:
    """An order in which the inputs of a block can be joined."""
    parts: list[Shape] = list(range(len(block.inputs)))
    while len(parts) > 1:
        one = parts.pop(draw(st.integers(0, len(parts) - 1)))
        other = parts.pop(draw(st.integers(0, len(parts) - 1)))
        parts.append((one, other))
    return parts[0]


def not_shared(plan: Plan) -> bool:
    del plan
    return False


def block_of(plan: Plan) -> JoinBlock:
    block = join_block(plan, not_shared)
    assert block is not None
    return block


@often
@given(inputs(), blocks(), st.data())
def test_every_shape_of_a_block_has_the_same_snapshots(
    data: Inputs, plan: Plan, more: st.DataObject
) -> None:
    block = block_of(plan)
    shaped = block.shaped(more.draw(shapes(block)))
    assert shaped.schema == plan.schema
    assert_same(data.reference(), plan, shaped, HORIZON)


@given(blocks())
def test_a_block_in_its_written_shape_joins_the_inputs_in_their_order(plan: Plan) -> None:
    block = block_of(plan)
    assert leaves(block.written) == tuple(range(len(block.inputs)))


def test_a_join_that_is_used_twice_is_not_taken_apart() -> None:
    inner = Join(S, T, JoinKind.INNER, TRUE, ("a", "b", "c", "d"))
    outer = Join(inner, U, JoinKind.INNER, TRUE, ("a", "b", "c", "d", "e"))
    assert len(block_of(outer).inputs) == 3
    block = join_block(outer, lambda part: part is inner)
    assert block is not None
    assert block.inputs == (inner, U)


def without_classes(block: JoinBlock) -> None:
    block.parts.classes.clear()


def without_the_rest(block: JoinBlock) -> None:
    block.parts.rest.clear()


class _Forgetful(ConditionParts):
    """Forgets what must be true of one input by itself."""

    __slots__ = ()

    def entry(self, port: int) -> Expr:  # noqa: ARG002
        return TRUE


def without_entry(block: JoinBlock) -> None:
    vars(block)["parts"] = _Forgetful(block.names, block.condition)


HARMS: tuple[Callable[[JoinBlock], None], ...] = (
    without_classes,
    without_the_rest,
    without_entry,
)


@pytest.mark.parametrize("harm", HARMS)
def test_the_law_finds_what_is_wrong(harm: Callable[[JoinBlock], None]) -> None:
    def is_wrong(drawn: tuple[Inputs, Plan]) -> bool:
        data, plan = drawn
        block = block_of(plan)
        harm(block)
        return bool(differing(data.reference(), plan, block.shaped(block.written)))

    find(
        st.tuples(inputs(), blocks()),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
