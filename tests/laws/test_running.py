"""Whatever comes and goes beside a query that stays, its answer is that of an undisturbed run.

Drawn are the queries, how the rows are cut into files, and after which of them which other queries
are created and dropped, on the local engine while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from running.shop import DIFFERENT, LAST, NAMED, PAIRS, TOTAL, define, expected, known, write

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

ROWS = 40
TEXTS = (
    TOTAL,
    PAIRS,
    NAMED,
    LAST,
    DIFFERENT,
    TOTAL.replace("RANGE 30", "RANGE 9 SLIDE 3"),
    TOTAL.replace("RANGE 30", "RANGE 8").replace("GROUP BY", "WHERE v > 3 GROUP BY"),
    "ISTREAM(SELECT k, v FROM s [RANGE 6] WHERE v > 2)",
    "SELECT a.k, a.total FROM (SELECT k, SUM(v) AS total FROM s [RANGE 7] GROUP BY k) a",
)


@dataclass(frozen=True)
class Life:
    """What happens to the queries beside those that stay: after which file, and which texts."""

    stay: tuple[str, ...]
    cuts: tuple[int, ...]
    changes: tuple[tuple[int, tuple[str, ...]], ...]


@st.composite
def lives(draw: DrawFn) -> Life:
    texts = st.sampled_from(TEXTS)
    cuts = sorted(draw(st.sets(st.integers(1, ROWS - 1), max_size=5)))
    stay = draw(st.lists(texts, min_size=1, max_size=3))
    others = st.lists(texts, max_size=3).map(tuple)
    changes = draw(st.lists(st.tuples(st.integers(0, len(cuts)), others), max_size=4))
    return Life(tuple(stay), (0, *cuts, ROWS), tuple(changes))


@settings(max_examples=max(settings().max_examples // 4, 5), deadline=None)
@given(life=lives(), partitions=st.sampled_from([1, 2]))
def test_other_queries_that_come_and_go_do_not_alter_an_answer(life: Life, partitions: int) -> None:
    with TemporaryDirectory() as folder, tidemill.connect(partitions=partitions) as session:
        source = Path(folder) / "in"
        source.mkdir()
        define(session, source)
        stay = [session.query(text) for text in life.stay]
        session.start()
        there: list[tidemill.Query] = []
        for number, (first, past) in enumerate(zip(life.cuts, life.cuts[1:], strict=False)):
            write(source, first, past)
            if number % 2:
                session.await_idle()  # or the change comes while the file is being read
            for at, texts in life.changes:
                if at == number:
                    for query in there:
                        session.sql(f"DROP QUERY {query.name}")
                    there = [session.query(text) for text in texts]
        session.await_idle()
        for query, text in zip(stay, life.stay, strict=True):
            whole = expected(source, text).filter(pl.col("time") < ROWS - 1)
            assert known(query, ROWS - 1).equals(whole), text
