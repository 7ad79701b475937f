"""``tidemill demo`` runs five queries, shows their answers and says how they were checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from tidemill.cli.app import app
from tidemill.demo.checks import Check
from tidemill.demo.questions import QUESTIONS

if TYPE_CHECKING:
    import pytest

FEW = ["demo", "--engine", "local", "--events", "3000"]


def test_every_answer_is_shown_and_checked() -> None:
    result = CliRunner().invoke(app, FEW)
    assert result.exit_code == 0, result.output
    for question in QUESTIONS:
        assert question.says in result.stdout
        assert f"{question.name}: " in result.stdout
    assert result.stdout.count("agrees") == 2
    assert "(5 of 5)" in result.stdout


def test_another_seed_is_another_demonstration() -> None:
    shown = {CliRunner().invoke(app, [*FEW, "--seed", seed]).stdout[-3000:] for seed in "12"}
    assert len(shown) == 2


def test_an_answer_that_differs_is_said_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*_: object) -> Check:
        return Check("somebody finds other rows", ("hot_items",))

    monkeypatch.setattr("tidemill.cli.demo.at_one_instant", differs)
    result = CliRunner().invoke(app, FEW)
    assert result.exit_code == 1
    assert "differs somebody finds other rows: hot_items" in result.stdout
