"""What a pipeline is asked once, on whatever engine: an instant has one frame, the reference's.

Two streams have the same rows, one keeps copies of them and one names the files they came in. A
third one forgets while it is read. It is asked while the pipeline runs, when more rows have come,
when it has stopped, before and after it goes on; by its own session, by a read-only one, and by
another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running import asked_once, asker
from running.shop import STREAM, TOTAL, rows, write
from tidemill.algebra.snapshot import Element, Reference, value_order
from tidemill.binder.one_time import bind_question
from tidemill.catalog.entries import QueryEntry
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import OneTimeQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.algebra.snapshot import Row

__all__ = [
    "Pipeline",
    "answered",
    "asked_meanwhile",
    "asked_throughout",
    "elsewhere",
    "refused",
]

NAMES = pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]})
LAST = 160
_LEAST = 6
"""So many instants another process has answers of at least."""

QUESTIONS = (
    TOTAL,
    "SELECT a.v AS x, b.v AS y FROM s a [RANGE 5] JOIN s b [RANGE 5] ON a.k = b.k",
    "SELECT name, v FROM s [RANGE 4], r WHERE id = k",
    "SELECT k, COUNT(*) AS n FROM s [ROWS 5] GROUP BY k",
    "SELECT k, v FROM s [RANGE 9 SLIDE 3] ORDER BY v DESC, k LIMIT 4 OFFSET 1",
    "SELECT t.k, total, v FROM QUERY totals t JOIN s [RANGE 3] ON t.k = s.k",
    "SELECT k FROM s [RANGE 6] WHERE NOT EXISTS (SELECT id FROM r WHERE id = k)",
)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with three streams.

    Attributes:
        connect: Makes a session on its checkpoint.
        root: Where everything is; the checkpoint is ``state`` below it.
        inside: A mark for each time that a function that gets rows was refused.
    """

    connect: Callable[[], tidemill.Session]
    root: Path
    inside: list[None] = field(default_factory=list)

    def begun(self) -> tidemill.Session:
        """The first session, before it is started."""
        session = self.again()
        for name, place, keep in (
            ("s", "in", "KEEP ALL"),
            ("b", "in", "KEEP ALL BY REFERENCE"),
            ("c", "c", "KEEP 45"),
        ):
            (self.root / place).mkdir(exist_ok=True)
            source = f"parquet('{self.root / place}', files_per_batch => 1)"
            session.sql(f"CREATE STREAM {name} {STREAM} SOURCE {source} ORDERED BY t {keep}")
        session.sql("CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')")
        session.sql(f"CREATE QUERY totals AS {TOTAL}")
        session.sql("CREATE QUERY named AS SELECT name, v FROM b [RANGE 4], r WHERE id = k")
        session.sql("CREATE QUERY told INTO callback('told') AS SELECT v FROM b [RANGE 4]")
        return session

    def again(self) -> tidemill.Session:
        """A session, before it is started."""
        session = self.connect()
        session.put("r", NAMES)
        session.callback("told", lambda _rows, _batch: self._ask_inside(session))
        return session

    def _ask_inside(self, session: tidemill.Session) -> None:
        """A batch that asks would wait for its own end."""
        refused(lambda: session.ask(TOTAL, at=7), "a callback cannot ask the session")
        self.inside.append(None)

    def looking(self) -> tidemill.Session:
        """A session that reads only."""
        return tidemill.connect(checkpoint=self.root / "state", read_only=True)

    def require(self, session: tidemill.Session, *, past: int, apart: bool = False) -> None:
        """All questions have the answers of the reference, whoever asks them.

        Args:
            session: The session of the pipeline.
            past: The first instant of which no row has come.
            apart: Whether another process asks as well.
        """
        copied, referred = zip(*map(_both, QUESTIONS), strict=True)
        asked = [(text, time) for text in copied for time in (30, past - 2)]
        asked += [(text, time) for text in referred for time in (7, past - 2)]
        wanted = [_answer(session, text, time) for text, time in asked]
        with self.looking() as look:
            for one in (session, look):
                found = [one.ask(text, at=time).frame.rows() for text, time in asked]
                _compare(asked, found, wanted)
                shown = one.sql("SELECT k, v FROM s [RANGE 2] AS OF NOW")
                assert isinstance(shown, pl.DataFrame)
                assert shown.rows() == _answer(one, "SELECT k, v FROM s [RANGE 2]", past - 2)
        if apart:
            said = elsewhere(asked_once, str(self.root / "state"), json.dumps(asked)).stdout
            _compare(asked, [[tuple(row) for row in rows] for rows in json.loads(said)], wanted)


def _both(text: str) -> tuple[str, str]:
    """A question about the stream that is copied, and about that which is kept by reference."""
    return text, text.replace(" s ", " b ").replace("s.k", "b.k")


def _compare(asked: list[tuple[str, int]], found: list[list[Row]], wanted: list[list[Row]]) -> None:
    for (text, time), one, right in zip(asked, found, wanted, strict=True):
        assert one == right, f"{text} at {time}"


def _answer(session: tidemill.Session, text: str, time: int) -> list[Row]:
    """What a question means, by definition."""
    statement = parse_one(f"{text} AS OF {time}")
    assert isinstance(statement, OneTimeQuery)
    question = bind_question(statement.query, session.catalog, [])
    there = [Element(t, t, (k, v, t)) for k, v, t in rows(0, LAST).rows()]
    streams, relations = {"s": there, "b": there}, {"r": list(NAMES.rows())}
    for relation, query in question.answers.items():
        entry = session.catalog.find(query)
        assert isinstance(entry, QueryEntry)
        relations[relation] = list(
            Reference(streams, relations).snapshot(entry.plan, time).elements()
        )
    bag = Reference(streams, relations).snapshot(question.plan, time)
    found = sorted(bag.elements(), key=value_order)
    names = question.plan.schema.names
    for key in reversed(question.keys):
        place = names.index(key.column)
        found.sort(key=lambda row: value_order((row[place],)), reverse=key.descending)
    last = None if question.limit is None else question.offset + question.limit
    return [row[: len(question.columns)] for row in found[question.offset : last]]


def asked_throughout(pipeline: Pipeline) -> None:
    """Ask before, while and after more rows come, and when another session goes on."""
    root = pipeline.root
    write(root / "in", 0, 40)
    write(root / "c", 0, 40)
    with pipeline.begun() as session:
        refused(lambda: session.ask(TOTAL), "nothing is known yet")
        session.start()
        session.await_idle()
        pipeline.require(session, past=40, apart=True)
        for one in (session, pipeline.looking()):
            refused(lambda: one.ask(TOTAL, at=39), 'known up to 39, as far as stream "s"')  # noqa: B023
            refused(lambda: one.ask(TOTAL, at=39, wait=0.2), "known up to 39")  # noqa: B023
        look = pipeline.looking()
        write(root / "in", 40, 80)
        assert look.ask(TOTAL, at=60, wait=60).frame.rows() == _answer(look, TOTAL, 60)
        session.await_idle()
        pipeline.require(session, past=80)
    pipeline.require(session, past=80)
    with pipeline.again() as session:
        pipeline.require(session, past=80)
        session.start()
        write(root / "in", 80, 120)
        session.await_idle()
        pipeline.require(session, past=120, apart=True)
        assert pipeline.inside, "rows came"
        asked_meanwhile(pipeline, 40, seconds=4)


def asked_meanwhile(pipeline: Pipeline, first: int, *, seconds: float) -> None:
    """Let another process ask while rows come and are forgotten.

    Args:
        pipeline: A pipeline that runs.
        first: From which instant on rows come.
        seconds: For how long.
    """
    root = pipeline.root
    with _asking(root) as said:
        began = monotonic()
        while monotonic() - began < seconds or answered(root / "said") < _LEAST:
            assert monotonic() - began < 90, "another process asks"
            write(root / "c", first, first + 30)
            first += 30
            sleep(0.1)
        late = monotonic()
        while pipeline.looking().ask("SELECT k FROM c").known < first - 1:
            assert monotonic() - late < 60, "it comes to an end"
            sleep(0.1)
    told = [json.loads(line) for line in said]
    answers = [one for one in told if "rows" in one]
    errors = [one["error"] for one in told if "rows" not in one]
    assert all("it can be asked from" in error for error in errors), errors[:3]
    for one in answers:
        inside = rows(max(one["at"] - 19, 0), one["at"] + 1)
        total = inside.group_by("k").agg(pl.col("v").sum(), pl.len()).sort("k")
        assert [tuple(row) for row in one["rows"]] == total.rows()
    look = pipeline.looking()
    with pytest.raises(tidemill.RunError, match="it can be asked from") as found:
        look.ask("SELECT COUNT(*) AS n FROM c [RANGE 20]", at=100)
    least = int(found.value.message.rpartition("asked from ")[2].split()[0])
    assert 100 < least < first
    counted = look.ask("SELECT COUNT(*) AS n FROM c [RANGE 20]", at=least).frame
    assert counted.rows() == [(20,)]


def refused(act: Callable[[], object], match: str) -> None:
    with pytest.raises(tidemill.RunError, match=match):
        act()


@contextmanager
def _asking(root: Path) -> Iterator[list[str]]:
    """Lines that another process says which asks until the end."""
    said: list[str] = []
    end = root / "end"
    arguments = [str(root / "state"), str(end), "c"]
    with (root / "said").open("w+") as out:
        process = subprocess.Popen(_command(asker, *arguments), stdout=out, env=_environment())  # noqa: S603
        try:
            yield said
        finally:
            end.touch()
            assert process.wait(60) == 0
        out.seek(0)
        said += out.read().splitlines()


def answered(path: Path) -> int:
    """How many instants another process has had answers of, by the lines that it has said."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return len({one["at"] for one in map(json.loads, lines) if "at" in one})


def elsewhere(program: object, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What another process says."""
    return subprocess.run(  # noqa: S603 — this interpreter
        _command(program, *arguments),
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )


def _command(program: object, *arguments: str) -> list[str]:
    return [sys.executable, str(getattr(program, "__file__")), *arguments]  # noqa: B009


def _environment() -> dict[str, str]:
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    return {**os.environ, "PYTHONPATH": path}
