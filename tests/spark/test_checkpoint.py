"""What a checkpoint knows and refuses, without Spark.

Kills are played by stopping between two steps and opening the checkpoint again.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.errors import BindError, RunError
from tidemill.lang.statements import ConnectorCall, Name, ObjectKind
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.opening import forget_queries
from tidemill.runtime.paths import word_of
from tidemill.runtime.record import FORMAT, Asked, Facts, KnownQuery, asked_of
from tidemill.runtime.sinks import Destination, FormatSink, destination_of, sinks_of
from tidemill.runtime.spark.driver.checks import check_queries
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.io.places import check_sources
from tidemill.runtime.spark.state.opening import open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidemill.runtime.spark.state.checkpoint import Checkpoint

HOT = Asked("abc", "SELECT x FROM s", Destination("parquet", "/out", "results"))
COLD = Asked("def", "SELECT y FROM s", Destination())
SCHEMA = Schema((Field("x", BIGINT), Field("name", VARCHAR)))
ROWS = pl.DataFrame({"x": [1, 2], "name": ["a", None]})
RELATION = RelationEntry("R", SCHEMA, ConnectorCall(Name("csv"), ("r.csv",)))
STREAM = StreamEntry("S", SCHEMA, ConnectorCall(Name("csv"), ("in",)), "x")
ANSWER = [pl.DataFrame({"x": [7], "name": ["a"], START: [1], END: [2]})]
NEW = Facts((2, 3), 1, PLANNING.facts())


@contextmanager
def opened(directory: Path | None, facts: Facts = NEW) -> Iterator[Checkpoint]:
    settings = SparkSettings(checkpoint=None if directory is None else str(directory))
    checkpoint = open_checkpoint(settings, facts)
    try:
        yield checkpoint
    finally:
        checkpoint.close()


def start(
    directory: Path, queries: dict[str, Asked], relation: pl.DataFrame | None = None
) -> dict[str, int]:
    """What a start does with a checkpoint; the epochs of the queries."""
    with opened(directory) as checkpoint:
        epochs = checkpoint.check_queries(queries)
        checkpoint.check_streams({"S": STREAM})
        checkpoint.create()
        kept = {}
        if relation is not None:
            kept["R"] = RELATION, checkpoint.keep_relation(RELATION, relation)
        known = {n: KnownQuery(a, epochs[n], "v") for n, a in queries.items()}
        checkpoint.record(known, {"S": STREAM}, kept)
        return epochs


def refused(directory: Path, queries: dict[str, Asked]) -> RunError:
    """The error of a start, which leaves everything but the lock as it was."""
    before = tree(directory)
    with pytest.raises(RunError) as caught:
        start(directory, queries)
    assert tree(directory) == before
    return caught.value


def tree(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


# Queries


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "null", "{}", '{"version": 1, "parts": []}', '{"version": 9}', "[" * 100_000],
)
def test_a_plan_that_is_no_plan_is_refused(tmp_path: Path, damage: str) -> None:
    start(tmp_path, {"hot": HOT})
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "v.json").write_text(damage)
    with (
        opened(tmp_path) as checkpoint,
        pytest.raises(RunError, match='the plan of query "hot" in the checkpoint'),
    ):
        checkpoint.kept_plan("hot")


def test_a_query_is_known_by_its_name(tmp_path: Path) -> None:
    assert start(tmp_path, {"Hot": HOT}) == {"Hot": 0}
    assert start(tmp_path, {"hot": HOT, "cold": COLD}) == {"hot": 0, "cold": 1}
    assert start(tmp_path, {"HOT": HOT, "cold": COLD}) == {"HOT": 0, "cold": 1}


def test_the_same_plan_may_be_written_otherwise(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT})
    assert start(tmp_path, {"hot": replace(HOT, text="SELECT s.x FROM s")}) == {"hot": 0}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (replace(HOT, meaning="xyz", text="SELECT 1 FROM s"), "that one asks SELECT x FROM s"),
        (
            replace(HOT, meaning="xyz"),
            "the text is the same, but a stream, view or function",
        ),
        (
            replace(HOT, sink=Destination("csv", "/out", "results")),
            'it writes to csv("/out") as results, and that one to parquet("/out") as results',
        ),
        (replace(HOT, sink=replace(HOT.sink, form="changes")), 'to parquet("/out") as changes, '),
        (replace(HOT, sink=Destination()), "it writes to memory, and"),
    ],
)
def test_another_query_of_the_same_name_is_refused(
    tmp_path: Path, changed: Asked, why: str
) -> None:
    start(tmp_path, {"hot": HOT})
    error = refused(tmp_path, {"hot": changed})
    assert error.message.startswith('query "hot" is not the one that this checkpoint runs: ')
    assert why in error.message
    assert error.hint is not None
    assert "DROP QUERY hot and create it again" in error.hint


def test_a_query_that_is_not_created_is_refused(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT, "cold": COLD})
    error = refused(tmp_path, {"hot": HOT})
    assert 'runs query "cold", which this session does not create' in error.message
    assert error.hint == ("create it before start(), or write DROP QUERY cold to give up its state")
    assert 'runs queries "cold", "hot", which' in refused(tmp_path, {"new": HOT}).message


def test_a_dropped_query_is_forgotten_but_not_its_epoch(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT})
    assert not forget_queries(tmp_path, "spark", "cold".__eq__)
    assert forget_queries(tmp_path, "spark", "hot".__eq__)
    assert not forget_queries(tmp_path, "spark", "hot".__eq__)
    assert start(tmp_path, {"hot": replace(HOT, meaning="xyz")}) == {"hot": 1}
    with opened(tmp_path) as checkpoint:
        assert checkpoint.check_queries({}, dropped=["Hot"]) == {}
    assert not forget_queries(tmp_path / "nothing", "spark", "hot".__eq__)
    assert not (tmp_path / "nothing").exists()


def test_after_the_end_nothing_is_missing(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT, "cold": COLD})
    with opened(tmp_path) as checkpoint:
        checkpoint.end()
    with opened(tmp_path) as checkpoint:
        assert checkpoint.check_queries({"hot": HOT}) == {"hot": 0}


def test_what_could_not_be_started_is_not_known(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT})
    with opened(tmp_path) as checkpoint:
        before = checkpoint.facts
        both = {"hot": KnownQuery(HOT, 0, "v"), "cold": KnownQuery(COLD, 1, "v")}
        checkpoint.record(both, {}, {})
        checkpoint.know(before)
    assert start(tmp_path, {"hot": HOT}) == {"hot": 0}


def entry(text: str) -> QueryEntry:
    session = tidemill.connect(engine="spark")
    session.sql("CREATE STREAM s (x BIGINT) SOURCE csv('in')")
    session.sql(text)
    (found,) = session.catalog.entries(ObjectKind.QUERY)
    assert isinstance(found, QueryEntry)
    return found


def asked(text: str) -> Asked:
    query = entry(text)
    sinks = sinks_of([query], {"f": print})
    return asked_of(query, sinks.get(query.name))


def test_no_secret_of_a_sink_is_written_down() -> None:
    found = asked("CREATE QUERY q INTO jdbc(url => 'db', password => 'pa55') AS select x from s")
    assert "pa55" not in repr(found)
    assert found.text == "SELECT x FROM s"
    assert found.sink.kind == "jdbc"


def test_a_sink_is_the_same_wherever_its_secrets_or_its_looks_change(tmp_path: Path) -> None:
    def jdbc(**options: str) -> Destination:
        return destination_of(FormatSink("q", SCHEMA, "jdbc", "", options))

    assert jdbc(url="a", password="x") == jdbc(url="a", password="y")  # noqa: S106
    assert jdbc(url="a") != jdbc(url="b")
    into = [
        "console()",
        "callback('f')",
        "memory()",
        f"csv('{tmp_path}')",
        f"csv('{tmp_path}', form => 'changes')",
        f"json('{tmp_path}')",
        "csv('elsewhere')",
    ]
    sinks = [asked(f"CREATE QUERY q INTO {sink} AS SELECT x FROM s").sink for sink in into]
    assert len(set(sinks)) == len(into)
    assert sinks[0] == asked("CREATE QUERY q INTO console(rows => 1) AS SELECT x FROM s").sink
    assert sinks[2] == asked("SELECT x FROM s").sink
    replacing = asked(f"CREATE QUERY q INTO csv('{tmp_path}', replace => true) AS SELECT x FROM s")
    assert sinks[3] == replacing.sink


# Where it is, and whose


def test_a_checkpoint_has_an_identity_for_life(tmp_path: Path) -> None:
    for name in "ab":
        start(tmp_path / name, {})
    ids = []
    for name in "aab":
        with opened(tmp_path / name, replace(NEW, pipeline="other")) as checkpoint:
            ids.append(checkpoint.facts.pipeline)
    assert ids == [NEW.pipeline] * 3, "what is written wins"
    assert Facts((), 1, {}).pipeline != Facts((), 1, {}).pipeline


def test_a_checkpoint_that_is_not_where_it_was_made_is_refused(tmp_path: Path) -> None:
    made, copy, link = tmp_path / "made", tmp_path / "copy", tmp_path / "link"
    start(made, {"hot": HOT})
    shutil.copytree(made, copy)
    error = refused(copy, {"hot": HOT})
    assert error.message.startswith(f'the checkpoint "{copy}" was made at "{made}"')
    link.symlink_to(made)
    assert start(link, {"hot": HOT}) == {"hot": 0}
    made.rename(tmp_path / "away")
    assert "was made at" in refused(tmp_path / "away", {"hot": HOT}).message
    with pytest.raises(RunError, match="was made at"):
        forget_queries(tmp_path / "away", "spark", "hot".__eq__)
    (tmp_path / "away").rename(made)
    assert start(made, {"hot": HOT}) == {"hot": 0}


def test_a_start_that_is_refused_writes_nothing_but_a_lock(tmp_path: Path) -> None:
    with opened(tmp_path / "new") as checkpoint:
        assert checkpoint.facts.place == str(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]
    (tmp_path / "new" / ".tidemill.json.part").write_text("{")  # killed while it was written
    assert start(tmp_path / "new", {"hot": HOT}) == {"hot": 0}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert "is not a checkpoint" in refused(tmp_path / "other", {}).message


def test_an_older_format_is_refused(tmp_path: Path) -> None:
    start(tmp_path, {})
    record = json.loads((tmp_path / "tidemill.json").read_text())
    assert record["format"] == FORMAT == 7
    for content in (json.dumps({**record, "format": 5}), "{", "[]", json.dumps({"format": 7})):
        (tmp_path / "tidemill.json").write_text(content)
        assert "has format 5" in (text := refused(tmp_path, {}).message) or "is damaged" in text


def test_a_temporary_checkpoint_leaves_nothing() -> None:
    with opened(None) as checkpoint:
        checkpoint.create()
        assert checkpoint.directory.is_dir()
        assert checkpoint.lasting_place is None
        assert checkpoint.facts.pipeline
    assert not checkpoint.directory.exists()


# Streams and relations


def test_a_stream_is_what_it_was(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT}, ROWS)
    with opened(tmp_path) as checkpoint:
        checkpoint.check_streams({"s": replace(STREAM, within=5)})
        with pytest.raises(RunError, match='stream "s" is not the one'):
            checkpoint.check_streams({"s": replace(STREAM, time_column=None)})
        with pytest.raises(RunError, match='stream "r" is not the one'):
            checkpoint.check_streams({"r": replace(STREAM, name="r")})


def test_a_path_means_the_same_files_wherever_the_session_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    start(tmp_path / "state", {"hot": HOT})
    whole = ConnectorCall(Name("csv"), (str(tmp_path / "in"),))
    monkeypatch.chdir(tmp_path / "elsewhere")
    with (
        opened(tmp_path / "state") as checkpoint,
        pytest.raises(RunError, match='stream "s" is not the one'),
    ):
        checkpoint.check_streams({"s": STREAM})
    with opened(tmp_path / "other") as checkpoint:
        checkpoint.check_streams({"s": replace(STREAM, source=whole)})


@pytest.mark.parametrize(
    "declared",
    [
        replace(RELATION, source=ConnectorCall(Name("csv"), ("other.csv",))),
        replace(RELATION, schema=Schema((Field("x", BIGINT), Field("n", VARCHAR)))),
        replace(RELATION, key=("x",)),
        replace(RELATION, retroactive=False),
        replace(RELATION, name="S"),
    ],
)
def test_a_relation_that_is_declared_anew_is_refused(
    tmp_path: Path, declared: RelationEntry
) -> None:
    start(tmp_path, {"hot": HOT}, ROWS)
    with (
        opened(tmp_path) as checkpoint,
        pytest.raises(RunError, match=f'relation "{declared.name}" is not the one'),
    ):
        checkpoint.check_relation(declared, None)


def test_a_relation_is_a_constant(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT}, ROWS)
    with opened(tmp_path) as checkpoint:
        for now in (ROWS, ROWS[::-1], replace_chunks(ROWS), None):
            kept = checkpoint.check_relation(replace(RELATION, name="r"), now)
            assert pl.read_ipc_stream(kept).equals(ROWS)
        for now in (ROWS[:1], pl.concat([ROWS, ROWS]), ROWS.with_columns(name=pl.lit("a"))):
            with pytest.raises(RunError, match='relation "R" has other rows'):
                checkpoint.check_relation(RELATION, now)


def replace_chunks(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame[:1], frame[1:]], rechunk=False)


def test_a_kill_before_the_record_leaves_the_old_rows(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT}, ROWS)
    with opened(tmp_path) as checkpoint:  # all queries that read it are dropped, others begin
        checkpoint.keep_relation(RELATION, ROWS[:1])
    with opened(tmp_path) as checkpoint:
        assert pl.read_ipc_stream(checkpoint.check_relation(RELATION, ROWS)).equals(ROWS)


def test_rows_of_a_relation_that_are_damaged_are_found(tmp_path: Path) -> None:
    start(tmp_path, {"hot": HOT}, ROWS)
    (file,) = (tmp_path / "relations").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with opened(tmp_path) as checkpoint:
        with pytest.raises(RunError, match="are damaged"):
            checkpoint.check_relation(RELATION, None)
        file.unlink()
        with pytest.raises(RunError, match="cannot be read"):
            checkpoint.check_relation(RELATION, None)


@pytest.mark.parametrize("name", ["../../evil", "/evil", "a/b", "..", "x" * 300, "é\0"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / "deep" / "state") as checkpoint:
        checkpoint.keep_relation(replace(RELATION, name=name), ROWS)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock")
    assert file.parent == tmp_path / "deep" / "state" / "relations"


NAMES = st.text() | st.text("ab_20/. ", max_size=8) | st.text("a/", min_size=90, max_size=120)


@given(NAMES, NAMES)
def test_different_names_have_different_words(one: str, other: str) -> None:
    for name in (one, other, word_of(one)):
        assert word_of(name).isascii()
        assert word_of(name).replace("_", "").isalnum() or not name
        assert len(word_of(name)) < 110
    assert (word_of(one) == word_of(other)) == (one.lower() == other.lower())


def test_a_name_that_is_the_digest_of_another_has_another_word() -> None:
    long = "x" * 200
    assert len({word_of(long), word_of(word_of(long)), word_of(word_of(long)[1:])}) == 3


def test_a_frame_that_a_stream_has_read_is_a_constant(tmp_path: Path) -> None:
    stream = replace(STREAM, source=ConnectorCall(Name("memory"), ("f",)))
    with opened(tmp_path) as checkpoint:
        with pytest.raises(RunError, match='no frame "f"'):
            check_sources({"s": stream}, checkpoint, {})
        checkpoint.frame(word_of("s"), lambda: ROWS)
        check_sources({"s": stream}, checkpoint, {"f": ROWS})
        check_sources({"s": stream}, checkpoint, {})
        with pytest.raises(RunError, match='frame "f" is not the one'):
            check_sources({"s": stream}, checkpoint, {"f": ROWS[:1]})


# Kills


def begin(state: Path, out: Path, *, steps: int) -> None:
    """A start with a new query and its first batch, killed after so many of its effects."""
    queries = {"cold": COLD, "hot": HOT}
    with opened(state) as checkpoint:
        epochs = checkpoint.check_queries(queries)
        assert epochs == {"cold": 0, "hot": 1}
        sink = FileSink("hot", "csv", str(out), SCHEMA).owned_by(checkpoint.facts.pipeline, 1)
        is_known = "hot" in checkpoint.facts.queries
        (sink.require_owned if is_known else sink.check_new)()

        def effects() -> Iterator[None]:
            checkpoint.create()
            yield
            if not is_known:
                sink.claim()
            yield
            relations = {"R": (RELATION, checkpoint.keep_relation(RELATION, ROWS))}
            yield
            known = {n: KnownQuery(a, epochs[n], "v") for n, a in queries.items()}
            checkpoint.record(known, {}, relations)
            yield
            sink.write(0, 0, ANSWER)
            yield

        for _ in islice(effects(), steps):
            pass


@pytest.mark.parametrize("steps", range(6))
def test_a_start_that_is_killed_after_any_step_can_be_repeated(tmp_path: Path, steps: int) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    start(state, {"cold": COLD})
    begin(state, out, steps=steps)
    begin(state, out, steps=6)
    with opened(state) as checkpoint:
        assert pl.read_ipc_stream(checkpoint.check_relation(RELATION, ROWS)).equals(ROWS)
    assert pl.read_csv(out / "*/*.csv")["x"].to_list() == [7]


@pytest.mark.parametrize("place", ["", "control", "spark/state"])
def test_a_sink_inside_the_checkpoint_is_refused(tmp_path: Path, place: str) -> None:
    state, link = tmp_path / "state", tmp_path / "link"
    link.symlink_to(state)
    session = tidemill.connect()
    session.sql("CREATE STREAM s (x BIGINT) SOURCE memory('s')")
    session.sql(f"CREATE QUERY q INTO json('{link / place}') AS SELECT x FROM s")
    queries = [e for e in session.catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
    with opened(state) as checkpoint:
        before = tree(tmp_path)
        with pytest.raises(RunError, match='the sink of "q", is inside the checkpoint'):
            check_queries(
                checkpoint,
                session.catalog,
                queries,
                sinks_of(queries, {}),
                SparkSettings(checkpoint=str(state)),
                memory={},
                dropped=(),
                compared=(),
            )
        assert tree(tmp_path) == before


# DROP QUERY on a session that does not run


def test_drop_reaches_queries_that_only_the_checkpoint_knows(tmp_path: Path) -> None:
    state = tmp_path / "state"
    start(state, {"hot": HOT, "cold": COLD})
    session = tidemill.connect(engine="spark", checkpoint=state)
    session.sql("DROP QUERY hot")
    session.sql("DROP QUERY IF EXISTS hot")
    with pytest.raises(BindError, match='there is no query "hot"'):
        session.sql("DROP QUERY hot")
    session.sql("CREATE STREAM cold (x BIGINT) SOURCE csv('in')")
    with pytest.raises(BindError, match='"cold" is a stream'):
        session.sql("DROP QUERY cold")
    session.sql("DROP STREAM cold; CREATE STREAM s (x BIGINT) SOURCE csv('in')")
    session.sql("CREATE QUERY cold AS SELECT x FROM s; DROP QUERY cold")
    with opened(state) as checkpoint:
        assert checkpoint.facts.queries == {}
        assert checkpoint.facts.latest == 0


def test_a_session_keeps_its_checkpoint_when_it_changes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path / "state", {"hot": HOT})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    session = tidemill.connect(engine="spark", checkpoint="state")
    monkeypatch.chdir(tmp_path / "elsewhere")
    session.sql("DROP QUERY hot")
    with opened(tmp_path / "state") as checkpoint:
        assert not checkpoint.facts.queries


def test_drop_without_a_checkpoint_is_what_it_was(tmp_path: Path) -> None:
    for session in (
        tidemill.connect(engine="spark"),
        tidemill.connect(engine="spark", checkpoint=tmp_path / "new"),
        tidemill.connect(),
    ):
        with pytest.raises(BindError, match='there is no query "hot"'):
            session.sql("DROP QUERY hot")
    assert not (tmp_path / "new").exists()
