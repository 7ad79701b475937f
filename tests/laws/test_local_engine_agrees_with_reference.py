"""Queries of every type and clause on the local engine: the answers are the reference's.

The queries are those on which the reference is compared with DuckDB: generated ones of every
family, and the traps. Windows over rows that stay for ever are refused; that is their answer.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.agreement import assert_engine_agrees
from oracle.queries import FAMILIES, queries
from oracle.traps import INPUTS, TRAPS
from oracle.world import DEFINITIONS, inputs
from tidemill.errors import PlanError


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_a_generated_query(family: str, data: st.DataObject) -> None:
    sql = data.draw(queries(family), label="query")
    content = data.draw(inputs(), label="inputs")
    partitions = data.draw(st.integers(1, 4), label="partitions")
    rows = data.draw(st.integers(1, 5), label="rows per step")
    try:
        assert_engine_agrees(sql, content, DEFINITIONS, partitions=partitions, rows_per_step=rows)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap(name: str) -> None:
    assert_engine_agrees(TRAPS[name], INPUTS, DEFINITIONS, partitions=2, rows_per_step=2)
