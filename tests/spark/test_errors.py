"""What goes wrong on Spark is said clearly, and loses nothing."""

from __future__ import annotations

import json
import re
import shutil
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.record import FORMAT
from tidemill.runtime.spark.driver.pipeline import start_pipeline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

ROWS = pl.DataFrame({"k": [1, 2, 1], "t": [1, 2, 3]})
MORE = pl.DataFrame({"k": [2, 2], "t": [4, 5]})


def session_on(source: Path, state: Path, output: Path) -> tuple[tidemill.Session, tidemill.Query]:
    session = tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=state)
    session.sql(f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE parquet('{source}') ORDERED BY t")
    query = session.sql(
        f"CREATE QUERY q INTO parquet('{output}') AS "
        "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
    )
    assert isinstance(query, tidemill.Query)
    return session, query


def test_a_broken_file_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    source, state, output = (tmp_path / name for name in ("in", "state", "out"))
    source.mkdir()
    ROWS.write_parquet(source / "1.parquet")
    (source / "2.parquet").write_text("this is no Parquet")
    session, _ = session_on(source, state, output)
    with pytest.raises(tidemill.RunError, match=r"2.parquet.* cannot be read as parquet"):
        session.run()
    MORE.rename({"k": "kk"}).write_parquet(source / "2.parquet")
    session, _ = session_on(source, state, output)
    session.start()
    deadline = monotonic() + 60
    while (failure := session.progress().failure) is None:
        assert monotonic() < deadline, "a caller that does not wait is told as well"
        sleep(0.1)
    assert re.search(r"2.parquet.* has no column .k.", failure)
    with pytest.raises(tidemill.RunError, match=r"2.parquet.* has no column .k."):
        session.await_idle()
    session.stop()
    MORE.write_parquet(source / "2.parquet")
    session, query = session_on(source, state, output)
    session.run(end=True)
    assert query.results().rows() == [
        (1, 1, 1, 3),
        (2, 1, 2, 4),
        (1, 2, 3, 11),
        (2, 2, 4, 5),
        (2, 3, 5, 12),
        (1, 1, 11, 13),
        (2, 2, 12, 14),
        (2, 1, 14, 15),
    ]


def test_a_file_is_not_lost_with_the_note_that_spark_is_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has planned a batch, and a note on a file of it goes before it is read."""
    source, state, output = (tmp_path / name for name in ("in", "state", "out"))
    source.mkdir()
    ROWS.write_parquet(source / "1.parquet")
    (source / "2.parquet").write_text("this is no Parquet")
    session, _ = session_on(source, state, output)
    with pytest.raises(tidemill.RunError, match=r"2.parquet"):
        session.run()
    MORE.write_parquet(source / "2.parquet")
    notes = state / "files" / "s"

    def losing(*args: object, **options: object) -> object:
        """Start the pipeline when everything has been checked, and is not there any more."""
        shutil.copytree(notes, tmp_path / "notes")
        (note,) = notes.glob("look-*/*1.json")
        note.unlink()
        return start_pipeline(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr("tidemill.runtime.spark.driver.steps.start_pipeline", losing)
        session, _ = session_on(source, state, output)
        why = '"s": Spark was to read 1 of them in batch 1, and has found 0'
        with pytest.raises(tidemill.RunError, match=why) as caught:
            session.run()
        assert caught.value.hint is not None
    session, _ = session_on(source, state, output)
    with pytest.raises(tidemill.RunError, match='the note of file 1 of "s" is missing'):
        session.run()
    shutil.rmtree(notes)
    (tmp_path / "notes").rename(notes)
    session, query = session_on(source, state, output)
    session.run(end=True)
    assert query.results().height == 8


@pytest.mark.soak
def test_a_join_that_is_too_large_is_named_and_the_session_can_be_stopped(tmp_path: Path) -> None:
    """Narrow columns: what is counted is much, and the memory that it takes is not."""
    names = [f"b{number}" for number in range(16)]
    rows = pl.DataFrame({"k": [1] * 4000, "t": [1] * 4000, **dict.fromkeys(names, [True] * 4000)})
    rows.write_parquet(tmp_path / "1.parquet")
    with tidemill.connect(engine="spark", master=MASTER, partitions=2) as session:
        declared = ", ".join(f"{name} BOOLEAN" for name in names)
        session.sql(
            f"CREATE STREAM s (k BIGINT, t BIGINT, {declared}) "
            f"SOURCE parquet('{tmp_path}') ORDERED BY t"
        )
        columns = ", ".join(f"{side}.{name} AS {side}{name}" for side in "xy" for name in names)
        joined = f"SELECT {columns} FROM s [RANGE 5] x, s [RANGE 5] y WHERE x.k = y.k"
        session.sql(f"CREATE QUERY pairs AS {joined}")
        session.start()
        message = 'query "pairs": the result of one step has more than'
        with pytest.raises(tidemill.RunError, match=message) as caught:
            session.await_idle()
        assert caught.value.hint is not None
        assert message in str(session.progress().failure)
        session.stop()
        session.sql("DROP QUERY pairs")
        count = session.sql("CREATE QUERY count AS SELECT COUNT(*) AS n FROM s [RANGE 5]")
        assert isinstance(count, tidemill.Query)
        session.run()
        assert count.results().rows() == [(4000, 1, 6)]


def test_a_key_that_is_used_again_is_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    ROWS.write_parquet(source / "1.parquet")
    session, _ = session_on(source, tmp_path / "state", tmp_path / "out")
    session.put("r", pl.DataFrame({"k": [7, 7], "name": ["old", "new"], "since": [0, 3]}))
    session.sql("""
        CREATE RELATION r (k BIGINT, name VARCHAR, since BIGINT)
          SOURCE memory('r') VALID FROM since KEY (k) NON RETROACTIVE;
        SELECT name FROM s [RANGE 5], r WHERE s.k = r.k;
    """)
    with pytest.raises(tidemill.RunError, match='"r" has different rows for k = 7'):
        session.run()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    session, _ = session_on(tmp_path / "nothing", tmp_path / "state", tmp_path / "out")
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        session.run()


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    source, state = tmp_path / "in", tmp_path / "state"
    source.mkdir()
    state.mkdir()
    facts = {
        "format": 99,
        "pids": [2, 3],
        "stages": 1,
        "planning": PLANNING.facts(),
        "place": str(state.resolve()),
        "queries": {},
        "relations": {},
    }
    (state / "tidemill.json").write_text(json.dumps(facts))
    session, _ = session_on(source, state, tmp_path / "out")
    with pytest.raises(tidemill.RunError, match="has format 99"):
        session.run()
    (state / "tidemill.json").write_text("{")
    with pytest.raises(tidemill.RunError, match="is damaged"):
        session.run()
    (state / "tidemill.json").write_text(json.dumps({**facts, "format": FORMAT, "pids": [1, 2, 3]}))
    with pytest.raises(tidemill.RunError, match="has 3 partitions, not 2"):
        session.run()
    (state / "tidemill.json").rename(state / "other.json")
    with pytest.raises(tidemill.RunError, match="is not a checkpoint"):
        session.run()


def test_a_damaged_checkpoint_is_refused_and_what_power_cuts_short_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, state, output = (tmp_path / name for name in ("in", "state", "out"))
    source.mkdir()
    ROWS.write_parquet(source / "1.parquet")
    session, _ = session_on(source, state, output)
    session.start()
    session.await_idle()
    session.stop()
    shutil.copytree(state, tmp_path / "copy")
    MORE.write_parquet(source / "2.parquet")

    def refused(message: str) -> None:
        before = sorted(output.rglob("*"))
        session, _ = session_on(source, state, output)
        with pytest.raises(tidemill.RunError, match=message) as caught:
            session.run()
        assert caught.value.hint is not None
        session.stop()
        assert sorted(output.rglob("*")) == before, "nothing is deleted"
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "copy", state)

    shutil.rmtree(state / "spark")
    refused("offsets.*has begun, and Spark knows of none")
    (state / "batches.jsonl").unlink()
    refused("batches.jsonl.*is missing")
    (state / "spark" / "metadata").unlink()
    refused("metadata.*is missing")
    shutil.rmtree(state / "files")
    refused('names 0 files of "s", and there were 1 at least')
    shutil.rmtree(next((state / "files" / "s").glob("look-*")))
    refused('the note of file 0 of "s" is missing')
    (state / "control" / "x.json").write_bytes(b"\xff\n")
    refused("control/x.json")
    for changes in (state / "spark" / "state").glob("*/*/1*.changelog"):
        changes.write_bytes(changes.read_bytes()[:10])
    for snapshot in (state / "spark" / "state").glob("*/*/1*.zip"):
        snapshot.write_bytes(snapshot.read_bytes()[:10])
    refused("is damaged: what Spark has kept cannot be read")
    with monkeypatch.context() as patch:

        def read_only(_path: Path, _content: bytes) -> None:
            raise OSError(30, "Read-only file system")

        patch.setattr("tidemill.runtime.spark.state.batch_log.append_durably", read_only)
        refused(r"the checkpoint .* cannot be read or written: \[Errno 30\]")
    with pytest.raises(tidemill.RunError, match=r"Not a directory"):
        session_on(source, source / "1.parquet" / "state", output)
    session.stop()
    # Here the power was lost after the batch was delivered.
    (state / "spark" / "commits" / "0").write_bytes(b"")
    session, query = session_on(source, state, output)
    session.run(end=True)
    assert query.results().height == 8
