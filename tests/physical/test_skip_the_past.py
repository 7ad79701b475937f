"""Windows skip the past of a query that is filled with kept rows, where nothing above sees it."""

from __future__ import annotations

import pytest

import tidemill
from tidemill.model.time import Time
from tidemill.optimizer.planned import Target
from tidemill.optimizer.planner import plan
from tidemill.physical import interval
from tidemill.physical.plan import Apply, walk_physical
from tidemill.physical.skip_the_past import skip_the_past

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
INNER = "(SELECT k, COUNT(*) AS v FROM s [RANGE 7] GROUP BY k)"


def wanted(text: str, *, replays: int | None = 100) -> dict[int | None, int | None]:
    """From when on the content of each window of a query is asked for, by its size."""
    with tidemill.connect(unbounded_state=True) as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        query = session.query(text)
    planned = plan(query.plan, Target(epoch=3, replays=replays))
    return {
        part.operator.size: part.operator.wanted
        for part in walk_physical([planned.physical])
        if isinstance(part, Apply) and isinstance(part.operator, interval.TimeWindow)
    }


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("SELECT k, SUM(v) AS x FROM s [RANGE 9 SLIDE 3] GROUP BY k HAVING SUM(v) > 1", {9: 100}),
        ("SELECT a.v FROM s [RANGE 9] a JOIN s [RANGE 5] b ON a.k = b.k", {9: 100, 5: 100}),
        ("SELECT k FROM s [RANGE 9] EXCEPT SELECT k FROM s [RANGE 5]", {9: 100, 5: 100}),
        ("SELECT DISTINCT k FROM s [RANGE 9] WHERE k NOT IN (SELECT v FROM s [RANGE 5])", None),
        ("SELECT SUM(v) AS x FROM s [RANGE UNBOUNDED]", {None: 100}),
        # What stands below another window, or below ISTREAM, is seen at other instants.
        (f"SELECT MAX(v) AS x FROM {INNER} [RANGE 11]", {7: None, 11: 100}),
        ("ISTREAM(SELECT k, SUM(v) AS x FROM s [RANGE 9] GROUP BY k)", {9: None}),
        ("SELECT MAX(v) AS x FROM (DSTREAM(SELECT k, v FROM s [RANGE 9])) [RANGE 5]", None),
        (f"SELECT COUNT(*) AS n FROM {INNER} [ROWS 3]", {7: None}),
    ],
)
def test_windows_are_asked_from_an_instant_on(
    text: str, sizes: dict[int | None, int | None] | None
) -> None:
    found = wanted(text)
    if sizes is None:
        assert found, "it has a window"
        assert found[9] == (None if "DSTREAM" in text else 100)
    else:
        assert found == sizes
    assert set(wanted(text, replays=None).values()) == {None}, "without a replay all is wanted"


def test_a_window_that_is_read_twice_is_asked_for_what_both_need() -> None:
    """The same window is below an aggregate, and below a window over that."""
    text = (
        "SELECT a.k, b.n FROM s [RANGE 7] a,"
        " (SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 7]) [RANGE 11]) b"
    )
    assert wanted(text)[11] == 100
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        made = plan(session.query(text).plan)
    before = {part.fingerprint for part in walk_physical([made.physical])}
    after, same = skip_the_past(made.physical, Time(100))
    assert same.keys() == before
    assert after.fingerprint != made.physical.fingerprint
