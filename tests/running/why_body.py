"""What a pipeline is asked by WHY, on whatever engine: contributors are those of the reference.

There are three streams, a relation, a query, a table and derived streams. They are asked about
before the pipeline runs, while rows come, when more have come, when a query was changed, when it
has stopped, before and after it goes on; by the session, by a read-only one and by another process.
What was said of an instant is said of it for ever, with the same ids.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from running import why_once
from running.asking_body import elsewhere, refused
from tidemill.algebra.lineage import Lineage, leaves
from tidemill.algebra.snapshot import Element
from tidemill.binder.why import bind_why
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import Why as WhyStatement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.algebra.snapshot import Row

__all__ = ["STEP", "Pipeline", "bid_id", "explained_throughout"]

STEP = 20
"""So many instants have their rows in one file of each stream."""

KINDS = pl.DataFrame({"of": [0, 1], "kind": ["old", "new"]})
COLUMNS: dict[str, dict[str, type[pl.DataType]]] = {
    "bid": {"at": pl.Int64, "auction": pl.Int64, "price": pl.Int64},
    "auction": {"at": pl.Int64, "id": pl.Int64, "seller": pl.Int64},
    "person": {"at": pl.Int64, "id": pl.Int64, "name": pl.String},
}
LATE, MALFORMED = (7, 1, 9), (39, 2, 2**40)
"""Rows of the second file of bids that are not taken."""

TARGETS = (
    "hot",
    "best",
    "counts",
    (
        "(SELECT p.id, name, a.id AS auction FROM person [RANGE 9] p"
        " LEFT JOIN auction [RANGE 9] a ON p.id = seller)"
    ),
    "(SELECT id % 3 AS auction FROM auction [RANGE 15] EXCEPT SELECT auction FROM bid [RANGE 2])",
    (
        "(SELECT auction, MAX(n) AS n, COUNT(*) AS times FROM"
        " (SELECT auction, price, COUNT(*) AS n FROM bid [RANGE 12] GROUP BY auction, price) c"
        " GROUP BY auction)"
    ),
    (
        "(SELECT COUNT(*) AS news FROM ISTREAM("
        "SELECT auction, MAX(price) AS price FROM bid [RANGE 5] GROUP BY auction) [RANGE 8])"
    ),
    "(SELECT kind, price FROM bid [RANGE 3], kinds WHERE auction = of)",
    "(SELECT DISTINCT auction FROM bid [RANGE 4] UNION ALL SELECT id FROM auction [RANGE 4])",
    "(SELECT auction, price FROM bid [ROWS 4] WHERE price > 2)",
    "(SELECT n FROM dear WHERE auction IN (SELECT seller % 3 FROM auction [RANGE 9]))",
)

AGAIN = ("hot", "best", "EXCEPT", "kinds")
"""What is asked about again and again has one of these words."""


def bid_id(time: int) -> int:
    """The id of the bid of an instant: the number of its file, and its place there."""
    return (time // STEP << 25) + time % STEP


def rows_of(stream: str, first: int) -> list[tuple[int, ...] | tuple[int, int, str]]:
    """The rows of a file that are taken."""
    times = range(first, first + STEP)
    if stream == "bid":
        return [(t, t % 3, t * 7 % 10) for t in times]
    if stream == "auction":
        return [(t, t // 4, t // 8) for t in times if not t % 4]
    return [(t, t // 5, f"p{t // 5}") for t in times if not t % 5]


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with three streams.

    Attributes:
        connect: Makes a session on its checkpoint.
        root: Where everything is; the checkpoint is ``state`` below it.
        said: What was said of each statement.
    """

    connect: Callable[[], tidemill.Session]
    root: Path
    said: dict[str, pl.DataFrame] = field(default_factory=dict)

    def write(self, first: int, *more: Row) -> None:
        """A file of each stream with the rows of some instants, and bids behind them."""
        for stream in ("person", "auction", "bid"):
            rows = [*rows_of(stream, first), *(more if stream == "bid" else ())]
            directory = self.root / stream
            directory.mkdir(exist_ok=True)
            unfinished = directory / ".unfinished"
            frame = pl.DataFrame(rows, schema=COLUMNS[stream], orient="row")
            frame.write_parquet(unfinished)
            os.utime(unfinished, (1_000_000 + first, 1_000_000 + first))
            unfinished.rename(directory / f"{first:06d}.parquet")

    def begun(self) -> tidemill.Session:
        """The first session, before it is started."""
        session = self.again()
        for stream, columns, more in (
            ("bid", "(at BIGINT, auction BIGINT, price INTEGER)", "KEEP ALL"),
            ("auction", "(at BIGINT, id BIGINT, seller BIGINT)", "KEEP ALL BY REFERENCE"),
            ("person", "(at BIGINT, id BIGINT, name VARCHAR)", "KEEP 1000"),
        ):
            source = f"parquet('{self.root / stream}', files_per_batch => 1)"
            refused = "LATE QUARANTINE MALFORMED QUARANTINE" if stream == "bid" else ""
            session.sql(
                f"CREATE STREAM {stream} {columns} SOURCE {source} ORDERED BY at {refused} {more}"
            )
        session.sql(f"""
            CREATE STREAM lost (at BIGINT) SOURCE parquet('{self.root / "bid"}') ORDERED BY at;
            CREATE RELATION kinds (of BIGINT, kind VARCHAR) SOURCE memory('kinds');
            CREATE STREAM counts AS
              SELECT auction, COUNT(*) AS n FROM bid [RANGE 5] GROUP BY auction;
            CREATE STREAM dear AS
              SELECT auction, n FROM counts WHERE n > 1;
            CREATE QUERY hot AS
              SELECT auction, n FROM counts WHERE n = (SELECT MAX(n) FROM counts);
            CREATE QUERY gone AS SELECT price FROM bid [RANGE 2];
            CREATE QUERY named AS
              SELECT id, kind FROM person [RANGE 9], kinds WHERE id = of;
            CREATE TABLE best KEEP 10 AS
              SELECT auction, MAX(price) AS top FROM bid [RANGE 5] GROUP BY auction
        """)
        return session

    def again(self) -> tidemill.Session:
        """A session, before it is started."""
        session = self.connect()
        session.put("kinds", KINDS)
        return session

    def looking(self) -> tidemill.Session:
        """A session that reads only."""
        return tidemill.connect(checkpoint=self.root / "state", read_only=True)

    def require(self, at: int, *sessions: tidemill.Session) -> None:
        """What sessions say of an instant is what the reference says."""
        for target in TARGETS:
            text = f"WHY ALL {target} AT {at}"
            for session in sessions:
                found = session.why(text)
                if text not in self.said:
                    _compare(found, _by_definition(session, text), text)
                assert found.frame.equals(self.said.setdefault(text, found.frame)), text

    def remember(self, *sessions: tidemill.Session) -> None:
        """What was said before is said again."""
        for session in sessions:
            for text in self._some():
                assert session.why(text).frame.equals(self.said[text]), text

    def require_apart(self) -> None:
        """Another process is told what this one is told."""
        texts = self._some()[:2]
        told = json.loads(elsewhere(why_once, str(self.root / "state"), json.dumps(texts)).stdout)
        with self.looking() as look:
            assert told == [json.loads(look.why(text).json()) for text in texts]

    def _some(self) -> list[str]:
        return [text for text in self.said if any(one in text for one in AGAIN)]


def _compare(found: tidemill.Why, wanted: dict[Row, set[tuple[str, int]]], text: str) -> None:
    rows = {number: tuple(row.values()) for number, row, *_ in found.answers.rows()}
    told: dict[Row, set[tuple[str, int]]] = {row: set() for row in rows.values()}
    for answer, stream, number in found.frame.select("answer", "stream", "id").rows():
        told[rows[answer]].add((stream, number))
    assert told == wanted, text
    assert wanted, f"{text} is about rows"


def _by_definition(session: tidemill.Session, text: str) -> dict[Row, set[tuple[str, int]]]:
    """For each row of the answer, all streams and ids that it is made of, by the reference."""
    statement = parse_one(text)
    assert isinstance(statement, WhyStatement)
    assert statement.at is not None
    plan = bind_why(statement, session.catalog, []).plan
    judge = Lineage(_elements(), {"kinds": list(KINDS.rows())})
    names = [leaf.name for leaf in leaves(plan)]
    wanted: dict[Row, set[tuple[str, int]]] = {}
    for row, origins in judge.rows(plan, statement.at.microseconds):
        wanted.setdefault(row, set()).update((names[leaf], number) for leaf, number in origins)
    return wanted


def _elements() -> dict[str, list[Element]]:
    return {
        stream: [
            Element(row[0], (place << 25) + number, row)
            for place, first in enumerate(range(0, 4 * STEP, STEP))
            for number, row in enumerate(rows_of(stream, first))
        ]
        for stream in COLUMNS
    }


def explained_throughout(pipeline: Pipeline) -> None:
    """Ask before, while and after more rows come, and when another session goes on."""
    pipeline.write(0)
    with pipeline.begun() as session:
        refused(lambda: session.why("WHY hot"), "nothing is known yet")
        session.start()
        session.await_idle()
        pipeline.require(14, session, pipeline.looking())
        _steps(session)
        pipeline.write(20, LATE, MALFORMED)
        text = f"WHY ALL {TARGETS[3]} AT 34"
        found = pipeline.looking().why(text, wait=60)
        _compare(found, _by_definition(session, text), "while rows come")
        session.await_idle()
        pipeline.require(34, session)
        pipeline.remember(session, pipeline.looking())
        _what_was_not_taken(session)
        _errors(session, pipeline.looking())
        pipeline.require_apart()
        _changed(pipeline, session)
    pipeline.remember(session)
    with pipeline.again() as session:
        pipeline.remember(session)
        session.start()
        pipeline.write(60)
        session.await_idle()
        pipeline.remember(session, pipeline.looking())
        found = session.why("WHY ALL best AT 74")
        assert found.rows("bid")["id"].to_list() == [bid_id(t) for t in range(70, 75)]


def _steps(session: tidemill.Session) -> None:
    """Step by step, and down to a derived stream, in literals."""
    found = session.why("WHY hot WHERE auction = 2 AT 14")
    assert found.tree().splitlines()[0] == "auction=2, n=2"
    assert found.tree().splitlines()[1:6] == [
        "├─ SemiJoin on n = max(n)",
        "│  └─ a row  auction=2, count(*)=2",
        "│     └─ Aggregate count(*) by auction · Window range=5us",
        "│        ├─ bid 11  auction=2, at=11, price=7  from 11 to 16",
        "│        └─ bid 14  auction=2, at=14, price=8  from 14 to 19",
    ]
    found = session.find("hot").why({"auction": 2}, 14, down_to="counts")
    told = found.frame.select("stream", "id", "operator").unique()
    assert set(told.rows()) == {("counts", None, None), (None, None, "Aggregate max(n)")}
    assert set(found.rows("counts").rows()) == {(0, 1, None), (1, 2, None), (2, 2, None)}
    came = session.find("hot").why_change({"auction": 1}, 13)
    assert came.answers["change"].to_list() == ["came"]
    assert came.rows("bid")["id"].to_list() == [13], "the largest count stays what it was"


def _what_was_not_taken(session: tidemill.Session) -> None:
    """Rows that came late or are malformed are behind nothing, and WHY NOT names them."""
    taken = session.why("WHY ALL (SELECT COUNT(*) AS n FROM bid [RANGE UNBOUNDED]) AT 38")
    assert taken.rows("bid")["id"].to_list() == [bid_id(t) for t in range(39)]
    late = session.why("WHY NOT counts WHERE auction = 1 AND n > 2 AT 8").frame
    told = late.filter(pl.col("id").is_null())
    assert told.select(pl.col("row").struct.field("at"), "reason").rows() == [
        (7, "it was not taken: late")
    ]
    malformed = session.why("WHY NOT counts WHERE auction = 2 AND n > 2 AT 38").frame
    told = malformed.filter(pl.col("id").is_null())
    assert told.select(pl.col("row").struct.field("at"), "reason").rows() == [
        (39, "it was not taken: malformed")
    ]


def _errors(session: tidemill.Session, look: tidemill.Session) -> None:
    for one in (session, look):
        refused(lambda: one.why("WHY hot AT 39"), "known up to 39")  # noqa: B023
        refused(lambda: one.why("WHY (SELECT at FROM lost [RANGE 5]) AT 3"), "keep")  # noqa: B023
        refused(lambda: one.why("WHY NOT counts WHERE auction = 1 AT 8"), "a row meets")  # noqa: B023


def _changed(pipeline: Pipeline, session: tidemill.Session) -> None:
    """Each version answers its own instants, and its rows have what it made them of."""
    before = session.why("WHY ALL hot AT 34").frame
    session.sql("STOP QUERY gone")
    session.sql("ALTER QUERY hot AS SELECT auction, n FROM counts WHERE n < 2 USING EXACT")
    pipeline.write(40)
    session.await_idle()
    for one in (session, pipeline.looking()):
        assert one.why("WHY ALL hot AT 34").frame.equals(before)
        found = one.why("WHY ALL hot AT 58")
        assert [row["auction"] for row in found.answers["row"]] == [2]
        assert found.rows("bid")["id"].to_list() == [bid_id(56)]
        refused(lambda: one.why("WHY gone AT 54"), "it was stopped")  # noqa: B023
