"""Changes for a sink leave in the order of time, from all partitions together."""

from __future__ import annotations

import pytest

import tidemill
from plans import physical
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Planning
from tidemill.physical import signed
from tidemill.physical.plan import Apply, Exchange

COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"
SESSIONS = "SELECT k FROM s [PARTITION BY k SESSION 4]"
HELD_BACK = f"SELECT k, MAX(n) AS m FROM (RSTREAM ({COUNTS})) [RANGE 2] GROUP BY k"


@pytest.mark.parametrize(
    ("text", "technique"),
    [
        (COUNTS, Technique.DIRECT),
        (SESSIONS, Technique.DIRECT),
        *((HELD_BACK, technique) for technique in Technique),
    ],
)
def test_where_time_is_held_back_partitions_wait_for_each_other(
    text: str, technique: Technique
) -> None:
    top = planned(text, technique)
    assert isinstance(top.operator, signed.Hold)
    (below,) = top.inputs
    if isinstance(below, Apply):  # a row becomes two messages behind the exchange
        assert isinstance(below.operator, signed.ToSigned)
        (below,) = below.inputs
    assert isinstance(below, Exchange)


def test_where_changes_leave_in_time_nothing_is_added() -> None:
    for technique in (Technique.PATTERN, Technique.NEGATIVE, Technique.HYBRID):
        for text in (COUNTS, SESSIONS):
            assert not isinstance(planned(text, technique).operator, signed.Hold)


def planned(text: str, technique: Technique) -> Apply:
    session = tidemill.connect()
    session.sql("CREATE STREAM s (at BIGINT, k BIGINT) SOURCE memory('s') ORDERED BY at")
    query = session.sql(text)
    assert isinstance(query, tidemill.Query)
    top = physical(query.plan, Planning(technique=technique), answer=Form.SIGNED)
    assert isinstance(top, Apply)
    return top
