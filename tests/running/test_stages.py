"""A step that is cut short after any stage is taken again as it was, whatever came meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.kept import CrashError, Taken, connected, crashing, in_small_steps
from running.shop import NAMED, TOTAL, expected, write
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.checkpoint import LocalCheckpoint
from tidemill.runtime.local.keeping import Keeper
from tidemill.runtime.local.stepping import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = [stage.__name__ for stage in STAGES]
SECOND = 1_000_000


def crashed(session: tidemill.Session, step: int, stage: str) -> None:
    with session, crashing(step, NAMES.index(stage)), pytest.raises(CrashError):
        session.run()


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("stage", NAMES)
def test_what_comes_between_a_crash_and_the_next_start_is_for_the_next_step(
    tmp_path: Path, stage: str, step: int
) -> None:
    taken, texts = Taken(), (TOTAL, NAMED)
    with in_small_steps(8, 4):
        write(tmp_path / "in", 0, 20)
        crashed(connected(tmp_path, texts, taken, partitions=2), step, stage)
        before = dict(taken.batches)
        write(tmp_path / "in", 20, 40)
    with in_small_steps(10**6, 4), connected(tmp_path, texts, taken) as session:
        session.run()
        session.run(end=True)
        for number, text in enumerate(texts):
            assert session.answer(f"q{number}").changes().equals(expected(tmp_path / "in", text))
    assert all(taken.batches[number].equals(rows) for number, rows in before.items())
    first = sorted((tmp_path / "out1").glob("batch=*"))
    assert first[0].name == "batch=00000000"
    if NAMES.index(stage) >= NAMES.index("note"):
        rows = pl.read_parquet(first[step] / "*.parquet").height
        assert rows <= 8, "the step was taken again as it was begun"


@pytest.mark.parametrize("stage", NAMES)
def test_a_crash_in_the_last_step_leaves_a_checkpoint_that_can_only_be_ended(
    tmp_path: Path, stage: str
) -> None:
    write(tmp_path / "in", 0, 20)
    session = connected(tmp_path, [TOTAL])
    with session, crashing(1, NAMES.index(stage)), pytest.raises(CrashError):
        session.run(end=True)
    write(tmp_path / "in", 20, 25)
    with connected(tmp_path, [TOTAL]) as again:
        with pytest.raises(tidemill.RunError, match="was being run to the end of its streams"):
            again.start()
        with pytest.raises(tidemill.RunError, match="was being run to the end of its streams"):
            again.run()
        again.run(end=True)
        found = again.answer("q0").changes()
    if NAMES.index(stage) >= NAMES.index("note"):
        (tmp_path / "in" / "000020.parquet").unlink()  # what came after the end is not read
    assert found.equals(expected(tmp_path / "in", TOTAL))
    with connected(tmp_path, [TOTAL]) as ended:
        with pytest.raises(tidemill.RunError, match="has been run to the end of its streams"):
            ended.start()
        ended.run()
        assert ended.answer("q0").changes().equals(found), "its files can be read"
        assert ended.answer("q0").has_ended


WRITES = [
    (LocalCheckpoint, "create"),
    (FileSink, "claim"),
    (LocalCheckpoint, "keep_plan"),
    (LocalCheckpoint, "keep_relation"),
    (LocalCheckpoint, "record_kept"),
    (Keeper, "tidy"),
    (Keeper, "note"),
    (Keeper, "save"),
    (Keeper, "commit"),
]
"""What a start or a change writes, one after another."""


@contextmanager
def crashing_after(owner: type, name: str) -> Iterator[None]:
    """Let something be done, and then crash."""
    done = getattr(owner, name)

    def crash(*given: object, **options: object) -> None:
        done(*given, **options)
        raise CrashError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, crash)
        yield


@pytest.mark.parametrize(("owner", "name"), WRITES)
def test_a_start_that_is_cut_short_is_repeated(tmp_path: Path, owner: type, name: str) -> None:
    write(tmp_path / "in", 0, 20)
    with connected(tmp_path, [NAMED]) as session:
        with crashing_after(owner, name), pytest.raises(CrashError):
            session.start()
        session.run()
        write(tmp_path / "in", 20, 40)
        session.run(end=True)
        assert session.answer("q0").changes().equals(expected(tmp_path / "in", NAMED))


@pytest.mark.parametrize(("owner", "name"), [w for w in WRITES if w[1] not in {"create", "tidy"}])
def test_a_change_that_is_cut_short_is_taken_up_or_has_not_been(
    tmp_path: Path, owner: type, name: str
) -> None:
    """The query that stays does not notice; the one that comes has what comes after it."""
    late = f"CREATE QUERY late INTO parquet('{tmp_path / 'late'}') AS {NAMED}"
    write(tmp_path / "in", 0, 20)
    with connected(tmp_path, [TOTAL]) as session:
        session.start()
        session.await_idle()
        with crashing_after(owner, name), pytest.raises(CrashError):
            session.sql(late)
    write(tmp_path / "in", 20, 40)
    with connected(tmp_path, [TOTAL]) as again:
        again.sql(late)
        again.run(end=True)
        assert again.answer("q0").changes().equals(expected(tmp_path / "in", TOTAL))
        wanted = expected(tmp_path / "in", NAMED).filter(pl.col("time") >= 20)
        found = again.answer("late").changes()
        assert found.filter(pl.col("time") >= 24).equals(wanted.filter(pl.col("time") >= 24))
        assert found["time"].min() == 21


def stream(session: tidemill.Session, directory: Path, clause: str, options: str = "") -> None:
    source = f"csv('{directory}', settle => 0{options})"
    session.sql(f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE {source} {clause}")


def test_a_batch_of_several_files_is_the_same_again(tmp_path: Path) -> None:
    """Rows of one batch come at one time, by the clock; what came later has another."""
    (tmp_path / "in").mkdir()
    taken, time = Taken(), [5 * SECOND]

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state", clock=lambda: time[0])
        stream(made, tmp_path / "in", "", ", files_per_batch => 2")
        made.callback("taken", taken)
        made.sql("CREATE QUERY q INTO callback('taken') AS SELECT k FROM s")
        return made

    (tmp_path / "in" / "1.csv").write_text("k,t\n1,1\n")
    crashed(session(), 0, "deliver")
    (tmp_path / "in" / "2.csv").write_text("k,t\n2,2\n")
    time[0] = 9 * SECOND
    with session() as last:
        last.run()
    rows = [row for frame in taken.batches.values() for row in frame.rows()]
    assert [(k, start.second) for k, start, _ in rows] == [(1, 5), (2, 9)]


def test_what_a_batch_has_reached_outlasts_a_restart_within_it(tmp_path: Path) -> None:
    """The latest row of a batch is in its first piece; by it rows are late that come later."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,t\n1,50\n2,41\n3,42\n")

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state")
        stream(made, tmp_path / "in", "ORDERED BY t WITHIN 10 LATE QUARANTINE")
        made.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS SELECT k, t FROM s")
        return made

    with in_small_steps(1, 1):
        crashed(session(), 1, "take")
        (tmp_path / "in" / "2.csv").write_text("k,t\n4,39\n5,60\n")
        with session() as last:
            last.run()
            assert last.quarantine("s").select("k", "reason").rows() == [(4, "late")]
            assert last.answer("q").results()["k"].to_list() == [2, 3, 1, 5]


def test_rows_of_one_instant_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def session(checkpoint: Path | None = None) -> tidemill.Session:
        made = tidemill.connect(partitions=2, checkpoint=checkpoint)
        stream(made, tmp_path / "in", "ORDERED BY t")
        made.sql("CREATE QUERY q AS SELECT k FROM s [ROWS 2]")
        return made

    found = []
    for number in range(4):
        rows = (f"{10 * number + k},7\n" for k in range(4 - number))
        (tmp_path / "in" / f"{number}.csv").write_text("k,t\n" + "".join(rows))
        with session(tmp_path / "state") as one:
            one.run(end=number == 3)
            found.append(one.answer("q").changes())
    with session() as whole:
        whole.run()
        wanted = whole.answer("q").changes()
    assert sorted(pl.concat(found).rows()) == sorted(wanted.rows())


def test_a_batch_has_come_at_one_time_although_a_restart_is_within_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,t\n1,0\n2,0\n3,0\n")
    time = [5 * SECOND]

    def session() -> tidemill.Session:
        made = tidemill.connect(checkpoint=tmp_path / "state", clock=lambda: time[0])
        stream(made, tmp_path / "in", "")
        made.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS SELECT k FROM s")
        return made

    with in_small_steps(1, 1):
        crashed(session(), 1, "take")
        time[0] = 20 * SECOND
        with session() as last:
            last.run()
            found = last.answer("q").results()
    assert found.select("k", "start").rows() == [(k, 5 * SECOND) for k in (1, 2, 3)]
