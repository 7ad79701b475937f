"""Columns that are said to be the same have the same values in every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, inputs
from laws.strategies import plans
from tidemill.algebra.explain import explain
from tidemill.provenance.annotate import annotate
from tidemill.provenance.same_columns import same_columns

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan


@given(plan=plans(), content=inputs(), time=st.sampled_from(HORIZON))
def test_the_same_columns_have_the_same_values(plan: Plan, content: Inputs, time: int) -> None:
    names, same = plan.schema.names, same_columns(plan)
    for row in content.reference().snapshot(plan, time):
        values = dict(zip(names, map(repr, row), strict=True))
        assert all(values[one] == values[other] for one, other in same.items()), explain(plan)


@given(plan=plans())
def test_a_hidden_copy_of_a_column_is_kept_once(plan: Plan) -> None:
    found = annotate(plan, values=True)
    same = same_columns(found.plan)
    for leaf in found.leaves:
        if not leaf.has_ids and len(found.leaves) == 1 and leaf.plan is plan:
            assert all(same[copy] in plan.schema.names for copy in leaf.columns)
