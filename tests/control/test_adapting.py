"""Sessions whose plans follow what is measured: their answers, their log and their settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import tidemill
from tidemill.control import adapt_setting, adapting
from tidemill.engine.adaptations import Adaptation, Kind
from tidemill.errors import ParseError, PlanError
from tidemill.lang.statements import ExplainMode
from tidemill.runtime.adaptation_log import ADAPTATIONS_FILE, AdaptationLog, Logged

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill import Session

SECOND = 1_000_000
QUERY = (
    "CREATE QUERY q AS SELECT a.k AS k, a.n AS x, b.n AS y, c.n AS z"
    " FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], c [RANGE 4 SECONDS]"
    " WHERE a.k = b.k AND b.k = c.k"
)


def rows_of(name: str, step: int, hot: str, count: int = 300) -> pl.DataFrame:
    """The rows of a stream in a second; those of hot streams meet often."""
    chance = np.random.default_rng([ord(name), step])
    share = 0.5 if name in hot else 0.001
    keys = np.where(
        chance.random(count) < share,
        chance.integers(0, 32, count),
        chance.integers(100, 1_000_000, count),
    )
    at = np.sort(step * SECOND + chance.integers(0, SECOND, count))
    return pl.DataFrame({"k": keys, "n": np.arange(count) + step * count, "at": at})


def expected(steps: range, exchanged_at: int) -> Counter[tuple[int, ...]]:
    """All combinations, as rows with their time, computed by a plain join."""
    joined: pl.DataFrame | None = None
    for name in "abc":
        frames = [rows_of(name, s, "bc" if s < exchanged_at else "ab") for s in steps]
        end = (pl.col("at") + 4 * SECOND).alias("end")
        own = pl.concat(frames).select(
            "k", pl.col("n").alias(name), pl.col("at").alias("start"), end
        )
        if joined is None:
            joined = own
            continue
        near = [
            joined.filter(pl.col("start") // SECOND == step).join(
                own.filter((pl.col("start") // SECOND).is_between(step - 4, step + 4)), on="k"
            )
            for step in steps
        ]
        met = pl.concat(
            one.filter(pl.col("start") < pl.col("end_right"), pl.col("end") > pl.col("start_right"))
            for one in near
        )
        both = {"start": pl.max_horizontal, "end": pl.min_horizontal}
        times = [of(side, f"{side}_right").alias(side) for side, of in both.items()]
        joined = met.with_columns(times).select(*joined.columns, name)
    assert joined is not None
    return Counter(joined.select("k", *"abc", "start", "end").rows())


class Run:
    """A session on the same streams, file by file."""

    def __init__(self, place: Path, engine: str = "local") -> None:
        self._place, self._engine = place, engine
        for name in "abc":
            (place / name).mkdir(parents=True)

    def connect(self, adapt: str = "off", partitions: int | None = None) -> Session:
        return tidemill.connect(
            engine=self._engine,
            checkpoint=self._place / "checkpoint",
            partitions=partitions,
            adapt=adapt,
            adapt_every=1,
        )

    def declare(self, session: Session) -> None:
        for name in "abc":
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, n BIGINT, at BIGINT)"
                f" SOURCE parquet(path => '{self._place / name}', settle => 0) ORDERED BY at"
            )
        session.query(
            QUERY.replace(" AS SELECT", f" INTO parquet(path => '{self._place / 'out'}') AS SELECT")
        )

    def feed(self, session: Session, steps: range, exchanged_at: int) -> None:
        for step in steps:
            for name in "abc":
                frame = rows_of(name, step, "bc" if step < exchanged_at else "ab")
                written = self._place / f"{name}.part"
                frame.write_parquet(written)
                written.rename(self._place / name / f"{step:04}.parquet")
            session.await_idle()

    def answer(self) -> Counter[tuple[int, ...]]:
        files = sorted((self._place / "out").rglob("*.parquet"))
        frames = [pl.read_parquet(file) for file in files]
        return Counter(row for frame in frames for row in frame.rows())


def decided(session: Session) -> pl.DataFrame:
    shown = session.sql("SHOW DECISIONS q")
    assert isinstance(shown, pl.DataFrame)
    return shown.filter(pl.col("subject").str.starts_with("tree of joins"))


def exchanged(place: Path, engine: str, parts: int, steps: int) -> None:
    """The body for both engines: selectivities are exchanged, and sessions come and go."""
    run, at = Run(place, engine), steps // 3
    with run.connect(adapt="on", partitions=parts) as session:
        run.declare(session)
        session.start()
        run.feed(session, range(steps // 2), at)
    with run.connect(adapt="on") as session:
        session.start()
        run.feed(session, range(steps // 2, steps), at)
        told = decided(session)
    with run.connect() as session:
        session.run(end=True)
        assert decided(session).equals(told), "the log is kept"
    assert run.answer() == expected(range(steps), at)
    changed = told.filter(pl.col("why").str.starts_with("changed"))
    assert changed.height, "selectivities were exchanged"
    assert changed["at"].min() is not None


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks may take what they take, so that it does not depend on the machine how often."""
    monkeypatch.setattr(adapt_setting, "_QUOTA", 100.0)


@pytest.mark.usefixtures("_eager")
def test_answers_are_right_while_trees_change(tmp_path: Path) -> None:
    exchanged(tmp_path, "local", 2, 36)


@pytest.mark.spark
@pytest.mark.usefixtures("_eager")
def test_answers_are_right_while_trees_change_on_spark(tmp_path: Path) -> None:
    exchanged(tmp_path, "spark", 1, 36)


@pytest.mark.usefixtures("_eager")
def test_advice_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with run.connect(adapt="advise") as session:
        run.declare(session)
        session.start()
        run.feed(session, range(14), 4)
        told = decided(session)
        assert told.height
        assert told["why"].str.starts_with("advised").all()
        assert told["effect"].is_null().all()


def test_a_query_goes_over_to_a_cheaper_plan(tmp_path: Path) -> None:
    """Joins on different keys are no tree that could change; so the query migrates."""
    run = Run(tmp_path)
    with (
        pytest.MonkeyPatch.context() as patched,
        run.connect(adapt="on") as session,
    ):
        patched.setattr(adapting, "_QUOTA", 1.0)
        patched.setattr(adapting, "_LEAST_ROWS", 100)
        for name in "abc":
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, n BIGINT, at BIGINT)"
                f" SOURCE parquet(path => '{tmp_path / name}', settle => 0) ORDERED BY at"
            )
        session.query(
            "CREATE QUERY q AS SELECT a.k AS k, b.n AS n FROM a [RANGE 2 SECONDS],"
            " b [RANGE 2 SECONDS], c [RANGE 2 SECONDS] WHERE a.k = b.k AND b.n = c.n"
        )
        session.start()
        for step in range(16):
            for name in "abc":
                few = 15 if name != "c" else 1_000_000
                chance = np.random.default_rng([ord(name), step])
                at = np.sort(step * SECOND + chance.integers(0, SECOND, 300))
                columns = {"k": chance.integers(0, 15, 300), "n": chance.integers(0, few, 300)}
                frame = pl.DataFrame({**columns, "at": at})
                frame.write_parquet(tmp_path / "written")
                (tmp_path / "written").rename(tmp_path / name / f"{step:04}.parquet")
            session.await_idle()
        shown = session.sql("SHOW DECISIONS q")
        assert isinstance(shown, pl.DataFrame)
        plans = shown.filter(pl.col("subject") == "plan")
        assert plans.height == 1, "it changes once, since nothing else does"
        assert plans["why"].str.starts_with("changed: ").all()
        assert plans["at"].is_not_null().all()


# Settings


def plan_of(session: Session) -> str:
    for name in "abc":
        session.put(name, pl.DataFrame({"k": [1], "n": [1], "at": [1]}))
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, n BIGINT, at BIGINT)"
            f" SOURCE memory('{name}') ORDERED BY at"
        )
    session.query(QUERY)
    return session.explain("q", ExplainMode.PHYSICAL)


def test_without_adapting_plans_are_as_they_were() -> None:
    with tidemill.connect() as usual, tidemill.connect(adapt="on") as adaptive:
        assert "JoinTree" not in plan_of(usual)
        assert "JoinTree" in plan_of(adaptive)
        for session in (usual, adaptive):
            session.run()
        assert usual.planned("q").version != adaptive.planned("q").version
    with tidemill.connect(adapt="on") as session:
        session.sql("SET adapt = off")
        assert plan_of(session) == plan_of(tidemill.connect())


def test_it_is_set_for_a_session() -> None:
    with tidemill.connect(adapt_every=5) as session:
        for adapt in ("on", "advise", "off"):
            session.sql(f"SET adapt = {adapt}")
            shown = session.sql("SHOW SETTINGS")
            assert isinstance(shown, pl.DataFrame)
            assert shown["value"].to_list() == [adapt, "5"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET adapt = of", "ADVISE or ON"),
        ("SET adopt = on", 'expected ADAPT, found "adopt"'),
        ("SET adapt on", 'expected "="'),
    ],
)
def test_what_cannot_be_set_is_refused(text: str, said: str) -> None:
    with tidemill.connect() as session, pytest.raises(ParseError) as caught:
        session.sql(text)
    assert said in str(caught.value)
    assert "hint" in str(caught.value)


@pytest.mark.parametrize("every", [0, -1, True])
def test_wrong_settings_are_refused(every: int) -> None:
    with pytest.raises(PlanError, match="adapt_every must be at least 1"):
        tidemill.connect(adapt_every=every)
    with pytest.raises(PlanError, match='adapt cannot be "onn"') as caught:
        tidemill.connect(adapt="onn")
    assert '"on"' in str(caught.value)


def test_it_can_be_set_while_queries_run(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with run.connect(adapt="on") as session:
        run.declare(session)
        session.start()
        session.sql("SET adapt = off")
        run.feed(session, range(8), 4)
        assert not decided(session).height
        session.sql("SET adapt = on")
        run.feed(session, range(8, 20), 4)
        assert decided(session).height


# The log

LINE = Logged("q", "plan", Adaptation(Kind.CHANGED, 5, "one", "two", "it was", 2.0, 1.0, 0.5, 7, 0))


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    log = AdaptationLog(tmp_path)
    log.append([LINE])
    log.append([LINE, LINE])
    assert AdaptationLog(tmp_path).read() == [LINE] * 3


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path, left: int) -> None:
    log, path = AdaptationLog(tmp_path), tmp_path / ADAPTATIONS_FILE
    log.append([LINE, LINE])
    content = path.read_bytes()
    path.write_bytes(content[:-left])
    assert log.read() == [LINE] if left > 1 else [LINE, LINE]
    log.append([LINE])
    assert log.read() == [LINE, LINE] if left > 1 else [LINE] * 3


def test_what_is_no_line_is_left_out(tmp_path: Path) -> None:
    log, path = AdaptationLog(tmp_path), tmp_path / ADAPTATIONS_FILE
    log.append([LINE])
    wrong = [{"query": "q"}, 5, {"query": "q", "subject": "s", "what": ["no kind"] * 10}]
    with path.open("ab") as file:
        file.write(b"\xff\n" + "".join(json.dumps(one) + "\n" for one in wrong).encode())
    log.append([LINE])
    assert log.read() == [LINE, LINE]


def test_a_log_that_cannot_be_written_refuses_nothing(tmp_path: Path) -> None:
    (tmp_path / ADAPTATIONS_FILE).mkdir()
    log = AdaptationLog(tmp_path)
    log.append([LINE])
    assert log.read() == []
    in_memory = AdaptationLog(None)
    in_memory.append([LINE])
    assert in_memory.read() == [LINE]


def test_a_process_that_is_killed_while_it_writes_leaves_whole_lines(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "sys.path[:0] = [sys.argv[2]]\n"
        "from control.test_adapting import LINE\n"
        "from tidemill.runtime.adaptation_log import AdaptationLog\n"
        "log = AdaptationLog(Path(sys.argv[1]))\n"
        "print('ready', flush=True)\n"
        "while True: log.append([LINE])\n"
    )
    tests = os.fspath(
        next(p for p in __import__("pathlib").Path(__file__).parents if p.name == "tests")
    )
    process = subprocess.Popen(  # noqa: S603 — this test
        [sys.executable, "-c", code, os.fspath(tmp_path), tests], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    while not AdaptationLog(tmp_path).read():
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    log = AdaptationLog(tmp_path)
    before = log.read()
    assert set(before) == {LINE}
    log.append([LINE])
    assert log.read() == [*before, LINE]
