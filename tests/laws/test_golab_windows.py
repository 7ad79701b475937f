"""Internal windows, output windows and non-retroactive relations (G-16 to G-18).

What they mean is counted from the snapshots of the query with plain windows, or from the elements.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import tidemill
from local import run_locally
from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.algebra.snapshot import Bag, Element, Reference, value_order
from tidemill.catalog.entries import RelationEntry
from tidemill.optimizer.logical.rewrite import optimize

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

LAST = 8
HORIZON = range(LAST + 8)

SESSION = tidemill.connect()
SESSION.sql("""
    CREATE STREAM A (k VARCHAR, v BIGINT, at BIGINT) SOURCE memory('A') ORDERED BY at;
    CREATE STREAM B (k VARCHAR, w BIGINT, at BIGINT) SOURCE memory('B') ORDERED BY at;
    CREATE RELATION R (k VARCHAR, n BIGINT, since BIGINT, until BIGINT)
      SOURCE memory('R') VALID FROM since TO until NON RETROACTIVE;
""")
ENTRIES = {
    entry.name: entry
    for entry in SESSION.catalog.objects.values()
    if isinstance(entry, RelationEntry)
}

WINDOWS = ("RANGE 1", "RANGE 3", "RANGE 4 SLIDE 2", "RANGE 3 SLIDE 2", "ROWS 1", "ROWS 3")
QUERIES = (
    "SELECT k, v FROM A [{0}]",
    "SELECT k FROM A [{0}] WHERE v > 0",
    "SELECT v FROM A [{0}] WHERE k IN (SELECT k FROM B [RANGE 2])",
    "SELECT A.k, v, w FROM A [{0}], B [{0}] WHERE A.k = B.k",
    "SELECT k, SUM(v) AS s FROM A [{0}] GROUP BY k",
    "SELECT COUNT(*) AS n FROM A [{0}], B WHERE A.k = B.k",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Contents of the streams A and B, and of the relation R."""

    streams: dict[str, list[Element]]
    rows: list[tuple[str, int, int | None, int | None]]

    def snapshots(self, plan: Plan) -> list[Bag]:
        """The answer at every instant, by definition."""
        reference = Reference(self.streams, {"R": self.rows})
        return [reference.snapshot(plan, time) for time in HORIZON]

    def computed(self, plan: Plan) -> list[Bag]:
        """The same from the local engine."""
        answer = run_locally(optimize(plan), self.streams, {"R": self.rows}, ENTRIES)
        return [Counter(answer.snapshot(time).rows()) for time in HORIZON]


TIMES = st.integers(0, LAST)
KEYS = st.sampled_from("xy")
NUMBERS = st.integers(0, 2)


@st.composite
def inputs(draw: st.DrawFn) -> Inputs:
    streams = {
        name: [
            Element(time, i, (key, number, time))
            for i, (time, key, number) in enumerate(
                draw(st.lists(st.tuples(TIMES, KEYS, NUMBERS), max_size=7))
            )
        ]
        for name in ("A", "B")
    }
    ends = st.none() | TIMES
    rows = draw(st.lists(st.tuples(KEYS, NUMBERS, ends, ends), max_size=4))
    return Inputs(streams, rows)


@cache
def plan(text: str) -> Plan:
    query = SESSION.sql(text)
    assert isinstance(query, tidemill.Query)
    return query.plan


def inserted(snapshots: list[Bag]) -> list[Bag]:
    return [now - before for before, now in zip([Counter(), *snapshots], snapshots, strict=False)]


@given(inputs(), st.sampled_from(QUERIES), st.sampled_from(WINDOWS))
def test_an_internal_answer_is_all_that_was_ever_inserted(
    data: Inputs, query: str, window: str
) -> None:
    internal = plan(query.format(f"{window} INTERNAL"))
    assert update_pattern(internal) is UpdatePattern.MONOTONIC
    kept: Bag = Counter()
    expected = []
    for new in inserted(data.snapshots(plan(query.format(window)))):
        kept = kept + new
        expected.append(kept)
    assert data.snapshots(internal) == expected
    assert data.computed(internal) == expected


@given(inputs(), st.sampled_from(QUERIES), st.sampled_from(WINDOWS), st.integers(1, 4))
def test_an_output_window_has_the_last_insertions(
    data: Inputs, query: str, window: str, size: int
) -> None:
    external = query.format(window)
    stream = [
        (time, row)
        for time, new in enumerate(inserted(data.snapshots(plan(external))))
        for row in sorted(new.elements(), key=value_order)
    ]
    seen = [[pair for pair in stream if pair[0] <= t] for t in HORIZON]
    last_rows = [Counter(row for _, row in pairs[-size:]) for pairs in seen]
    last_instants = [
        Counter(row for time, row in pairs if time > t - size)
        for t, pairs in zip(HORIZON, seen, strict=True)
    ]
    by_rows = plan(f"WSTREAM[ROWS {size}]({external})")
    assert data.snapshots(by_rows) == last_rows
    assert data.computed(by_rows) == last_rows
    assert data.snapshots(plan(f"WSTREAM[RANGE {size}]({external})")) == last_instants
    # Input windows may as well be internal.
    internal = query.format(f"{window} INTERNAL")
    assert data.snapshots(plan(f"WSTREAM[ROWS {size}]({internal})")) == last_rows


@given(inputs(), st.integers(1, 4), st.sampled_from(("JOIN", "LEFT JOIN")))
def test_a_result_has_the_relation_of_the_time_of_its_row(
    data: Inputs, size: int, join: str
) -> None:
    joined = plan(f"SELECT A.v, R.n FROM A [RANGE {size}] {join} R ON A.k = R.k")
    assert update_pattern(joined) is UpdatePattern.WEAKEST
    expected: list[Bag] = [Counter() for _ in HORIZON]
    for element in data.streams["A"]:
        time, (key, value, _) = element.time, element.row
        found: list[int | None] = [
            number
            for other, number, since, until in data.rows
            if other == key and (since is None or since <= time) and (until is None or time < until)
        ]
        if join == "LEFT JOIN" and not found:
            found = [None]
        for number in found:
            for t in range(time, time + size):
                expected[t][value, number] += 1
    assert data.snapshots(joined) == expected
    assert data.computed(joined) == expected
