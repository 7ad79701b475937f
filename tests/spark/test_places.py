"""Names never become paths: whatever a stream or query is called, files are where they belong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

import tidemill
from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.paths import word_of
from tidemill.runtime.record import Facts
from tidemill.runtime.sinks import sinks_of
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.io.places import file_logs_of, places_of
from tidemill.runtime.spark.state.batch_log import BatchLog
from tidemill.runtime.spark.state.opening import open_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LONG = "a" * 120
DIGEST = re.sub("^_", "", word_of(LONG))

NAMES = st.text(min_size=1, max_size=12) | st.text(alphabet="a_2 ./0Aß", max_size=6)


@given(names=st.lists(NAMES, min_size=2, max_size=5))
@example(names=["a b", "a_20_b", "a_5f_20_5f_b"])
@example(names=[LONG, DIGEST, "_" + DIGEST])
@example(names=[LONG, LONG + "a"])
@example(names=["", "_", "__", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"])
@example(names=["ﬁ", "fi", "İ", "i\u0307", "I"])
def test_words_differ_where_names_do_and_are_fit_for_files(names: list[str]) -> None:
    words = {name.lower(): word_of(name) for name in names}
    assert len(set(words.values())) == len(words)
    for word in words.values():
        assert re.fullmatch(r"[a-z0-9_]{1,100}", word)


HOSTILE = [
    "../../evil",
    "/etc/evil",
    "..",
    ".",
    "a/b",
    "nul\\con",
    "x" * 3000,
    "ä🙂",
    "a\u202eb",
    "~",
]


def test_hostile_names_stay_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    session = tidemill.connect()
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("k\n1\n")
    for number, name in enumerate(HOSTILE):
        session.put(name, pl.DataFrame({"k": [number]}))
        session.sql(f"CREATE STREAM \"{name}\" (k BIGINT) SOURCE memory('{name}')")
        session.sql(f"CREATE STREAM \"{name}f\" (k BIGINT) SOURCE csv('{source}')")
        session.sql(
            f"CREATE QUERY \"{name}q\" INTO csv('{tmp_path / 'out' / str(number)}') AS "
            f'SELECT k FROM "{name}"'
        )
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    settings = SparkSettings(checkpoint=str(tmp_path / "state"))
    checkpoint = open_checkpoint(settings, Facts((1,), 1, PLANNING.facts()))
    entries = session.catalog.entries(ObjectKind.STREAM)
    streams = {entry.name: entry for entry in entries if isinstance(entry, StreamEntry)}
    memory = {name: pl.DataFrame({"k": [number]}) for number, name in enumerate(HOSTILE)}
    places = places_of(streams, checkpoint, memory)
    for file_log in file_logs_of(places, checkpoint, BatchLog(checkpoint.batch_log)).values():
        file_log.look()
    queries = [e for e in session.catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
    for sink in sinks_of(queries, {}).values():
        assert isinstance(sink, FileSink)
        sink.owned_by("p", 0).check_new()
    for number, name in enumerate(HOSTILE):
        assert pl.read_parquet(f"{places[name].path}/*.parquet")["k"].to_list() == [number]
    session.run()
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    inside = (tmp_path / "state", tmp_path / "out")
    assert [path for path in new if not any(path.is_relative_to(root) for root in inside)] == []
    assert len({place.path for place in places.values()}) == len(HOSTILE) + 1
