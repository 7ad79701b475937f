"""A sink's directory has an owner, and nothing in it is removed that was not asked for.

Kills are played by stopping between two steps and beginning again.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.errors import BindError, RunError
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.runtime import file_sink
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.ownership import OWNER_FILE, UNFINISHED_OWNER_FILE, read_owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = Schema((Field("x", BIGINT),))
ROWS = [pl.DataFrame({"x": [1], START: [1], END: [2]})]


def sink(directory: Path, pipeline: str = "mine", *, epoch: int = 0) -> FileSink:
    return FileSink("Hot", "parquet", str(directory), SCHEMA).owned_by(pipeline, epoch)


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def refused(call: Callable[[], None], directory: Path) -> str:
    """The error of a call that leaves everything as it was."""
    before = tree(directory)
    with pytest.raises(RunError) as caught:
        call()
    assert tree(directory) == before
    return str(caught.value)


def written(directory: Path, pipeline: str = "mine") -> FileSink:
    """A sink that has written a batch."""
    out = sink(directory, pipeline)
    out.claim()
    out.write(0, 0, ROWS)
    return out


@pytest.mark.parametrize("is_there", [True, False])
def test_an_empty_or_missing_directory_is_taken(tmp_path: Path, *, is_there: bool) -> None:
    out = sink(tmp_path / "a" / "out")
    if is_there:
        (tmp_path / "a" / "out").mkdir(parents=True)
        (tmp_path / "a" / "out" / UNFINISHED_OWNER_FILE).write_text("{")  # a kill left it
    out.check_new()
    assert read_owner(tmp_path / "a" / "out") is None, "a check writes nothing"
    out.claim()
    assert read_owner(tmp_path / "a" / "out") == out.owner
    assert json.loads((tmp_path / "a/out" / OWNER_FILE).read_text()) == {
        "format": 1,
        "pipeline": "mine",
        "query": "hot",
        "epoch": 0,
        "checkpoint": None,
    }
    out.require_owned()


def test_the_directory_of_another_pipeline_or_query_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    text = refused(sink(tmp_path, "theirs").claim, tmp_path)
    assert 'holds the answer of query "hot" of a run without a checkpoint' in text
    assert "write replace => true" in text
    other = replace(sink(tmp_path), query="cold").owned_by("mine")
    assert 'holds the answer of an earlier query "hot"' in refused(other.claim, tmp_path)
    later = sink(tmp_path, epoch=1)
    assert 'holds the answer of an earlier query "hot"' in refused(later.claim, tmp_path)


@pytest.mark.parametrize("name", ["notes.txt", "batch=00000000/part-00000.parquet", ".hidden"])
@pytest.mark.parametrize("replaces", [True, False])
def test_files_without_an_owner_are_refused(tmp_path: Path, name: str, *, replaces: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("of somebody else")
    out = replace(sink(tmp_path), replaces=replaces)
    assert "holds files of others" in refused(out.claim, tmp_path)


def test_a_file_that_names_no_owner_is_refused(tmp_path: Path) -> None:
    for content in ("{", "[]", '{"format": 2}', "\xff"):
        (tmp_path / OWNER_FILE).write_text(content, encoding="latin-1")
        for out in (sink(tmp_path), replace(sink(tmp_path), replaces=True)):
            assert "cannot be read" in refused(out.claim, tmp_path)
            assert "cannot be read" in refused(out.require_owned, tmp_path)


def test_replacing_is_asked_for_and_removes_only_what_sinks_write(tmp_path: Path) -> None:
    written(tmp_path, "theirs").write(12, 3, ROWS)
    out = replace(sink(tmp_path), replaces=True)
    out.check_new()
    assert len(tree(tmp_path)) == 3, "a check removes nothing"
    (tmp_path / "mine.txt").write_text("x")
    assert 'such as "mine.txt"' in refused(out.claim, tmp_path)
    (tmp_path / "mine.txt").rename(tmp_path / "batch=00000012" / "mine.txt")
    assert 'such as "batch=00000012"' in refused(out.claim, tmp_path)
    (tmp_path / "batch=00000012" / "mine.txt").unlink()
    (tmp_path / "batch=00000013").symlink_to(tmp_path / "batch=00000012")
    assert 'such as "batch=00000013"' in refused(out.claim, tmp_path)
    (tmp_path / "batch=00000013").unlink()
    out.claim()
    assert list(tree(tmp_path)) == [OWNER_FILE]
    out.require_owned()


def test_a_kill_between_removing_and_owning_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(tmp_path, "theirs")
    out = replace(sink(tmp_path), replaces=True)
    with monkeypatch.context() as patch:
        patch.setattr(file_sink, "write_owner", _killed)
        with pytest.raises(KeyboardInterrupt):
            out.claim()
    assert read_owner(tmp_path) == before.owner, "nothing is without a name in between"
    out.claim()
    out.require_owned()


def test_a_kill_before_the_first_batch_leaves_what_the_same_query_takes(tmp_path: Path) -> None:
    sink(tmp_path).claim()
    sink(tmp_path).check_new()
    sink(tmp_path).claim()
    sink(tmp_path, epoch=3).claim()  # others have begun in between
    assert "holds the answer" in refused(sink(tmp_path, "theirs").claim, tmp_path)


def test_a_query_that_goes_on_finds_its_directory_as_it_was(tmp_path: Path) -> None:
    out = written(tmp_path / "out")
    out.require_owned()
    (tmp_path / "out" / OWNER_FILE).rename(tmp_path / "kept")
    assert 'has lost its file "_tidemill.json"' in refused(out.require_owned, tmp_path)
    (tmp_path / "out").rename(tmp_path / "away")
    text = refused(out.require_owned, tmp_path)
    assert f'"{tmp_path / "out"}", the sink of "Hot", is gone' in text
    assert "DROP QUERY Hot and create it again" in text
    (tmp_path / "out").mkdir()
    sink(tmp_path / "out", "theirs").claim()
    assert "now holds the answer of" in refused(out.require_owned, tmp_path)


def test_a_directory_that_vanishes_is_not_made_again(tmp_path: Path) -> None:
    out = written(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    assert "is gone" in refused(lambda: out.write(1, 0, ROWS), tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_unfinished_batch_is_cleared_only_where_the_owner_is_this_query(tmp_path: Path) -> None:
    out = written(tmp_path / "out")
    out.clear(1)  # there is nothing
    out.clear(0)
    assert list(tree(tmp_path / "out")) == [OWNER_FILE]
    out.write(0, 0, ROWS)
    theirs = replace(out, owner=sink(tmp_path, "theirs").owner)
    assert "now holds the answer of" in refused(lambda: theirs.clear(0), tmp_path)
    (tmp_path / "out" / "batch=00000001").symlink_to(tmp_path / "out" / "batch=00000000")
    assert "cannot be written" in refused(lambda: out.clear(1), tmp_path)


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# In the local engine

BIDS = pl.DataFrame({"price": [10, 5, 15], "at": [1, 2, 6]})


def session(out: Path, more: str = "") -> tidemill.Session:
    local = tidemill.connect()
    local.put("bids", BIDS)
    local.sql(
        "CREATE STREAM bid (price BIGINT, at BIGINT) SOURCE memory('bids') ORDERED BY at;"
        f"CREATE QUERY q INTO parquet('{out}'{more}) AS SELECT price FROM bid"
    )
    return local


def test_a_second_run_does_not_remove_the_files_of_the_first(tmp_path: Path) -> None:
    first = session(tmp_path / "out")
    first.run()
    for again in (first, session(tmp_path / "out")):
        assert "holds the answer of query" in refused(again.run, tmp_path)


def test_a_second_run_replaces_the_files_if_it_says_so(tmp_path: Path) -> None:
    session(tmp_path / "out").run()
    again = session(tmp_path / "out", ", replace => true")
    again.run()
    again.put("bids", BIDS[:1])
    again.run()
    assert pl.read_parquet(tmp_path / "out/**/*.parquet")["price"].to_list() == [10]


def test_a_directory_with_partitions_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=7").mkdir(parents=True)
    BIDS.write_parquet(tmp_path / "out" / "batch=7" / "mine.parquet")
    for more in ("", ", replace => true"):
        text = refused(session(tmp_path / "out", more).run, tmp_path)
        assert "holds files of others" in text


def test_a_run_that_is_refused_for_another_sink_or_source_takes_nothing(tmp_path: Path) -> None:
    session(tmp_path / "out").run()
    (tmp_path / "file").write_text("in the way")
    again = session(tmp_path / "out", ", replace => true")
    again.sql(f"CREATE QUERY z INTO csv('{tmp_path / 'file'}') AS SELECT price FROM bid")
    assert "is a file" in refused(again.run, tmp_path)
    again.sql("DROP QUERY z; CREATE STREAM gone (at BIGINT) SOURCE csv('nothing') ORDERED BY at")
    again.sql("SELECT at FROM gone")
    assert "nothing to read" in refused(again.run, tmp_path)


def test_a_directory_that_vanishes_while_it_runs_stops_the_run(tmp_path: Path) -> None:
    again = session(tmp_path / "out")
    again.callback("remove", lambda _frame, _batch: shutil.rmtree(tmp_path / "out"))
    again.sql("CREATE QUERY a INTO callback('remove') AS SELECT price FROM bid")
    with pytest.raises(RunError, match="is gone"):
        again.run()
    assert not (tmp_path / "out").exists()


def test_replace_is_true_or_false(tmp_path: Path) -> None:
    with pytest.raises(BindError, match='option "replace" must be TRUE or FALSE'):
        session(tmp_path / "out", ", replace => 1")
    session(tmp_path / "out", ", form => 'changes', replace => false").run()
