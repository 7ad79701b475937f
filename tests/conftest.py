"""Options and profiles of the whole suite.

``--rewrite-golden`` rewrites expected outputs. How many examples of each law are tried is a
profile: ``ci`` by default, ``fast`` a few (``make fast``), ``more`` fifty times as many, with
other random numbers every time. HYPOTHESIS_PROFILE names one; ``--more`` is short for the last.
"""

from __future__ import annotations

import os
from threading import active_count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import golden
from tidemill.engine.pool import looking_on
from tidemill.runtime import settling

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = 8
COUNTS = {"fast": EXAMPLES, "ci": 2 * EXAMPLES, "more": 100 * EXAMPLES}

for name, count in COUNTS.items():
    settings.register_profile(
        name,
        derandomize=name != "more",
        max_examples=count,
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
def _threads_of_pytest() -> Iterator[None]:
    # Those that several processes talk through: none of them makes a call of Polars.
    with looking_on(active_count() - 1):
        yield


@pytest.fixture(autouse=True, scope="session")
def _files_are_complete() -> Iterator[None]:
    # Tests write their files to the end before anything reads them, and should not wait for it.
    before, settling.SETTLE = settling.SETTLE, 0.0
    yield
    settling.SETTLE = before


@pytest.fixture(autouse=True, scope="session")
def _rewrite_golden(request: pytest.FixtureRequest) -> Iterator[None]:
    golden.rewriting = bool(request.config.getoption("--rewrite-golden"))
    yield
    golden.rewriting = False
