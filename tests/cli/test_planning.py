"""Every setting of planning is an option of every command that plans queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.shop import write_shop
from tidemill.cli.app import app
from tidemill.cli.options import EngineName
from tidemill.connecting import DEFAULT_ENGINE, ENGINES, connect
from tidemill.planning import SETTINGS, Planning
from tidemill.runtime.planning import planner_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    import tidemill
    from tidemill.catalog.entries import QueryEntry
    from tidemill.optimizer import planning as optimizer
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics

COMMANDS = ("run", "explain", "check")
THREE = """
    CREATE QUERY three AS SELECT a.item FROM bid [RANGE 1 HOUR] a, bid [RANGE 1 HOUR] b,
      bid [RANGE 1 HOUR] c WHERE a.price = b.price AND b.price = c.price
      AND NOT EXISTS (SELECT 1 FROM bid d WHERE d.item = a.item);
"""
GIVEN = {
    "optimize": (["--no-optimize"], {"optimize": False}),
    "max_delay": (["--max-delay", "2.5"], {"max_delay": 2.5}),
    "for ever": (["--max-delay", "inf"], {"max_delay": None}),
    "technique": (["--technique", "direct"], {"technique": "direct"}),
    "joins": (
        ["--joins", "multiway", "--negation", "pulled"],
        {"joins": "multiway", "negation": "pulled"},
    ),
    "negation": (["--negation", "pulled"], {"negation": "pulled"}),
    "lazy": (
        ["--joins", "multiway", "--negation", "pulled", "--lazy", "5"],
        {"joins": "multiway", "negation": "pulled", "lazy": 5.0},
    ),
}


def called(command: str, script: Path, *options: str) -> Result:
    return CliRunner().invoke(app, [command, str(script), *options])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_is_an_option_with_the_default_of_planning(command: str) -> None:
    parameters = get_command(app).commands[command].params  # type: ignore[attr-defined]
    options = {parameter.name: parameter.default for parameter in parameters}
    usual = Planning()
    assert {name: options[name] for name in SETTINGS} == {
        name: getattr(usual, name) for name in SETTINGS
    }


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(("options", "settings"), GIVEN.values(), ids=list(GIVEN))
def test_the_options_reach_the_session(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    options: list[str],
    settings: dict[str, object],
) -> None:
    seen: list[object] = []

    def connected(*, planning: Planning, unbounded_state: bool, **_: object) -> tidemill.Session:
        seen.append(planning)
        return connect(planning=planning, unbounded_state=unbounded_state)

    monkeypatch.setattr(f"tidemill.cli.{command}.connect", connected)
    result = called(command, write_shop(tmp_path), *options)
    assert result.exit_code == 0, result.output
    assert seen == [Planning(**settings)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "settings"), GIVEN.values(), ids=list(GIVEN))
def test_the_options_reach_the_planner_of_explain(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    settings: dict[str, object],
) -> None:
    seen: list[object] = []

    def planner(chosen: optimizer.Planning) -> Callable[[QueryEntry, Statistics], Planned]:
        seen.append(chosen)
        return planner_of(chosen)

    monkeypatch.setattr("tidemill.cli.explain.planner_of", planner)
    result = called("explain", write_shop(tmp_path), *options)
    assert result.exit_code == 0, result.output
    assert seen == [Planning(**settings).for_optimizer()]  # type: ignore[arg-type]


@pytest.mark.parametrize("command", COMMANDS)
def test_settings_that_exclude_each_other_are_refused(tmp_path: Path, command: str) -> None:
    script = write_shop(tmp_path)
    result = called(command, script, "--lazy", "5")
    assert result.exit_code == 1
    assert "only joins of many inputs can be lazy" in result.stderr
    assert called(command, script, "--joins", "trinary").exit_code == 2


@pytest.mark.parametrize("options", [options for options, _ in GIVEN.values()], ids=list(GIVEN))
def test_explain_shows_the_plan_of_these_settings(tmp_path: Path, options: list[str]) -> None:
    """Each setting changes one of the texts of a query for which it matters."""
    script = write_shop(tmp_path, THREE)
    forms = ("--physical", "--stages", "--trace")
    usual = [called("explain", script, form).stdout for form in forms]
    other = [called("explain", script, form, *options).stdout for form in forms]
    assert all(usual) and all(other)  # noqa: PT018 — one sentence
    # How long a result is held back is no part of a plan's text.
    assert (other != usual) is ("--max-delay" not in options)


def test_one_place_says_where_queries_run() -> None:
    assert tuple(EngineName) == ENGINES
    for command in ("run", "demo"):
        parameters = get_command(app).commands[command].params  # type: ignore[attr-defined]
        (engine,) = (p.default for p in parameters if p.name == "engine")
        assert engine == DEFAULT_ENGINE
    assert connect.__kwdefaults__ is not None
    assert connect.__kwdefaults__["engine"] == DEFAULT_ENGINE
