"""The check of plans raises no false alarm: whatever a query asks, its plan passes."""

from __future__ import annotations

from copy import copy
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from oracle.queries import FAMILIES, queries
from oracle.world import DEFINITIONS
from tidemill.model.batch import Form
from tidemill.optimizer.logical.rules import Negation
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Joins, Planning

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

PLANNINGS = st.builds(
    Planning,
    st.booleans(),
    st.sampled_from([None, 0, 3]),
    st.sampled_from(Technique),
    st.sampled_from(Joins),
    st.sampled_from(get_args(Negation)),
    st.sampled_from([0, 3]),
)
TARGETS = st.builds(
    Target,
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, *Form]),
    st.booleans(),
    st.sampled_from([0, 2]),
)

KEYED_BY_EXPRESSIONS = [
    "SELECT k FROM a [RANGE 3] t WHERE UPPER(s) IN (SELECT s FROM b [RANGE 5] u WHERE t.k < u.k)",
    "SELECT k FROM a [RANGE 3] t WHERE UPPER(s) NOT IN (SELECT s FROM b [RANGE 5] u WHERE k < t.k)",
    "SELECT k FROM a [RANGE 3] t WHERE i + 1 IN (SELECT i FROM b [RANGE 5] u WHERE t.k < u.k)",
]
LEVELS = (
    "SELECT t.i, COUNT(*) AS n FROM b [RANGE 4] t"
    " LEFT JOIN a [PARTITION BY m ROWS 2] u ON t.k = u.k AND t.i < u.i GROUP BY t.i"
)


@cache
def world() -> tidemill.Session:
    session = tidemill.connect(unbounded_state=True)
    session.sql(DEFINITIONS)
    return session


def bound(sql: str) -> Plan:
    return copy(world()).query(sql).plan


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), planning=PLANNINGS, target=TARGETS)
def test_every_query_has_a_plan_that_passes(
    data: st.DataObject, family: str, planning: Planning, target: Target
) -> None:
    plan(bound(data.draw(queries(family))), target, Context(planning))


@pytest.mark.parametrize("sql", KEYED_BY_EXPRESSIONS)
def test_rows_that_are_numbered_stay_where_they_are(sql: str) -> None:
    for technique, partitions in product(Technique, [None, 1, 2]):
        plan(bound(sql), Target(partitions), Context(Planning(technique=technique)))


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_rows_that_are_folded_are_numbered_in_the_last_stage(stages: int) -> None:
    for technique in Technique:
        plan(bound(LEVELS), Target(2, stages), Context(Planning(technique=technique)))
