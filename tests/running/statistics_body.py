"""What is measured of streams and relations, kept with the state, and shown; on any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tidemill

Shown: TypeAlias = dict[tuple[str, str, str], tuple[float, str]]

__all__ = ["DISTANCE", "ROWS", "VALUES", "declared", "measured_and_kept", "shown", "write"]

ROWS, DISTANCE, VALUES = 700, 1_000, 50
"""Of a file: so many rows, so far apart, with so many values of ``k``."""


def write(root: Path, number: int, distance: int = DISTANCE) -> None:
    """Write a file of the stream."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    frame = pl.DataFrame(
        {
            "k": [n % VALUES for n in ids],
            "v": [None if n % 4 == 0 else float(n % 10) for n in ids],
            "w": [f"w{n}" for n in ids],
            "t": [n * distance for n in ids],
        }
    )
    (root / "s").mkdir(exist_ok=True)
    frame.write_parquet(root / "s" / f"{number:03}.parquet")


def declared(session: tidemill.Session, root: Path) -> None:
    """Declare the stream and a relation."""
    pl.DataFrame({"k": range(VALUES), "sort": [n % 5 for n in range(VALUES)]}).write_parquet(
        root / "r.parquet"
    )
    session.sql(
        f"""
        CREATE STREAM s (k BIGINT, v DOUBLE, w VARCHAR, t BIGINT)
          SOURCE parquet('{root / "s"}', settle => 0) ORDERED BY t
          HINT (rate => 7, distinct(k) => 1000);
        CREATE RELATION r (k BIGINT, sort BIGINT) SOURCE parquet('{root / "r.parquet"}')
          HINT (rows => 9, distinct(sort) => 3, bytes => 70)
        """
    )


def shown(
    session: tidemill.Session, name: str = ""
) -> dict[tuple[str, str, str], tuple[float, str]]:
    """What SHOW STATISTICS says: the value and how it is known."""
    frame = session.sql(f"SHOW STATISTICS {name}")
    assert isinstance(frame, pl.DataFrame)
    return {row[:3]: row[3:5] for row in frame.rows()}


def measured_and_kept(connect: Callable[[], tidemill.Session], root: Path) -> pl.DataFrame:
    """Run, look, open it again, look, and run on; what is shown in the end.

    Args:
        connect: Makes a session on the checkpoint.
        root: Where everything is.
    """
    for number in range(3):
        write(root, number)
    session = connect()
    declared(session, root)
    before = shown(session)
    assert before["s", "rate", ""] == (7.0, "hint")
    assert before["s", "distinct", "k"] == (1000.0, "hint")
    assert before["s", "distinct", "v"] == (100.0, "assumed")
    assert before["r", "rows", ""] == (9.0, "hint")
    out = f"INTO parquet('{root / 'high'}')"
    session.sql(f"CREATE QUERY high {out} AS SELECT k, w FROM s [NOW] WHERE v >= 8")
    out = f"INTO parquet('{root / 'sorted'}')"
    session.sql(
        f"CREATE QUERY sorted {out} AS SELECT s.w, r.sort FROM s [RANGE 9 MILLISECONDS], r"
        " WHERE s.k = r.k"
    )
    session.run()
    found = shown(session)
    _assert_measured(found, 3 * ROWS)
    session.stop()
    session = connect()
    assert shown(session) == found, "what was measured is kept"
    write(root, 3)
    session.run()
    _assert_measured(shown(session), 4 * ROWS)
    frame = session.sql("SHOW STATISTICS")
    assert isinstance(frame, pl.DataFrame)
    session.stop()
    return frame


def _assert_measured(found: Shown, rows: int) -> None:
    assert all(how in ("measured", "defined") for _, how in found.values())
    value = {key: value for key, (value, _) in found.items()}
    assert value["s", "distance", ""] == pytest.approx(DISTANCE)
    assert value["s", "rate", ""] == pytest.approx(1_000_000 / DISTANCE)
    assert value["s", "granule", ""] == DISTANCE
    assert value["s", "distinct", "k"] == pytest.approx(VALUES, rel=0.05)
    assert value["s", "distinct", "v"] == pytest.approx(10, abs=1)
    assert value["s", "distinct", "w"] == pytest.approx(rows, rel=0.05)
    assert value["s", "null share", "v"] == pytest.approx(0.25, abs=0.02)
    assert value["r", "rows", ""] == VALUES
    assert value["r", "distinct", "sort"] == pytest.approx(5, abs=0.1)
    assert value["s", "selectivity", "8.0 <= s.v"] == pytest.approx(0.2, abs=0.06)
    assert value["r, s", "selectivity", "r.k = s.k"] == pytest.approx(1 / VALUES, rel=0.02)
