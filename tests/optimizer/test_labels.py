"""EXPLAIN PHYSICAL says of every edge how its rows expire, which form they have, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import S
from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from tidemill.algebra.patterns import update_pattern
from tidemill.algebra.plan import SessionWindow, Window
from tidemill.algebra.tree import share
from tidemill.model.batch import Form
from tidemill.optimizer.explain.physical import explain_physical
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan as planned
from tidemill.optimizer.planning import Joins, Planning

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

LABEL = re.compile(r"  (monotonic|weakest|weak|strict): [a-z ]+(  remembers .*)?$")


@pytest.mark.parametrize("technique", Technique)
@given(
    plan=plans() | st.sampled_from(SHAPES).flatmap(strict_plans),
    multiway=st.booleans(),
)
def test_every_edge_has_a_label_and_a_reason(
    technique: Technique, plan: Plan, *, multiway: bool
) -> None:
    joins = Joins.MULTIWAY if multiway else Joins.BINARY
    shared = share(plan)
    planning = Planning(optimized=False, technique=technique, joins=joins)
    made = planned(shared, context=Context(planning))
    for line in explain_physical(made.physical, made.labels).splitlines():
        text = line.strip()
        if "Exchange " not in text and not text.startswith("see ["):
            assert LABEL.search(text), text
    assert made.labels.patterns[made.physical.fingerprint] is update_pattern(shared)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (Form.SIGNED, "signed.SessionWindow(gap=2)  strict: ends depend on input still to come"),
        (Form.INTERVAL, "interval.SessionWindow(gap=2)  strict: its reader takes intervals"),
    ],
)
def test_sessions_come_in_the_form_of_their_reader(answer: Form, label: str) -> None:
    made = planned(Window(S, SessionWindow(2)), Target(answer=answer))
    assert explain_physical(made.physical, made.labels).startswith(f"{label}  remembers ")
