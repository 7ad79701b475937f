"""Where an anti-join stands beside a join, and how results then expire."""

from __future__ import annotations

import pytest

from streams import equal, names_of_both, one_column
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Column
from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.algebra.plan import AntiJoin, Join, JoinKind, Plan, TimeWindow, Window
from tidemill.model.types import VARCHAR
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rules import PATTERN_RULES, RULES, rules_with

A, B, C = (Window(one_column(name), TimeWindow(5)) for name in "ABC")
SAME = equal(Column("l0", VARCHAR), Column("r0", VARCHAR))


def anti(left: Plan, right: Plan) -> AntiJoin:
    return AntiJoin(left, right, SAME, names_of_both(left, right))


def join(left: Plan, right: Plan) -> Join:
    return Join(left, right, JoinKind.INNER, SAME, names_of_both(left, right))


PULLED = """\
AntiJoin on l0 = r0
  AntiJoin on l0 = r0
    Join inner on x = z
      Join inner on l0 = r0
        Window range=5us
          Source A
        [1] Window range=5us
          Source C
      see [1]
    [2] Window range=5us
      Source B
  see [2]"""

WRITTEN = {"left": join(anti(A, B), C), "right": join(C, anti(A, B)), "alike": join(A, anti(A, B))}


@pytest.mark.parametrize("plan", WRITTEN.values(), ids=WRITTEN)
def test_a_join_below_an_anti_join_is_not_strict(plan: Join) -> None:
    assert update_pattern(plan) is UpdatePattern.STRICT
    pulled = optimize(plan, negation="pulled")
    assert isinstance(pulled, AntiJoin)
    assert update_pattern(pulled.left) is UpdatePattern.WEAK
    assert update_pattern(pulled) is UpdatePattern.STRICT


@pytest.mark.parametrize("plan", WRITTEN.values(), ids=WRITTEN)
def test_pushing_undoes_pulling(plan: Join) -> None:
    pulled = rewrite(plan, (PATTERN_RULES["pulled"],)).plan
    assert rewrite(pulled, (PATTERN_RULES["pushed"],)).plan == plan


def test_every_anti_join_goes_above_every_join() -> None:
    plan = Join(
        join(anti(A, B), C), anti(C, B), JoinKind.INNER, equal(*_first_and_last()), ("x", "y", "z")
    )
    assert explain(optimize(plan, negation="pulled")) == PULLED


def test_names_that_are_taken_get_numbers() -> None:
    other = join(A, C)  # its columns are called as the anti-join calls its own
    plan = Join(anti(A, B), other, JoinKind.INNER, equal(*_first_and_last()), ("x", "y", "z"))
    pulled = optimize(plan, negation="pulled")
    assert isinstance(pulled, AntiJoin)
    assert pulled.names == ("l0", "l0_1", "r0_1", "r0")
    assert pulled.schema.names == ("x", "y", "z")


def test_nothing_is_moved_unless_it_is_asked_for() -> None:
    assert rules_with("written") == RULES
    for plan in WRITTEN.values():
        assert optimize(plan) == plan
        assert optimize(anti(join(A, C), B)) == anti(join(A, C), B)


def _first_and_last() -> tuple[Column, Column]:
    return Column("x", VARCHAR), Column("z", VARCHAR)
