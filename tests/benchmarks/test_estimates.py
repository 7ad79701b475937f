"""State and work of joins are as they are estimated, up to a factor of two."""

from __future__ import annotations

import pytest

import tidemill
from benchmarks.estimates.generated import Joins, declare
from benchmarks.estimates.runs import Case, Compared, Figures, compared
from benchmarks.questions.estimates import WITHIN
from tidemill.engine.pool import in_pool
from tidemill.optimizer.estimates import combinations as inner

SECONDS = 52
"""In which a thousand rows of the slowest stream come, so that what was measured of it counts."""

ASKED = (
    Joins("chain", 2, "DISTINCT"),
    Joins("star", 3, "SUM by two"),
    Joins("star", 4, "COUNT"),
)


def run(joins: Joins, seed: int = 7) -> Compared:
    frames = joins.frames(SECONDS, seed)
    with tidemill.connect() as session:
        declare(session, frames)
        case = Case(joins.sql, frames, "t", SECONDS, SECONDS // 2)
        return in_pool(compared)(session, case)


@pytest.mark.parametrize("joins", ASKED, ids=lambda joins: joins.name)
def test_joins_are_as_estimated(joins: Joins) -> None:
    found = run(joins)
    assert found.is_within(WITHIN)
    # The joins themselves are nearly exact.
    for part in found.parts:
        if "interval.Join" in part.text:
            assert part.held.is_within(1.2, 50)
            assert part.rows.is_within(1.25, 20)


def test_the_law_finds_results_that_are_counted_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inner, "met", lambda *_: None)
    assert not run(ASKED[-1]).is_within(WITHIN)


def test_what_is_few_is_within_any_factor() -> None:
    assert Figures(3, 90).is_within(2, 100)
    assert not Figures(3, 110).is_within(2, 100)
    assert Figures(100, 200).is_within(2, 1)
    assert not Figures(100, 201).is_within(2, 1)
    assert not Figures(100, 0).is_within(2, 1)
    assert Figures(1, 0).factor is None
