"""EXPLAIN COST: estimates for each part, and beside them what was measured while a query ran."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidemill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidemill.session import Session

GROUPS = """
    CREATE QUERY q AS SELECT k, MAX(v) AS top FROM s [RANGE 10 SECONDS SLIDE 1 SECOND]
    WHERE v >= 75 GROUP BY k
"""
TWICE = (
    "CREATE QUERY q AS SELECT a.v FROM s [RANGE 1 SECOND] a, s [RANGE 1 SECOND] b WHERE a.k = b.k"
)
STEP, ROWS = 1_000_000, 500


def write(folder: Path, number: int) -> None:
    """The rows of a second: values at random, as the model takes them to be."""
    n = pl.int_range(number * ROWS, (number + 1) * ROWS, eager=True)
    columns = {"k": n.hash(1) % 40, "v": n.hash(2) % 100, "t": n * (STEP // ROWS)}
    pl.DataFrame(columns).cast(pl.Int64).write_parquet(folder / f"{number:03}.parquet")


def figures(text: str) -> list[dict[str, float]]:
    """The figures of each line, by the heads of their columns."""
    head, *lines = text.splitlines()
    names = [(m.start(), m.end(), m[0]) for m in re.finditer(r"\S+", head)]
    found: list[dict[str, float]] = []
    for line in (line for line in lines if not line.startswith("decided")):
        row: dict[str, float] = {}
        before, last = 0, ""
        for _, end, name in names:
            last = name if name not in ("measured", "ratio") else last
            key = name if name == last else f"{last} {name}"
            cell = line[before:end].strip().replace(",", "")
            if cell:
                row[key] = float(cell)
            before = end
        found.append(row)
    return found


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with tidemill.connect() as made:
        made.sql(f"""
            CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT)
            SOURCE parquet('{tmp_path}/*.parquet', files_per_batch => 1, settle => 0) ORDERED BY t
            HINT (rate => {ROWS}, distinct(k) => 40, distinct(v) => 100)
        """)
        yield made


def cost_of(session: Session) -> str:
    text = session.sql("EXPLAIN COST q")
    assert isinstance(text, str)
    assert text == session.find("q").explain("cost")
    return text


def written(session: Session) -> dict[str, Any]:
    text = session.sql("EXPLAIN COST FORMAT JSON q")
    assert isinstance(text, str)
    found: dict[str, Any] = json.loads(text)
    cost: dict[str, Any] = found["cost"]
    return cost


@pytest.mark.parametrize("sql", [GROUPS, TWICE])
def test_the_parts_and_the_steps_are_the_whole(session: Session, sql: str) -> None:
    session.sql(sql)
    whole = written(session)
    costs = [part["cost"] for part in whole["parts"]]
    assert whole["cpu"] == pytest.approx(sum(one["cpu"] for one in costs) + whole["steps"])
    assert whole["memory"] == pytest.approx(sum(one["state_bytes"] for one in costs))
    assert whole["seconds"] is None
    assert not any("measured" in part for part in whole["parts"])
    text = cost_of(session)
    assert "measured" not in text
    physical = str(session.sql("EXPLAIN PHYSICAL q")).splitlines()
    lines = text.splitlines()[1:-2]
    shown = [line for line in physical if not line.startswith("decided")]
    assert len(lines) == len(shown), "a line for each part, in the same order"
    for line, same in zip(lines, shown, strict=True):
        assert same.strip().split("(")[0].split("  ")[0] in line


def test_a_part_that_is_used_twice_has_its_figures_once(session: Session) -> None:
    session.sql(TWICE)
    lines = cost_of(session).splitlines()
    (again,) = [line for line in lines if "see [1]" in line]
    assert again.strip() == "see [1]"
    (once,) = [line for line in lines if "[1] " in line and "see" not in line]
    assert re.match(r" +\d", once)


def test_a_query_that_runs_has_what_was_measured_beside_it(
    session: Session, tmp_path: Path
) -> None:
    for number in range(30):
        write(tmp_path, number)
    session.sql(GROUPS)
    session.start()
    try:
        session.await_idle()
        text, whole = cost_of(session), written(session)
        metrics = {row["fingerprint"]: row for row in session.metrics().to_dicts()}
    finally:
        session.stop()
    assert text.splitlines()[0].split() == [
        word for name in ("rows/s", "held", "bytes", "us/s") for word in (name, "measured", "ratio")
    ]
    seconds = whole["seconds"]
    assert seconds == pytest.approx(30, abs=0.1), "of the stream's time"
    compared = 0
    for part in whole["parts"]:
        if part["fingerprint"] in metrics:
            row, seen = metrics[part["fingerprint"]], part["measured"]
            assert seen["rows_out"] == pytest.approx(row["rows_out"] / seconds)
            assert (seen["state_rows"], seen["state_bytes"]) == (
                row["state_rows"],
                row["state_bytes"],
            )
            assert seen["cpu"] == pytest.approx(row["seconds"] * 1e6 / seconds)
            compared += 1
    assert compared >= 4
    rows = figures(text)
    for row in rows:
        for name in ("rows/s", "held", "bytes"):
            if f"{name} ratio" in row:
                assert 0.5 <= row[f"{name} ratio"] <= 2.0, f"{name}: {row}"
    held = [row for row in rows if row.get("held measured")]
    assert len(held) >= 2, "the aggregate, and all together"
    filtered = rows[-4]  # above the input, the steps and all together
    assert filtered["rows/s ratio"] == pytest.approx(1.0, abs=0.02), "it has been measured"


def test_what_has_stopped_has_its_work_and_no_state(session: Session, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, number)
    session.sql(GROUPS)
    session.run()
    rows = figures(cost_of(session))
    assert rows[-1]["us/s measured"] > 0
    assert rows[-1]["held measured"] == 0
    assert "held ratio" not in rows[-1]


def test_a_stream_of_which_nothing_is_known_is_marked() -> None:
    with tidemill.connect() as session:
        session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
        session.sql("CREATE QUERY q AS SELECT k FROM s [RANGE 9]")
        assert "Input s  assumed" in cost_of(session)
