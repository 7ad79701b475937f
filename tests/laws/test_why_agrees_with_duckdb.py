"""DuckDB, given what a row was made of alone, gives the row as often as from everything.

The queries are those in one step: what one operator makes of joins, filters and windows. They read
each stream once, so what belongs to which window is known. The oracle puts what a window holds into
DuckDB, and runs the same SELECT there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from oracle.contents import Inputs
from oracle.duckdb_oracle import Oracle
from oracle.world import DEFINITIONS, LAST, inputs
from physical.run import normal
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.model.batch import polars_schema

if TYPE_CHECKING:
    from tidemill.session import Session

QUERIES = (
    "SELECT k, SUM(i) AS n, COUNT(*) AS c FROM b [RANGE 3] GROUP BY k",
    "SELECT k, MAX(x) AS x FROM a [RANGE 4 SLIDE 2] WHERE i >= 0 GROUP BY k",
    "SELECT a.k, b.s, a.x FROM a [RANGE 4] JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT DISTINCT s FROM b [RANGE 5]",
    "SELECT b.k, COUNT(*) AS n, MAX(y) FROM c [RANGE 3], b [RANGE 3] WHERE c.k = b.k GROUP BY b.k",
    "SELECT k, s FROM b [RANGE 3] WHERE EXISTS (SELECT * FROM a [RANGE 2] WHERE a.k = b.k)",
    "SELECT k FROM a [RANGE 3] EXCEPT ALL SELECT k FROM b [RANGE 2]",
    "SELECT k FROM a [RANGE 3] INTERSECT ALL SELECT k FROM b [RANGE 2]",
    "SELECT a.k, b.s FROM a [RANGE 3] LEFT JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT b.k, r.s FROM b [RANGE 3] JOIN r ON b.k = r.k",
    "SELECT COUNT(*) AS n FROM a [PARTITION BY k ROWS 2]",
)


def session_of(content: Inputs) -> Session:
    """A session with streams that keep their past, and have come to their ends."""
    session = tidemill.connect()
    text = DEFINITIONS
    for name in "abcrp":
        text = text.replace(f"csv(path => '{name}')", f"memory('{name}')")
    session.sql(text.replace("ORDERED BY at", f"ORDERED BY at WITHIN {LAST} KEEP ALL"))
    for entry in session.catalog.objects.values():
        if isinstance(entry, StreamEntry):
            rows = [e.row for e in content.streams.get(entry.name, ())]
        elif isinstance(entry, RelationEntry):
            rows = list(content.relations.get(entry.name, ()))
        else:
            continue
        frame = pl.DataFrame(rows, schema=polars_schema(entry.schema), orient="row")
        session.put(entry.name, frame)
    return session


def only(content: Inputs, told: pl.DataFrame) -> Inputs:
    """The part of the inputs that is named."""
    ids: dict[str, set[int]] = {}
    for stream, id_ in told.select("stream", "id").iter_rows():
        ids.setdefault(stream, set()).add(id_)
    return Inputs(
        {
            name: [e for place, e in enumerate(elements) if place in ids.get(name, ())]
            for name, elements in content.streams.items()
        },
        {
            name: [row for place, row in enumerate(rows) if place in ids.get(name, ())]
            for name, rows in content.relations.items()
        },
    )


@pytest.mark.parametrize("sql", QUERIES)
@settings(max_examples=settings().max_examples // 4)
@given(content=inputs(), time=st.integers(0, LAST))
def test_what_is_named_gives_the_row(sql: str, content: Inputs, time: int) -> None:
    with session_of(content) as session:
        query = session.query(sql)
        session.run()
        why = query.why(at=time, flat=True)
        whole = Counter(map(normal, Oracle(DEFINITIONS, content, LAST).snapshot(sql, time).rows))
        told = {
            number: (normal(row.values()), copies)
            for number, row, copies in why.answers.select("answer", "row", "copies").iter_rows()
        }
        assert Counter(dict(told.values())) == whole
        for number, (row, copies) in told.items():
            part = only(content, why.frame.filter(pl.col("answer") == number))
            found = Oracle(DEFINITIONS, part, LAST).snapshot(sql, time).rows
            assert Counter(map(normal, found))[row] == copies, f"{row} at {time} of {sql}"
