"""The demonstration on Spark gives the answers of the local engine."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tidemill.cli.app import app

pytestmark = pytest.mark.spark


def test_spark_and_the_local_engine_agree() -> None:
    result = CliRunner().invoke(app, ["demo", "--engine", "spark", "--events", "4000"])
    assert result.exit_code == 0, result.output
    assert "agrees  the local engine gives the same rows" in result.stdout
