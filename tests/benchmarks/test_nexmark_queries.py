"""NEXMark's queries on the local engine have the answers of DuckDB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pytest

import tidemill
from benchmarks.nexmark.check import compare, database_of, run, slow_site
from benchmarks.nexmark.generator import write
from benchmarks.nexmark.queries import ASKED, QUESTIONS
from benchmarks.questions.nexmark import COLUMNS, behind
from tidemill.demo.events import SECOND

if TYPE_CHECKING:
    from benchmarks.nexmark.question import Question
    from tidemill.demo.nexmark import Site

World: TypeAlias = tuple["Site", tidemill.Session, duckdb.DuckDBPyConnection]

BY_NAME = {question.name: question for question in QUESTIONS}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("site")
    site = slow_site(2_000, seed=1, disorder=SECOND // 2)  # the first of q2's auctions is in them
    write(directory, site, files=3)
    return site, run(site, directory, partitions=2), database_of(directory)


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.name)
def test_duckdb_finds_the_same_rows(world: World, question: Question) -> None:
    site, session, database = world
    answer = session.answer(question.name)
    results = answer.results()
    middle = results.row(results.height // 2, named=True)
    slide = (site.begins() + site.ends()) // 2 // (10 * SECOND) * 10 * SECOND
    asked = [
        middle["start"],
        middle["start"] - 1,
        slide - 1,
        site.ends(),
        site.ends() + 60 * SECOND,
    ]
    found = compare(question, answer, database, asked)
    assert not found.wrong
    assert found.rows


def test_a_wrong_answer_is_found(world: World) -> None:
    site, session, database = world
    assert BY_NAME["q5"].duckdb is not None
    other = replace(BY_NAME["q5"], duckdb=BY_NAME["q5"].duckdb.replace("10, 2", "10, 10"))
    at = site.ends() // (2 * SECOND) * 2 * SECOND - 1
    assert compare(other, session.answer("q5"), database, [at]).wrong == (at,)


def test_a_query_is_asked_or_said_to_be_missing() -> None:
    assert list(BY_NAME) == [f"q{number}" for number in range(24)]
    for question in QUESTIONS:
        assert (question.sql is None) == (question.duckdb is None) == (question.missing is not None)


def test_a_table_says_where_native_is_faster() -> None:
    place = COLUMNS.index("times native")

    def row(name: str, times: float | None) -> list[str | float | None]:
        cells: list[str | float | None] = [name, *[None] * (len(COLUMNS) - 1)]
        cells[place] = times
        return cells

    rows = [row("q0: all", 0.5), row("q4: means", None), row("q5: hot", 1.2), row("q13: more", 0.9)]
    assert behind(rows) == "behind native Spark: q0, q13"
    assert behind(rows[1:3]) == "behind native Spark: none"
