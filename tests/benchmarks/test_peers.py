"""Other systems: who is not there is left out with a word, and no wrong answer has a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.harness.measure import Timing
from benchmarks.peers.asking import Answered, ask
from benchmarks.peers.compare import difference
from benchmarks.peers.install import main as install
from benchmarks.peers.queries import QUERIES
from benchmarks.peers.report import COLUMNS, Round, behind, left_out, line, rounds
from benchmarks.peers.systems import PEERS, TIDEMILL, System

if TYPE_CHECKING:
    from pathlib import Path

WANTED = pl.DataFrame({"key": [1, 1, 2], "x": [0.25, 0.25, 1.0], "y": [1.0, 1.0, 4.0]})
ROUND = Round("join", "small", 1, 6, PEERS[:1])


def answered(folder: Path, *outputs: pl.DataFrame, failure: str = "") -> Answered:
    files = tuple(folder / f"{number}.parquet" for number in range(len(outputs)))
    for file, rows in zip(files, outputs, strict=True):
        rows.write_parquet(file)
    return Answered(Timing((2.0, 1.0, 4.0)), Timing((3.0, 3.0)), files, failure)


def taking(seconds: float) -> Answered:
    return Answered(Timing((seconds,)), Timing((seconds,)), ())


def test_peers_that_are_not_installed_are_left_out_with_a_word(tmp_path: Path) -> None:
    rows = left_out(tmp_path)
    assert [row[1] for row in rows] == ["Bytewax", "Pathway", "Flink", "Siddhi"]
    assert {row[-1] for row in rows} == {"not installed: make peers"}
    assert all(len(row) == len(COLUMNS) for row in rows)


def test_a_peer_takes_part_once_its_very_packages_are_there(tmp_path: Path) -> None:
    peer = System("Peer", ("one==1", "two==2"), "all of it")
    ready = peer.ready(tmp_path)
    ready.parent.mkdir()
    ready.write_text("one==1\n", encoding="utf-8")
    assert peer.missing(tmp_path) == "installed with other packages: make peers"
    ready.write_text("one==1\ntwo==2\n", encoding="utf-8")
    assert peer.missing(tmp_path) is None


def test_the_reason_why_a_peer_could_not_be_installed_is_told(tmp_path: Path) -> None:
    PEERS[0].failure(tmp_path).write_text("ERROR: no wheel\n", encoding="utf-8")
    assert left_out(tmp_path)[0][-1] == "not installed: ERROR: no wheel"


def test_nobody_installs_a_peer_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        install(["nobody"])
    assert "there is no peer nobody; there are bytewax, " in capsys.readouterr().err


def test_rows_in_another_order_are_the_same_answer(tmp_path: Path) -> None:
    row = line(ROUND, PEERS[0], answered(tmp_path, WANTED, WANTED[::-1]), WANTED, own=taking(1.0))
    assert row[1:] == ("Bytewax", 1, 6, 2.0, 75, 3.0, 3, 0.5, 1 / 3, "equal")


def test_a_wrong_answer_in_any_run_has_no_time(tmp_path: Path) -> None:
    wrong = WANTED.with_columns(y=pl.Series([1.0, 1.0, 8.0]))
    row = line(ROUND, PEERS[0], answered(tmp_path, WANTED, wrong), WANTED, own=taking(1.0))
    assert row[4:-1] == (None,) * 6
    assert row[-1] == (
        "another answer: 2 rows differ, e.g. key 2, x 1.0, y 4.0 is there 0 times, not 1"
    )


def test_an_answer_without_a_column_has_no_time(tmp_path: Path) -> None:
    given = answered(tmp_path, WANTED.drop("y"))
    row = line(ROUND, PEERS[0], given, WANTED, own=taking(1.0))
    assert row[-1] == "another answer: columns key, x, not key, x, y"


def test_a_row_too_few_of_two_equal_ones_is_found() -> None:
    assert difference(WANTED[1:], WANTED) == (
        "another answer: 1 rows differ, e.g. key 1, x 0.25, y 1.0 is there 1 time, not 2"
    )


def test_a_peer_that_fails_is_told_so(tmp_path: Path) -> None:
    row = line(
        ROUND, PEERS[0], answered(tmp_path, failure="failed: no Java"), WANTED, own=taking(1.0)
    )
    assert row[4:] == (*(None,) * 6, "failed: no Java")


def test_a_script_that_breaks_is_a_failure_with_its_last_words(tmp_path: Path) -> None:
    script = System("Nobody", (), "nothing")
    found = ask(script, "sum", tmp_path, tmp_path, cores=1)
    assert found.timing is None
    assert found.failure.endswith("No module named benchmarks.peers.nobody_queries")


def test_tidemill_is_asked_whatever_a_peer_is_asked() -> None:
    found = rounds(PEERS, 2, lambda _, size: len(size))
    assert {round_.query for round_ in found} == set(QUERIES)
    for query in QUERIES:
        asked = [round_ for round_ in found if round_.query == query]
        assert sorted(p.name for r in asked for p in r.peers) == sorted(p.name for p in PEERS)
        assert len({(r.size, r.cores) for r in asked}) == len(asked)
    assert [r.peers for r in rounds((), 2, lambda *_: 0)] == [()] * len(QUERIES)


def test_where_tidemill_is_behind_is_told(tmp_path: Path) -> None:
    given = answered(tmp_path, WANTED)
    own = line(ROUND, TIDEMILL, given, WANTED, own=given)
    assert behind([own]) == "There is nobody to compare with."
    faster = line(ROUND, PEERS[0], given, WANTED, own=taking(5.0))
    assert behind([own, faster]) == (
        f"Tidemill is behind in: {QUERIES['join'].title} (Bytewax: 2.5 times as fast, 1.7 by CPU)."
    )
    slower = line(ROUND, PEERS[0], given, WANTED, own=taking(1.0))
    assert behind([own, slower]) == "Tidemill is not behind."
