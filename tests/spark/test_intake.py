"""Where rows come in: files become messages of bounded size. No Spark is needed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import polars as pl
import pyarrow as pa
import pytest

import tidemill
from plans import implement
from tidemill.catalog.entries import StreamEntry
from tidemill.engine import ingest
from tidemill.engine.ingest import Refused
from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.physical.fragments import build_graph
from tidemill.runtime.files import read_file
from tidemill.runtime.measuring.sample import Sample
from tidemill.runtime.reading import blocks, parquet_files, parquet_groups
from tidemill.runtime.reading.parquet_groups import UNREAD
from tidemill.runtime.spark.io import sources
from tidemill.runtime.spark.io.sources import Needed, _file_pieces
from tidemill.runtime.spark.worker import intake
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.intake import Origin, take_in
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 500


GROUPS = "SELECT x, COUNT(*) AS n FROM s [RANGE 5] GROUP BY x"


def messages_of(path: Path, clauses: str = "") -> list[Message]:
    """What the rows of a CSV file become in a task."""
    return list(in_a_task(path, clauses))


def in_a_task(
    path: Path, clauses: str = "", *, kind: str = "csv", text: str = GROUPS, reads_all: bool = True
) -> Iterator[Message]:
    """What the rows of a file become in a task, one after another."""
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (t BIGINT, x VARCHAR) SOURCE {kind}('{path}') ORDERED BY t {clauses}"
    )
    query = session.sql(text)
    assert isinstance(query, tidemill.Query)
    stream = session.catalog.find("s")
    assert isinstance(stream, StreamEntry)
    graph = build_graph({"q": implement(query.plan)})
    stages = max(1, len(graph.fragments) - 1)
    deployment = Deployment(graph, {"s": stream}, {}, (0, 1), stages, reads_all=reads_all)
    entries = pa.record_batch(
        {"number": [3], "path": [str(path)], "size": [-1], "changed": [0]}  # it may change
    )
    origin, refused = Origin(0, 0, Time(0)), Refused(stream)
    needed = Needed(rows=deployment.wanted.get("s"))
    pieces = _file_pieces(kind, stream)([entries], origin, refused.add_malformed, needed)
    return take_in(deployment, "s", pieces, origin, refused=refused)


def test_a_large_file_becomes_several_messages_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.csv"
    path.write_text("t,x\n" + "".join(f"{n},{'x' * 40}{n % 3}\n" for n in range(ROWS)))
    monkeypatch.setattr(blocks, "BLOCK", 8_000)
    monkeypatch.setattr(intake, "_MESSAGE_BYTES", 2_000)
    frames = [m.rows() for m in messages_of(path) if m.kind is Kind.ROWS]
    assert sum(frame.height for frame in frames) == ROWS
    assert max(frame.estimated_size() for frame in frames) <= 2_000


def test_row_groups_that_are_not_wanted_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.parquet"
    frame = pl.select(t=pl.int_range(60)).with_columns(x=pl.format("{}", pl.col("t") // 10 % 5))
    frame.write_parquet(path, row_group_size=10, use_pyarrow=True)
    monkeypatch.setattr(parquet_groups, "_WORTH_IT", 1)
    for name in ("_AT_ONCE_ROWS", "_MOST_ROWS", "_SAMPLE_ROWS"):
        monkeypatch.setattr(parquet_files, name, 7)
    read: list[int] = []

    def noting(*args: Any, **options: Any) -> Iterator[pl.DataFrame]:  # noqa: ANN401 — as they are
        for piece in read_file(*args, **options):
            if UNREAD in piece.columns:
                read.append(piece.filter(UNREAD).height)
            yield piece

    monkeypatch.setattr(sources, "read_file", noting)
    text = "SELECT t FROM s WHERE x = '3'"
    some, all_ = (
        [seen(one) for one in in_a_task(path, kind="parquet", text=text, reads_all=reads_all)]
        for reads_all in (False, True)
    )
    assert some == all_
    assert sum(read) == 60 - 10 - 7, "those of the first piece are read in any case"


def seen(message: Message) -> object:
    """What a message says, but for how long it took, and what was sampled."""
    if message.kind in (Kind.ROWS, Kind.ANSWER):
        return message.kind, message.channel, message.rows().rows()
    facts = message.facts()
    operators = facts.get("operators", {})
    assert isinstance(operators, dict)
    return message.kind, {**facts, "sample": None, "operators": sorted(operators)}


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_large_file_is_read_in_bounded_pieces_one_after_another(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file, no more is in memory at a time than a piece, however large it is."""
    path, count = tmp_path / f"1.{kind}", 40_000
    frame = pl.select(t=pl.int_range(count)).with_columns(x=pl.format("{}" + "x" * 60, "t"))
    match kind:
        case "csv":
            frame.write_csv(path)
        case "json":
            frame.write_ndjson(path)
        case _:
            frame.write_parquet(path)
    for module in (blocks, parquet_files):
        monkeypatch.setattr(module, "BLOCK", 100_000)
    read: list[int] = []

    def noting(*args: Any, **options: Any) -> Iterator[pl.DataFrame]:  # noqa: ANN401 — as they are
        for piece in read_file(*args, **options):
            read.append(piece.height)
            yield piece

    monkeypatch.setattr(sources, "read_file", noting)
    given = in_a_task(path, kind=kind, text="SELECT t, x FROM s")
    most = 100_000 // 60
    for answered, message in enumerate(m for m in given if m.kind is Kind.ANSWER):
        assert message.rows().height <= most
        assert len(read) <= answered + 1, "the next piece is read when this one has left"
    assert sum(read) == count
    assert max(read) <= most


def test_rows_that_are_kept_leave_with_their_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.csv"
    path.write_text("t,x\n" + "bad,x\n1,y\n" * 100)
    monkeypatch.setattr(blocks, "BLOCK", 200)
    messages = messages_of(path, "MALFORMED QUARANTINE")
    kept = [m.rows() for m in messages if m.kind is Kind.KEPT]
    assert len(kept) > 3
    assert [line for frame in kept for line in frame["@line"]] == list(range(2, 202, 2))
    (counts,) = (m.facts() for m in messages if m.channel == "stream s")
    assert counts == {
        "rows": 100,
        "files": 4,
        "notes": 1,
        "latest": 1,
        "refused": {"malformed": 100},
        "operators": {},
        "sample": ANY,
    }
    sample = Sample.read(counts["sample"])  # type: ignore[arg-type]
    assert (sample.rows, sample.latest, sample.looked_at) == (100, 1, 100)


def test_a_file_has_no_more_rows_than_there_are_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.csv"
    path.write_text("t,x\n" + "1,y\n" * 40)
    monkeypatch.setattr(blocks, "BLOCK", 40)
    monkeypatch.setattr(ingest, "_ROW_BITS", 5)
    with pytest.raises(RunError, match="a file has more than 32 rows"):
        messages_of(path)
