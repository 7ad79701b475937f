"""Options and profiles of the whole suite.

``--rewrite-golden`` rewrites expected outputs; ``--more`` tries twenty times as many examples of
each law, with other random numbers every time. HYPOTHESIS_PROFILE names a profile as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import golden

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = 8

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "more",
    max_examples=20 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="rewrite expected outputs")
    parser.addoption("--more", action="store_true", help="many more examples of each law")


def pytest_configure(config: pytest.Config) -> None:
    profile = "more" if config.getoption("--more") else os.environ.get("HYPOTHESIS_PROFILE", "ci")
    settings.load_profile(profile)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    # Two processes would overwrite each other's expectations, so rewriting ignores -n.
    if config.getoption("--rewrite-golden") and hasattr(config.option, "numprocesses"):
        config.option.numprocesses = 0


@pytest.fixture(autouse=True, scope="session")
def _rewrite_golden(request: pytest.FixtureRequest) -> Iterator[None]:
    golden.rewriting = bool(request.config.getoption("--rewrite-golden"))
    yield
    golden.rewriting = False
