"""What is kept with queries, on either engine: it says what streams would say that keep all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

import tidemill
from running.shop import NAMED, PAIRS, TOTAL, define, write
from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

CHAIN = "SELECT SUM(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 12 SLIDE 4] GROUP BY k)"
NEW = "ISTREAM(SELECT DISTINCT k, v FROM s [RANGE 5])"
ASKED = {"total": TOTAL, "named": NAMED, "chain": CHAIN}
MORE = {**ASKED, "pair": PAIRS, "new": NEW}
MADE = ("start", "end")
"""Where a row that was made of several begins and ends, lazily nobody looks."""


def create(session: tidemill.Session, root: Path, texts: Mapping[str, str]) -> None:
    """The queries, with what their rows are made of, over a stream that keeps nothing."""
    define(session, root / "in")
    for name, text in texts.items():
        session.sql(f"CREATE QUERY {name} WITH PROVENANCE KEEP ALL AS {text}")


class Judge:
    """The same queries over a stream that keeps all, run by themselves."""

    def __init__(self, root: Path, texts: Mapping[str, str] = MORE) -> None:
        self.texts = texts
        self.session = tidemill.connect()
        define(self.session, root / "in", keep="KEEP ALL")
        for name, text in texts.items():
            self.session.sql(f"CREATE QUERY {name} AS {text}")
        self.session.run()

    def require(
        self, session: tidemill.Session, times: Iterable[int], names: Iterable[str] = ()
    ) -> None:
        """Refuse another explanation at an instant, step by step or of streams alone."""
        for name in names or self.texts:
            for time in times:
                for why in ("WHY", "WHY ALL"):
                    asked = f"{why} {name} AT {time}"
                    mine, same = session.why(asked), self.session.why(asked)
                    assert lines(mine.frame).equals(lines(same.frame)), (
                        f"{asked}\n{mine.frame}\n{same.frame}"
                    )
                    assert mine.answers.drop(MADE).equals(same.answers.drop(MADE)), asked
                    assert set(mine.streams) == set(same.streams)
                assert is_recorded(session, asked), asked
                assert not is_recorded(self.session, asked)


def lines(frame: pl.DataFrame) -> pl.DataFrame:
    """The lines, without the times of rows that were made of several."""
    if "operator" not in frame.columns:
        return frame
    is_made = pl.col("operator").is_not_null()
    return frame.with_columns(pl.when(~is_made).then(pl.col(name)).alias(name) for name in MADE)


def is_recorded(session: tidemill.Session, asked: str) -> bool:
    """Whether it is answered from what is kept with the query."""
    told = session.sql(f"EXPLAIN {asked}")
    assert isinstance(told, str)
    return "nothing is computed again" in told


def refused(session: tidemill.Session, asked: str) -> str:
    """What is said if it cannot be answered."""
    try:
        session.why(asked)
    except RunError as error:
        return error.message
    raise AssertionError(asked)


def they_are_kept(
    root: Path, connect: Callable[[], tidemill.Session], texts: Mapping[str, str] = ASKED
) -> None:
    """Queries explain their rows while they run, by others, after a restart and a change."""
    write(root / "in", 0, 30)
    with connect() as session:
        create(session, root, texts)
        session.start()
        session.await_idle()
        write(root / "in", 30, 45)
        session.await_idle()
        judge = Judge(root, texts)
        judge.require(session, (2, 43))
        assert "known up to 44" in refused(session, "WHY total AT 44")
        shown = session.sql("SHOW TABLES")
        assert isinstance(shown, pl.DataFrame)
        assert shown.is_empty()
        assert {one.name for one in session.progress().queries} == set(texts)
    with connect() as reader:
        judge.require(reader, (17,))  # nothing runs, and nobody else has kept a row
    with connect() as session:
        session.start()
        _change(session, root, texts)
        session.sql("DROP QUERY total")
        assert not list((root / "state" / "provenance").glob("total*"))
        session.sql("ALTER QUERY named WITH PROVENANCE KEEP 20")
        write(root / "in", 75, 110)
        session.await_idle()
        judge = Judge(root, texts)
        judge.require(session, (105, 108), ("named", *(texts.keys() - ASKED.keys())))
        assert "is kept from" in refused(session, "WHY named AT 85")


def _change(session: tidemill.Session, root: Path, texts: Mapping[str, str]) -> None:
    """One query becomes another, one keeps no more, one stops."""
    shorter = TOTAL.replace("RANGE 30", "RANGE 6")
    session.sql(f"ALTER QUERY total AS {shorter}")
    session.sql("ALTER QUERY named WITHOUT PROVENANCE; STOP QUERY chain")
    write(root / "in", 45, 75)
    session.await_idle()
    judge = Judge(root, {**texts, "short": shorter})
    judge.require(session, (17, 43), ASKED)
    found, same = session.why("WHY ALL total AT 70"), judge.session.why("WHY ALL short AT 70")
    assert found.frame.equals(same.frame), "the new version keeps it as well"
    assert "is not kept; it is kept from the beginning on, up to" in refused(
        session, "WHY named AT 70"
    )
