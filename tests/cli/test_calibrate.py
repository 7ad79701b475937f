"""``tidemill calibrate`` measures constants, and writes them where sessions read them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import tidemill
from cli.shop import write_shop
from tidemill.calibration.calibrate import measured
from tidemill.calibration.streams import Load
from tidemill.cli import calibrate as command
from tidemill.cli.app import app
from tidemill.optimizer.constants import DEFAULTS, read_constants, write_constants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tidemill.optimizer.constants import Constants

TINY = (Load(5, 5, 2, 1),)


def calibrate(*options: str) -> Result:
    return CliRunner().invoke(app, ["calibrate", *options])


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The constants are found in no time; the list is told for how long they were to be sought."""
    asked: list[float] = []

    def found(seconds: float, progress: Callable[[int, int], None]) -> Constants:
        asked.append(seconds)
        progress(1, 1)
        return DEFAULTS

    monkeypatch.setattr(command, "measured", found)
    return asked


def test_what_is_measured_is_written_and_a_session_plans_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measured", partial(measured, TINY, 1))
    file = tmp_path / "constants.json"
    result = calibrate("--output", str(file), "--seconds", "0")
    assert result.exit_code == 0, result.output
    assert "the constants, measured in " in result.stdout
    found = read_constants(file.read_text(encoding="utf-8"), "a file")
    assert found != DEFAULTS
    ran = [cost.step for name, cost in found.operators.items()]
    assert sum(step > 0 for step in ran) > len(ran) / 2
    with tidemill.connect(constants=file) as session:
        session.sql("CREATE STREAM s (x BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
        query = session.query("SELECT x FROM s [RANGE 9] WHERE x > 3")
        assert query.explain("cost")
        assert session.planned(query.name).constants == found
    script = write_shop(tmp_path)
    shown = CliRunner().invoke(app, ["explain", str(script), "--constants", str(file)])
    assert shown.exit_code == 0, shown.output


def test_without_a_file_they_are_printed(known: list[float]) -> None:
    result = calibrate()
    assert result.exit_code == 0, result.output
    assert read_constants(result.stdout, "what is printed") == DEFAULTS
    assert known == [20.0]


def test_constants_are_replaced(tmp_path: Path, known: list[float]) -> None:
    file = tmp_path / "c.json"
    file.write_text(write_constants(DEFAULTS).replace("44.6", "7.0"), encoding="utf-8")
    assert calibrate("--output", str(file), "--seconds", "3").exit_code == 0
    assert file.read_text(encoding="utf-8") == write_constants(DEFAULTS)
    assert known == [3.0]


@pytest.mark.parametrize("content", [b"", b"{}", b"my only copy", b"\xff\xfe"])
def test_another_file_stays_as_it_is(tmp_path: Path, known: list[float], content: bytes) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    result = calibrate("--output", str(file))
    assert result.exit_code == 1
    assert "is there and holds no constants of the cost model" in result.stderr.replace("\n", " ")
    assert "hint: name another file, or remove it first" in result.stderr
    assert file.read_bytes() == content
    assert known == [], "it is refused before anything is measured"


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, known: list[float]) -> None:
    result = calibrate("--output", str(tmp_path / "none" / "c.json"))
    assert result.exit_code == 1
    assert "there is no directory" in result.stderr
    assert known == []


def test_a_file_that_is_damaged_is_refused_where_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(write_constants(DEFAULTS).replace('"batch": 0.0', '"batch": -1'), "utf-8")
    result = CliRunner().invoke(
        app, ["explain", str(write_shop(tmp_path)), "--constants", str(file)]
    )
    assert result.exit_code == 1
    assert '"batch" is -1; a cost is neither' in result.stderr.replace("\n", " ")
