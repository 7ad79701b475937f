"""A batch that Spark replays gives what it gave: times of arrival, idle streams, late rows as well.

A batch is replayed if Spark has computed it and not noted that it is done. Here the note is taken
away, which is what a kill at the worst moment does.
"""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

QUERIES = {
    "counted": "SELECT k, COUNT(*) AS n FROM a [RANGE 5] GROUP BY k",
    "alike": "SELECT k, COUNT(*) AS n FROM a [RANGE 7] WHERE k > 0 GROUP BY k",
    "plain": "SELECT k, at FROM a WHERE k >= 0",
    "arrived": "SELECT k FROM t [RANGE 1 SECOND]",
    "united": (
        "SELECT x.k AS k, COUNT(*) AS n FROM "
        "(SELECT k FROM a [RANGE 5] UNION ALL SELECT k FROM b [RANGE 5]) x GROUP BY x.k"
    ),
}


def connected(place: Path) -> tidemill.Session:
    session = tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=place / "state"
    )
    session.sql(
        f"""
        CREATE STREAM a (k BIGINT, at BIGINT) SOURCE parquet('{place / "a"}')
            ORDERED BY at LATE QUARANTINE;
        CREATE STREAM b (k BIGINT, at BIGINT) SOURCE parquet('{place / "b"}')
            ORDERED BY at IDLE AFTER 1 SECOND;
        CREATE STREAM t (k BIGINT) SOURCE parquet('{place / "t"}');
        """
    )
    for name, text in QUERIES.items():
        session.sql(f"CREATE QUERY {name} INTO parquet('{place / name}') AS {text}")
    return session


def give(place: Path, stream: str, number: int, columns: dict[str, list[int]]) -> None:
    pl.DataFrame(columns).write_parquet(place / stream / f".{number}")
    (place / stream / f".{number}").rename(place / stream / f"{number}.parquet")


def written(place: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every query, batch by batch."""
    return {
        f"{name} {batch.name}": sorted(pl.read_parquet(batch / "*.parquet").rows())
        for name in QUERIES
        for batch in (place / name).glob("batch=*")
    }


def take_back_the_last_commit(checkpoint: Path) -> None:
    """Let Spark compute the last batch again."""
    commits = sorted((checkpoint / "spark" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_a_replayed_batch_gives_what_it_gave(tmp_path: Path) -> None:
    for name in "abt":
        (tmp_path / name).mkdir()
    give(tmp_path, "a", 0, {"k": [1, 2], "at": [10, 11]})
    give(tmp_path, "b", 0, {"k": [1], "at": [12]})
    give(tmp_path, "t", 0, {"k": [1]})
    with connected(tmp_path) as session:
        session.start()
        session.await_idle()
        assert not any(
            name.startswith("united") and rows for name, rows in written(tmp_path).items()
        )
        sleep(1.2)  # b falls silent
        give(tmp_path, "a", 1, {"k": [1, 2, 7], "at": [30, 31, 9]})
        give(tmp_path, "t", 1, {"k": [2]})
        session.await_idle()
        give(tmp_path, "a", 2, {"k": [1, 8], "at": [50, 29]})
        session.await_idle()
        assert session.quarantine("a").rows() == [(7, 9, "late"), (8, 29, "late")]
        session.stop()
    before = written(tmp_path)
    assert sum(len(rows) for name, rows in before.items() if name.startswith("united")) >= 3
    assert [
        row[0] for name, rows in sorted(before.items()) for row in rows if "arrived" in name
    ] == [
        1,
        2,
    ]

    take_back_the_last_commit(tmp_path / "state")
    with connected(tmp_path) as session:
        session.start()
        session.await_idle()
        assert session.quarantine("a").rows() == [(7, 9, "late"), (8, 29, "late")], "each once"
        assert session.refused().rows() == [("a", "late", 2)]
        session.stop()
        assert written(tmp_path) == before
        session.run(end=True)
    local = tidemill.connect()
    for name in "ab":
        local.sql(
            f"CREATE STREAM {name} (k BIGINT, at BIGINT) "
            f"SOURCE parquet('{tmp_path / name}') ORDERED BY at"
        )
    expected = local.sql(QUERIES["counted"])
    local.run()
    assert isinstance(expected, tidemill.Query)
    answer = pl.read_parquet(tmp_path / "counted" / "*" / "*.parquet")
    assert sorted(answer.rows()) == sorted(expected.results().rows())


def test_a_replayed_batch_is_not_that_of_another_query_of_the_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    give(tmp_path, "a", 0, {"k": [1, 2], "at": [10, 11]})
    got: list[tuple[int, list[str]]] = []
    place = tmp_path / "state"
    with tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=place) as session:
        session.callback("got", lambda rows, batch: got.append((batch, rows.columns)))
        session.sql(
            "CREATE STREAM a (k BIGINT, at BIGINT)"
            f" SOURCE parquet('{tmp_path / 'a'}') ORDERED BY at"
        )
        session.sql(f"CREATE QUERY called INTO callback('got') AS {QUERIES['counted']}")
        session.sql(f"CREATE QUERY stays AS {QUERIES['alike']}")
        session.sql(f"CREATE QUERY here AS {QUERIES['counted']}")
        session.start()
        session.await_idle()
        give(tmp_path, "a", 1, {"k": [1, 2], "at": [30, 31]})
        session.await_idle()
        session.stop()
        take_back_the_last_commit(place)
        session.sql("DROP QUERY called; DROP QUERY here")
        session.sql("CREATE QUERY called INTO callback('got') AS SELECT at FROM a [NOW]")
        here = session.query("CREATE QUERY here AS SELECT at FROM a [NOW]")
        session.start()
        session.await_idle()
        give(tmp_path, "a", 2, {"k": [3, 4], "at": [40, 41]})
        session.await_idle()
        assert sorted(here.results()["at"]) == [40, 41]
    assert got == [(1, ["k", "n", "start", "end"]), (2, ["at", "start", "end"])]
