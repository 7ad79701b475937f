"""Queries of every type and clause on the local engine: the answers are the reference's.

The queries are the traps on which the reference is compared with DuckDB.
"""

from __future__ import annotations

import pytest

from oracle.agreement import assert_engine_agrees
from oracle.traps import INPUTS, TRAPS
from oracle.world import DEFINITIONS


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap(name: str) -> None:
    assert_engine_agrees(TRAPS[name], INPUTS, DEFINITIONS, partitions=2, rows_per_step=2)
