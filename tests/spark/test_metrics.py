"""Metrics leave Spark: of operators where rows come in, and in all partitions of all stages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.test_resumed import COUNT, connected, give

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

QUERIES = {
    "plain": "SELECT k FROM s WHERE k > 2",
    "counts": COUNT,
    "named": "SELECT name FROM s [RANGE 3], r WHERE id = k AND name <> 'two'",
}


def ask(session: tidemill.Session, **more: str) -> None:
    for name, text in {**QUERIES, **more}.items():
        session.sql(f"CREATE QUERY {name} AS {text}")


def by_row(metrics: pl.DataFrame) -> dict[str, tuple[int, int, int]]:
    """The stage and the rows in and out of the operators that look at one row at a time."""
    kinds = r"^interval\.(Filter|Project|TimeWindow)"
    found = metrics.filter(metrics["operator"].str.contains(kinds))
    columns = ("fingerprint", "stage", "rows_in", "rows_out")
    return {row[0]: row[1:] for row in found.select(columns).iter_rows()}


def test_metrics_are_those_of_the_local_engine_and_begin_anew_with_a_session(
    tmp_path: Path,
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    give(source, 0)
    local = connected(None, source)
    ask(local)
    local.run()
    with connected(tmp_path, source) as session:
        ask(session)
        with pytest.raises(tidemill.RunError, match="nothing has been run yet"):
            session.metrics()
        session.run()
        first, progress = session.metrics(), session.progress()
        analyzed = str(session.sql("EXPLAIN ANALYZE counts")).splitlines()
        assert [line.partition("  | ")[0] for line in analyzed] == str(
            session.sql("EXPLAIN PHYSICAL counts")
        ).splitlines()
        figures = json.loads(str(session.sql("EXPLAIN ANALYZE FORMAT JSON counts")))
    assert first.schema == local.metrics().schema
    parts = {part["fingerprint"]: part.get("figures") for part in figures["analyzed"]["parts"]}
    for row in first.filter(first["queries"].list.contains("counts")).rows(named=True):
        told = parts[row["fingerprint"]]
        assert told == {name: row[name] for name in told}, "EXPLAIN ANALYZE has the same figures"
    assert by_row(first) == by_row(local.metrics())
    assert {stage for stage, *_ in by_row(first).values()} == {0, 1}
    assert first["state_rows"].sum() == progress.state_rows > 0
    assert first["state_bytes"].sum() == progress.state_bytes > 0
    assert first["watermark"].min() == 9, "the streams have not ended"
    (relation,) = first.filter(first["operator"].str.contains("Filter.*name")).rows(named=True)
    counted = [relation[name] for name in ("queries", "stage", "rows_in", "rows_out")]
    assert counted == [["named"], 0, 2, 1], "the rows of a relation count once"

    give(source, 1)
    with connected(tmp_path, source) as session:
        ask(session)
        session.run()
        again = session.metrics()
    assert again["fingerprint"].to_list() == first["fingerprint"].to_list()
    plain = again.filter(pl.col("operator").str.contains("k > 2"))
    assert plain["rows_in"].to_list() == [10], "it counts what came in this session"
    (before, after) = (
        m.filter(pl.col("operator").str.contains("Aggregate"))["state_rows"].item()
        for m in (first, again)
    )
    assert after > before, "what is remembered is what all sessions have left"

    # As if a query had run, whose state is not there.
    log = tmp_path / "state" / "batches.jsonl"
    lines = [{**json.loads(line), "ran": 9} for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    give(source, 2)
    with connected(tmp_path, source) as session:
        ask(session, other=COUNT.replace("100", "50"))
        with pytest.raises(tidemill.RunError, match='the state of query "other" is not in') as told:
            session.run()
        assert told.value.hint is not None
