"""EXPLAIN PHYSICAL says of every edge how its rows expire, which form they have, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from tidemill.algebra.patterns import update_pattern
from tidemill.algebra.tree import share
from tidemill.optimizer.explain_physical import explain_physical
from tidemill.optimizer.planning import Joins, Planning
from tidemill.optimizer.techniques import Technique

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
    made = Planning(optimized=False, technique=technique, joins=joins).annotated(shared)
    for line in explain_physical(made).splitlines():
        text = line.strip()
        if "Exchange " not in text and not text.startswith("see ["):
            assert LABEL.search(text), text
    assert made.patterns[made.plan.fingerprint] is update_pattern(shared)
