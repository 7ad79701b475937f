"""``tidemill check`` reads nothing and says what a file defines, or what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.shop import GROWING, write_shop
from tidemill.cli.app import app
from tidemill.errors import PlanError
from tidemill.optimizer import phases

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


def check(script: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["check", str(script), *options])


def test_what_is_defined_is_listed(tmp_path: Path) -> None:
    more = "CREATE FUNCTION twice(x INTEGER) AS x + x; CREATE STREAM pens AS SELECT at FROM bid;"
    result = check(write_shop(tmp_path, more))
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "stream bid at TIMESTAMP, item VARCHAR, price INTEGER" in lines
    assert "stream pens at TIMESTAMP" in lines
    assert "query top item VARCHAR, top INTEGER" in lines
    assert "function twice x INTEGER" in lines
    assert lines[-1].endswith("shop.sql: ok, 1 query")


def test_sources_need_not_be_there(tmp_path: Path) -> None:
    script = tmp_path / "far.sql"
    script.write_text(
        "CREATE STREAM s (x INTEGER) SOURCE parquet('nowhere'); SELECT x FROM s; SELECT 1 FROM s;",
        encoding="utf-8",
    )
    result = check(script)
    assert result.exit_code == 0
    assert result.stdout.endswith("far.sql: ok, 2 queries\n")


def test_what_is_asked_once_is_checked_and_not_answered(tmp_path: Path) -> None:
    asked = "SELECT item, price FROM bid [RANGE 1 MINUTE] ORDER BY price AS OF '2026-03-01';"
    result = check(write_shop(tmp_path, f"{asked} SELECT * FROM QUERY top AS OF NOW;"))
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("shop.sql: ok, 1 query\n")


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("SELECT item FROM bid ORDER BY prize AS OF '2026-03-01';", '"prize"'),
        ("SELECT * FROM QUERY tip AS OF NOW;", 'no query "tip"'),
        ("SELECT item FROM bid AS OF 'soon';", "soon"),
    ],
)
def test_a_mistake_in_what_is_asked_once_is_told(tmp_path: Path, asked: str, error: str) -> None:
    result = check(write_shop(tmp_path, asked))
    assert result.exit_code == 1
    assert error in result.stderr


def test_a_mistake_is_shown_with_a_caret(tmp_path: Path) -> None:
    result = check(write_shop(tmp_path, "SELECT item FORM bid;"))
    assert result.exit_code == 1
    assert "^" in result.stderr
    assert "Traceback" not in result.output


def test_what_the_chosen_engine_does_not_have_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "spark.sql"
    script.write_text(
        "CREATE STREAM s (x BIGINT) SOURCE rate(rowsPerSecond => 5); SELECT x FROM s;",
        encoding="utf-8",
    )
    assert check(script, "--engine", "spark").exit_code == 0
    result = check(script)
    assert result.exit_code == 1
    assert 'the local engine has no connector "rate"' in result.stderr
    assert "^^^^" in result.stderr


@pytest.mark.parametrize(
    "sink", ["parqet('out')", "parquet('out', form => 'delta')", "console(rows => -1)"]
)
def test_a_sink_that_no_engine_has_is_refused(tmp_path: Path, sink: str) -> None:
    result = check(write_shop(tmp_path, f"CREATE QUERY q INTO {sink} AS SELECT item FROM bid;"))
    assert result.exit_code == 1
    assert "^" in result.stderr


def test_queries_that_would_write_over_each_other_are_refused(tmp_path: Path) -> None:
    both = "CREATE QUERY {0} INTO parquet('{1}') AS SELECT item FROM bid;"
    result = check(write_shop(tmp_path, both.format("a", "out") + both.format("b", "out/in")))
    assert result.exit_code == 1
    assert 'queries "a" and "b" write to places of which one is inside the other' in result.stderr


def test_growing_state_is_refused_unless_asked_for(tmp_path: Path) -> None:
    script = write_shop(tmp_path, GROWING)
    assert check(script).exit_code == 1
    assert check(script, "--unbounded-state").exit_code == 0


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_plan_that_the_planner_refuses_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    def refuse(*_: object) -> None:
        raise PlanError("the planner made a plan that cannot run: it is a test")

    monkeypatch.setattr(phases, "check_plan", refuse)
    result = check(write_shop(tmp_path), "--engine", engine)
    assert result.exit_code == 1
    assert "cannot run: it is a test" in result.stderr
    assert "ok," not in result.stdout


def test_no_spark_is_started_or_even_imported(tmp_path: Path) -> None:
    script = write_shop(tmp_path, "CREATE QUERY o INTO orc('o') AS SELECT item FROM bid;")
    code = (
        "import sys; from typer.testing import CliRunner; from tidemill.cli.app import app\n"
        f"done = CliRunner().invoke(app, ['check', {str(script)!r}, '--engine', 'spark'])\n"
        "print(done.exit_code, 'pyspark' in sys.modules)"
    )
    told = subprocess.run(  # noqa: S603 — our own Python
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout == "0 False\n"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    script = write_shop(tmp_path)
    script.write_text("\ufeff" + script.read_text(encoding="utf-8"), encoding="utf-8")
    assert check(script).exit_code == 0


def test_a_missing_file_is_wrong_use(tmp_path: Path) -> None:
    assert check(tmp_path / "nowhere.sql").exit_code == 2
