"""Queries that are changed, paused and stopped at random, in sessions that are stopped at random.

A dozen queries write to files. Rows come in files of any length; between two of them queries are
changed, paused, resumed, stopped and started, and the session may be stopped, or dropped as a crash
drops it, and another one goes on with the checkpoint, without a script. Queries are created late:
while others run, and between two sessions, by one that starts or by one that is killed before it
does. At the end what is in the files is compared, at every instant, with what the parts of each
query say: for each part that is what its version answers in a bounded run that nothing has
disturbed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from running.shop import Bag, bags, define, write
from running.test_verdicts import drawn
from tidemill.lang.statements import Change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

__all__ = ["Story"]

LAST, COMPARED = 200, 140
END = 2**63 - 1

MOVES = {
    "running": (*(f"ALTER QUERY {{}} AS {{}} USING {u.value}" for u in Change), "PAUSE QUERY {}"),
    "changing": ("PAUSE QUERY {}", "STOP QUERY {}"),
    "preparing": ("STOP QUERY {}",),
    "draining": ("START QUERY {} COLD",),
    "paused": ("RESUME QUERY {}", "RESUME QUERY {}", "RESUME QUERY {} COLD", "STOP QUERY {}"),
    "stopped": ("START QUERY {} COLD", "START QUERY {} WITH HISTORY"),
}
"""What may be asked of a query in each state, but for what begins with windows that fill."""


@dataclass
class Story:
    """What becomes of some queries.

    Attributes:
        root: Where everything is.
        connect: Makes a session on the checkpoint.
        random: What is drawn.
        queries: How many queries there are.
        changes: How likely something is asked of a query between two files.
        restarts: How likely the session ends between two files.
        keep: What the stream keeps of its past.
        asked: What was asked, one after another.
    """

    root: Path
    connect: Callable[[], tidemill.Session]
    random: Random
    queries: int
    changes: float = 0.3
    restarts: float = 0.4
    keep: str = ""
    asked: list[str] = field(default_factory=list)

    @property
    def _source(self) -> Path:
        return self.root / "in"

    def tell(self) -> None:
        """Let it all happen, and compare."""
        session, first = self._begun(), 0
        while first < LAST:
            past = min(first + self.random.randint(3, 30), LAST)
            write(self._source, first, past)
            session.await_idle()
            first = past
            for number in range(self.queries):
                if first < COMPARED and self.random.random() < self.changes:
                    self._ask(session, number)
            if self.random.random() < self.restarts:
                session = self._restarted(session)
            if self.keep and first < COMPARED and self.random.random() < self.changes:
                self._create_late(session)
            if past == LAST:
                self._resume_all(session)
        session.await_idle()
        parts = [session.versions(f"q{number}") for number in range(self.queries)]
        session.stop()
        self._compare(parts)

    def _begun(self) -> tidemill.Session:
        self._source.mkdir(parents=True)
        session = self.connect()
        define(session, self._source, keep=self.keep)
        for number in range(self.queries):
            self._create(session, number)
        session.start()
        return session

    def _create(self, session: tidemill.Session, number: int, start: str = "") -> None:
        form = self.random.choice(["results", "changes"])
        into = f"INTO parquet('{self.root / f'q{number}'}', form => '{form}')"
        session.sql(f"CREATE QUERY q{number} {into} {start} AS {drawn(self.random)}")

    def _create_late(self, session: tidemill.Session) -> None:
        """Create one more query, whose windows are full at once."""
        try:
            self._create(session, self.queries, "START WITH HISTORY")
        except tidemill.RunError as error:
            self.asked.append(f"refused: {error.message}")
        else:
            self.asked.append(f"create q{self.queries}")
            self.queries += 1

    def _restarted(self, session: tidemill.Session) -> tidemill.Session:
        session.stop()
        self.asked.append("restart")
        again = self._connected()
        if self.keep and self.random.random() < self.changes:
            self._create_late(again)
            if self.random.random() < self.restarts:
                again = self._connected()
        again.start()
        return again

    def _connected(self) -> tidemill.Session:
        session = self.connect()
        session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
        return session

    def _resume_all(self, session: tidemill.Session) -> None:
        """Let go of what is kept back, so that nothing waits for it."""
        for number in range(self.queries):
            if _state(session, number) == "paused":
                session.sql(f"RESUME QUERY q{number}")

    def _ask(self, session: tidemill.Session, number: int) -> None:
        """Ask something of a query that it can do."""
        state = _state(session, number)
        text = self.random.choice(MOVES[state]).format(f"q{number}", drawn(self.random))
        self.asked.append(text)
        try:
            session.sql(text)
        except tidemill.RunError as error:
            self.asked.append(f"refused: {error.message}")

    def _compare(self, parts: list[pl.DataFrame]) -> None:
        texts = {text: None for frame in parts for text in frame["text"]}
        with tidemill.connect() as session:
            define(session, self._source)
            asked = [text[text.index("SELECT") :] for text in texts]
            queries = [session.query(f"CREATE QUERY u{n} AS {t}") for n, t in enumerate(asked)]
            session.run()
            right = {t: bags(q.changes(), COMPARED) for t, q in zip(texts, queries, strict=True)}
        for number, frame in enumerate(parts):
            found = self._delivered(number)
            for time in range(COMPARED):
                wanted: Bag = Counter()
                for _, text, _, since, until in frame.rows():
                    if since is not None and since <= time < until:
                        wanted += right[text][time]
                assert found[time] == wanted, f"q{number} at {time}: {self.asked}\n{frame.rows()}"

    def _delivered(self, number: int) -> list[Bag]:
        """What is in the files of a query, at every instant."""
        files = sorted((self.root / f"q{number}").glob("batch=*/*.parquet"))
        rows = [pl.read_parquet(file, hive_partitioning=False) for file in files]
        if not rows:
            return [Counter() for _ in range(COMPARED)]
        whole = pl.concat(rows)
        if "sign" in whole.columns:
            return bags(whole, COMPARED)
        begun = whole.drop("end").rename({"start": "time"}).with_columns(sign=pl.lit(1))
        gone = whole.drop("start").rename({"end": "time"}).with_columns(sign=pl.lit(-1))
        return bags(pl.concat([begun, gone]), COMPARED)


def _state(session: tidemill.Session, number: int) -> str:
    """What a query does."""
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    return str(shown.filter(pl.col("name") == f"q{number}")["state"].item())
