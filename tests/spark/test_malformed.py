"""Malformed rows on Spark: those that the local engine refuses, by the same policies."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

COLUMNS = "at BIGINT, x DECIMAL(6, 2), y VARCHAR NOT NULL"


def write_all(place: Path) -> dict[str, Path]:
    """A directory of each format, with rows that are right and others."""
    places = {kind: place / kind for kind in ("csv", "json", "parquet", "empty")}
    for directory in places.values():
        directory.mkdir()
    (places["csv"] / "1").write_text('at,x,y\n1,0.5,a\n2,0.555,b\n3,,"c\nd"\n4\n')
    (places["csv"] / "2").write_bytes(gzip.compress(b"y,x,at\n,1,5\ne,1e2,6\n"))
    (places["json"] / "1").write_text(
        '{"at": 1, "x": 0.5, "y": "a"}\n{"at": 2, "y": 7}\n{"at": 3.0, "y": "c", "z": {}}\n{]\n'
    )
    floats = pl.DataFrame({"at": [1.0, 2.5, 3.0], "x": ["1", "1", "x"], "y": ["a", "b", None]})
    floats.write_parquet(places["parquet"] / "1")
    (places["empty"] / "1").touch()
    return places


def declared(places: dict[str, Path], engine: str) -> tidemill.Session:
    options = {"master": MASTER, "partitions": 2} if engine == "spark" else {}
    session = tidemill.connect(engine=engine, **options)  # type: ignore[arg-type]
    for name, path in places.items():
        kind = "csv" if name == "empty" else name
        session.sql(
            f"CREATE STREAM {name} ({COLUMNS}) SOURCE {kind}('{path}') "
            "ORDERED BY at WITHIN 100 MALFORMED QUARANTINE"
        )
        session.sql(f"CREATE QUERY q_{name} AS SELECT at, x, y FROM {name}")
    frame = pl.read_parquet(places["parquet"] / "1")
    session.put("frame", frame)
    session.sql(f"CREATE STREAM mem ({COLUMNS}) SOURCE memory('frame') MALFORMED DROP")
    session.sql("CREATE QUERY q_mem AS SELECT at FROM mem")
    return session


def test_the_same_rows_are_malformed_as_in_the_local_engine(tmp_path: Path) -> None:
    places = write_all(tmp_path)
    found = {}
    for engine in ("local", "spark"):
        with declared(places, engine) as session:
            session.run()
            answers = {
                n: sorted(map(str, session.answer(f"q_{n}").results().rows())) for n in places
            }
            kept = {n: sorted(map(str, session.quarantine(n).rows())) for n in places}
            counts = session.answer("q_mem").results()["at"].to_list()
            found[engine] = answers, kept, session.refused().rows(), counts
    assert found["spark"] == found["local"]
    refused = found["spark"][2]
    assert refused == [
        ("csv", "malformed", 3),
        ("json", "malformed", 2),
        ("mem", "malformed", 2),
        ("parquet", "malformed", 2),
    ]


def test_a_malformed_row_stops_the_pipeline_and_is_shown(tmp_path: Path) -> None:
    places = write_all(tmp_path)
    with tidemill.connect(engine="spark", master=MASTER, partitions=2) as session:
        session.sql(f"CREATE STREAM s ({COLUMNS}) SOURCE csv('{places['csv']}') ORDERED BY at")
        session.sql("SELECT at FROM s")
        with pytest.raises(tidemill.RunError) as caught:
            session.run()
    assert str(caught.value) == (
        f'line 3 of file "{places["csv"] / "1"}" is malformed: '
        'column "x" has "0.555", which is not a DECIMAL(6,2)\n'
        "hint: fix it; a stream may be declared with MALFORMED QUARANTINE or MALFORMED DROP"
    )


def test_what_was_refused_is_there_after_a_restart(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()

    def opened() -> tidemill.Session:
        session = tidemill.connect(
            engine="spark", master=MASTER, partitions=1, checkpoint=tmp_path / "state"
        )
        session.sql(
            f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE csv('{source}') ORDERED BY t"
            " LATE QUARANTINE MALFORMED QUARANTINE"
        )
        session.sql("CREATE QUERY q AS SELECT k FROM s")
        return session

    with opened() as session:
        (source / "1.csv").write_text("k,t\n1,10\nx,11\n")
        session.run()
        (source / "2.csv").write_text("k,t\n2,3\n")
        session.run()
        before = session.quarantine("s"), session.refused()
    with opened() as session:
        session.start()
        session.await_idle()
        assert session.quarantine("s").equals(before[0])
        assert session.refused().equals(before[1])
    assert before[0]["reason"].to_list() == ["malformed", "late"]
    assert before[1].rows() == [("s", "late", 1), ("s", "malformed", 1)]
