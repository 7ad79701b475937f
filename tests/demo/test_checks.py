"""The checks find what is right, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tidemill.connecting import connect
from tidemill.demo.checks import at_one_instant, by_definition, same_answers
from tidemill.demo.nexmark import demo_site
from tidemill.demo.questions import QUESTIONS, script
from tidemill.demo.site import declarations, write_site

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.demo.nexmark import Site
    from tidemill.session import Session


def answered(place: Path, site: Site, *, partitions: int = 1) -> Session:
    if not place.exists():
        write_site(site, place, files=3)
    session = connect(partitions=partitions)
    session.sql(declarations(site, place))
    session.sql(script())
    session.run()
    return session


@pytest.mark.parametrize("seed", [1, 2])
def test_duckdb_agrees(tmp_path: Path, seed: int) -> None:
    events = demo_site(5_000, seed=seed)
    check = at_one_instant(answered(tmp_path / "site", events), events, tmp_path)
    assert "DuckDB" in check.what
    assert check.differing == ()


def test_the_reference_evaluator_agrees(tmp_path: Path) -> None:
    check = by_definition(tmp_path)
    assert "reference" in check.what
    assert check.differing == ()


def test_without_duckdb_the_reference_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = demo_site(1_000, seed=1)
    session = answered(tmp_path / "site", events)
    monkeypatch.setattr("tidemill.demo.checks.find_spec", lambda _: None)
    assert "reference evaluator" in at_one_instant(session, events, tmp_path).what


def test_other_events_give_other_answers(tmp_path: Path) -> None:
    events = demo_site(2_000, seed=1)
    session = answered(tmp_path / "site", events)
    others = demo_site(2_000, seed=2)
    # As many people may bid by accident.
    names = {question.name for question in QUESTIONS} - {"bidders"}
    assert names <= set(at_one_instant(session, others, tmp_path).differing)
    other = answered(tmp_path / "other", others)
    assert names <= set(same_answers(session, other, what="").differing)


def test_partitions_give_the_same_answers(tmp_path: Path) -> None:
    events = demo_site(2_000, seed=1)
    one = answered(tmp_path / "site", events)
    three = answered(tmp_path / "site", events, partitions=3)
    assert same_answers(one, three, what="").differing == ()


def test_a_row_too_many_is_found(tmp_path: Path) -> None:
    events = demo_site(2_000, seed=1)
    one, other = answered(tmp_path / "site", events), answered(tmp_path / "site", events)
    answer = other.answer("high_bids")
    answer.read([pl.concat([answer.results().head(1)])])
    assert same_answers(one, other, what="").differing == ("high_bids",)
