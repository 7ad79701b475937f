"""Queries and the plans they mean; mistakes and the texts people get to see."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden
import tidemill
from nexmark import auction_session

GOLDEN = Path(__file__).parent.parent / "golden"


def case_files(folder: str) -> list[golden.Case]:
    return [case for path in sorted((GOLDEN / folder).glob("*.txt")) for case in golden.cases(path)]


@pytest.mark.parametrize("case", case_files("plans"), ids=str)
def test_query_means_this_plan(case: golden.Case) -> None:
    assert case.directive == "plan"
    *before, query = case.input.split(";\n")
    session = auction_session()
    for statement in before:
        session.sql(statement)
    golden.check(case, str(session.sql(f"EXPLAIN LOGICAL {query}")))


@pytest.mark.parametrize("case", case_files("errors"), ids=str)
def test_mistake_gives_this_text(case: golden.Case) -> None:
    assert case.directive == "error"
    session = auction_session("spark" if case.arguments == ("spark",) else "local")
    catalog = session.catalog
    with pytest.raises(tidemill.TidemillError) as caught:
        session.sql(case.input)
    golden.check(case, f"{type(caught.value).__name__}: {caught.value}")
    if caught.value.statement is None:
        assert session.catalog is catalog, "a failing statement changes nothing"


@pytest.mark.parametrize("case", case_files("errors"), ids=str)
def test_every_mistake_says_where_and_how_to_go_on(case: golden.Case) -> None:
    lines = case.expected.splitlines()
    assert any(set(line.strip()) == {"^"} for line in lines)
    assert any(line.startswith("hint: ") for line in lines)


def test_there_are_at_least_forty_mistakes() -> None:
    assert len(case_files("errors")) >= 40
