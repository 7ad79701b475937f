"""Streams from formats of Spark's, by name."""

from __future__ import annotations

import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import orc

import tidemill
from connectors.package import install
from spark.on_spark import MASTER
from tidemill.connectors.registry import installed
from tidemill.model.time import to_datetime

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

PATIENCE = 120
BIDS = pl.DataFrame(
    {
        "item": ["pen", "cup"],
        "price": pl.Series(["1.50", "2.25"]).cast(pl.Decimal(10, 2)),
        "at": pl.Series([1_000_000, 2_000_000]).cast(pl.Datetime("us")),
        "note": ["new", None],
    }
)
COLUMNS = "(at TIMESTAMP, item VARCHAR, price DECIMAL(12, 3))"


def write_orc(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    table = BIDS.to_arrow(compat_level=pl.CompatLevel.oldest())
    types = [pa.string() if pa.types.is_large_string(f.type) else f.type for f in table.schema]
    orc.write_table(table.cast(pa.schema(list(zip(table.column_names, types, strict=True)))), path)


def on_spark(*statements: str, trigger: float = 0) -> tidemill.Session:
    session = tidemill.connect(engine="spark", master=MASTER, partitions=2, trigger=trigger)
    for statement in statements:
        session.sql(statement)
    return session


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def failure(source: str) -> str:
    session = on_spark(f"CREATE STREAM bid {COLUMNS} SOURCE {source} ORDERED BY at")
    session.sql("SELECT item FROM bid")
    with session, pytest.raises(tidemill.RunError) as caught:
        session.start()
    return str(caught.value)


def test_streams_of_several_formats_run_side_by_side(tmp_path: Path) -> None:
    write_orc(tmp_path / "bids" / "1.orc")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.txt").write_text("one line\nand another\n")
    session = on_spark(
        "CREATE STREAM tick (value BIGINT, timestamp TIMESTAMP) "
        "SOURCE rate(rowsPerSecond => 50, numPartitions => 2) ORDERED BY timestamp",
        f"CREATE STREAM bid {COLUMNS} SOURCE orc('{tmp_path / 'bids'}') ORDERED BY at",
        "CREATE STREAM line (VALUE VARCHAR) "
        f"SOURCE spark('text', '{tmp_path / 'lines'}', wholetext => TRUE)",
        trigger=0.5,
    )
    ticks = query(session, "SELECT value FROM tick WHERE value % 2 = 0")
    bids = query(session, "SELECT * FROM bid")
    lines = query(session, "SELECT value FROM line")
    begin = monotonic()
    with session:
        session.start()
        while any(q.results().height < n for q, n in ((ticks, 40), (bids, 2), (lines, 1))):
            assert monotonic() < begin + PATIENCE, session.progress()
            sleep(0.2)
        taken = monotonic() - begin
    values = sorted(ticks.results()["value"])
    assert values == list(range(0, 2 * len(values), 2)), "every second tick, once"
    assert bids.results().drop("start", "end").rows() == BIDS.select("at", "item", "price").rows()
    assert bids.results()["start"].to_list() == [to_datetime(1_000_000), to_datetime(2_000_000)]
    assert lines.results()["VALUE"].to_list() == ["one line\nand another\n"]
    assert session.progress().batches <= taken / 0.5 + 1, "one batch in half a second at most"


def test_the_columns_of_files_that_are_yet_to_come_are_those_declared(tmp_path: Path) -> None:
    bids = tmp_path / "bids"
    bids.mkdir()
    with on_spark(f"CREATE STREAM bid {COLUMNS} SOURCE orc('{bids}') ORDERED BY at") as session:
        all_ = query(session, "SELECT item, price FROM bid")
        session.start()
        write_orc(bids / "1.orc")
        session.await_idle()
        assert all_.results()["item"].to_list() == ["pen", "cup"]


def test_a_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_orc(tmp_path / "bids" / "1.orc")
    text = failure("orcs('x')")
    assert 'the source of "bid" cannot be read as orcs: Failed to find the data source' in text
    text = failure("spark('jsn', 'x')")
    assert 'did you mean "json"?' in text
    text = failure(f"orc('{tmp_path / 'nothing'}')")
    assert 'the source of "bid" cannot be read as orc: Path does not exist' in text
    text = failure(f"text('{tmp_path / 'bids'}')")
    assert 'the source of "bid" has no column "at"' in text
    text = failure("rate()")
    assert 'the source of "bid" has no column "at"' in text
    assert "hint: the columns are timestamp, value" in text
    text = failure("orc()")
    assert "'path' is not specified" in text


LINES = """
from tidemill.connectors.connector import Connector, Guarantee, Positions, SinkSide, SourceSide
from tidemill.connectors.connector import Engine
from tidemill.connectors.options import Flag, Option, Text

TAKEN = []
PATH = Option("path", Text(), "Where", required=True, positional=True)
WHOLE = Option("wholetext", Flag(), "Whether a file is one line", default=False)
LINES = Connector(
    "lines",
    "Lines of text",
    SourceSide((PATH, WHOLE), Positions.REPLAYABLE, relations=False, format="text"),
    SinkSide((), Guarantee.AT_LEAST_ONCE, open=lambda given: lambda *taken: TAKEN.append(taken)),
    frozenset({Engine.SPARK}),
)
"""


def test_a_connector_of_another_package_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_text("one\ntwo\n")
    install(tmp_path, "shop_lines", "lines = shop_lines:LINES", LINES)
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    try:
        stream = f"CREATE STREAM line (value VARCHAR) SOURCE lines('{tmp_path / 'in'}')"
        with on_spark(stream) as session:
            session.sql("CREATE QUERY q INTO lines() AS SELECT value FROM line")
            session.run()
        taken = sys.modules["shop_lines"].TAKEN
        assert [sorted(frame["value"]) for frame, _ in taken] == [["one", "two"]]
    finally:
        installed.cache_clear()
