"""``tidemill ask`` answers a SELECT, or WHY, of one instant, from a checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.shop import SCRIPT, write_shop
from tidemill import connect
from tidemill.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

TOP = "SELECT item, top FROM QUERY top ORDER BY top DESC"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The checkpoint of a pipeline that has read all files."""
    script = write_shop(tmp_path)
    text = SCRIPT.format(bids=tmp_path / "bids").replace("ORDERED BY at", "ORDERED BY at KEEP ALL")
    script.write_text(text, encoding="utf-8")
    directory = tmp_path / "state"
    ran = CliRunner().invoke(app, ["run", str(script), "--checkpoint", str(directory), "--once"])
    assert ran.exit_code == 0, ran.output
    return directory


def ask(checkpoint: Path, query: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["ask", str(checkpoint), query, *options])


def test_it_prints_the_rows_of_the_last_instant_that_is_known(checkpoint: Path) -> None:
    result = ask(checkpoint, f"{TOP} LIMIT 1")
    assert result.exit_code == 0, result.output
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "at 2026-03-01 12:02:59.999999: 1 row",
        " item   top",
        "────────────",
        " pen     10",
        "known up to 2026-03-01 12:03:00, after batch 0",
    ]


@pytest.mark.parametrize("at", ["2026-03-01T12:00:30", "1772366430000000"])
def test_it_asks_of_any_instant_and_as_json(checkpoint: Path, at: str) -> None:
    result = ask(checkpoint, TOP, "--at", at, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "at": 1_772_366_430_000_000,
        "known": 1_772_366_580_000_000,
        "batch": 0,
        "rows": [{"item": "pen", "top": 10}],
    }


def test_it_says_why_a_row_is_there(checkpoint: Path) -> None:
    result = ask(checkpoint, "WHY top WHERE item = 'pen'")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "at 2026-03-01 12:02:59.999999",
        "item=pen, top=10",
        "└─ Aggregate max(price) by item · Window range=3m",
        (
            "   └─ bid 0  at=2026-03-01 12:00:00, item=pen, price=10"
            "  from 2026-03-01 12:00:00 to 2026-03-01 12:03:00"
        ),
        "known up to 2026-03-01 12:03:00, after batch 0",
    ]


def test_it_says_why_a_row_is_not_there(checkpoint: Path) -> None:
    result = ask(checkpoint, "WHY NOT top WHERE item = 'cup'", "--at", "2026-03-01T12:00:30")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:3] == [
        "at 2026-03-01 12:00:30",
        "no such row",
        "└─ bid: there is no row of which item = 'cup' is true",
    ]


def test_it_says_why_as_json(checkpoint: Path) -> None:
    query = "WHY ALL top WHERE item = 'pen'"
    result = ask(checkpoint, query, "--at", "2026-03-01T12:00:30", "--json")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1
    with connect(checkpoint=checkpoint, read_only=True) as session:
        told = session.why(f"{query} AT '2026-03-01T12:00:30'")
    assert json.loads(result.stdout) == json.loads(told.json())
    assert told.rows("bid")["price"].to_list() == [10]


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("WHY top AT 5", "the instant is given twice, by AT and by at"),
        ("WHY tap", 'there is no query, table or derived stream "tap"'),
        ("WHY top WHERE", "WHY top WHERE"),
        ("WHY top; WHY top", "expected one query, found another"),
    ],
)
def test_what_it_cannot_explain_is_an_error(checkpoint: Path, query: str, match: str) -> None:
    result = ask(checkpoint, query, "--at", "7")
    assert result.exit_code == 1
    assert match in result.stderr


def test_what_is_not_known_yet_is_an_error(checkpoint: Path) -> None:
    result = ask(checkpoint, f"{TOP} AS OF '2026-03-01T12:03:00'", "--wait", "0.1")
    assert result.exit_code == 1
    assert "known up to 2026-03-01 12:03:00" in result.stderr


def test_it_needs_a_checkpoint(tmp_path: Path) -> None:
    result = ask(tmp_path / "none", TOP)
    assert result.exit_code == 1
    assert "there is no checkpoint" in result.stderr
    assert not (tmp_path / "none").exists()


def test_it_changes_nothing(checkpoint: Path) -> None:
    result = ask(checkpoint, "DROP QUERY top")
    assert result.exit_code == 1
    assert "only a SELECT can be asked" in result.stderr
