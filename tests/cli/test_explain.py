"""``tidemill explain`` prints the plan of every query of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.shop import GROWING, write_shop
from tidemill.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

TWO = "CREATE QUERY dear AS SELECT item FROM bid WHERE price > 9;"


def explain(script: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["explain", str(script), *options])


def test_every_query_has_its_plan(tmp_path: Path) -> None:
    result = explain(write_shop(tmp_path, TWO))
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "-- dear\n"
        "Project item\n"
        "  Filter price > 9\n"
        "    Source bid\n"
        "\n"
        "-- top\n"
        "Project item, max(price) AS top\n"
        "  Aggregate max(price) by item\n"
        "    Window range=3m\n"
        "      Source bid\n"
    )


@pytest.mark.parametrize(
    ("option", "text"),
    [("--logical", "Window range=3m"), ("--physical", "Exchange by item"), ("--trace", "=>")],
)
def test_a_plan_has_several_forms(tmp_path: Path, option: str, text: str) -> None:
    result = explain(write_shop(tmp_path), option)
    assert result.exit_code == 0, result.output
    assert text in result.stdout


@pytest.mark.parametrize("option", ["--logical", "--physical", "--stages", "--trace"])
def test_as_json_each_query_is_a_line_with_its_name(tmp_path: Path, option: str) -> None:
    result = explain(write_shop(tmp_path, TWO), option, "--json")
    assert result.exit_code == 0, result.output
    written = [json.loads(line) for line in result.stdout.splitlines()]
    assert [plan["query"] for plan in written] == ["dear", "top"]
    assert all(option.removeprefix("--") in plan and "plan" in plan for plan in written)


def test_only_one_form_can_be_asked_for(tmp_path: Path) -> None:
    assert explain(write_shop(tmp_path), "--trace", "--physical").exit_code == 2


def test_queries_whose_state_grows_can_be_looked_at(tmp_path: Path) -> None:
    result = explain(write_shop(tmp_path, GROWING))
    assert result.exit_code == 0, result.output


def test_queries_that_need_spark_can_be_looked_at(tmp_path: Path) -> None:
    result = explain(write_shop(tmp_path, "CREATE QUERY o INTO orc('o') AS SELECT item FROM bid;"))
    assert result.exit_code == 0, result.output


def test_a_mistake_ends_with_1(tmp_path: Path) -> None:
    result = explain(write_shop(tmp_path, "SELECT prise FROM bid;"))
    assert result.exit_code == 1
    assert 'column "prise" does not exist' in result.stderr


def test_a_file_without_a_query_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "empty.sql"
    script.write_text("-- nothing yet", encoding="utf-8")
    assert explain(script).exit_code == 1
