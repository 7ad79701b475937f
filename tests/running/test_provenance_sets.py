"""The rows of an answer with the sets of rows that they were made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import NAMED, PAIRS, TOTAL, define, write
from tidemill.lang import parse_one, unparse
from tidemill.lang.statements import OneTimeQuery, Why
from tidemill.provenance.encode import Encoding, decode

if TYPE_CHECKING:
    from pathlib import Path


def session_over(root: Path) -> tidemill.Session:
    write(root / "in", 0, 40)
    session = tidemill.connect()
    define(session, root / "in", keep="KEEP ALL")
    session.sql(f"CREATE QUERY total WITH PROVENANCE KEEP ALL AS {TOTAL}")
    session.run()
    return session


@pytest.mark.parametrize("text", [TOTAL, NAMED, PAIRS])
def test_an_answer_has_a_set_beside_each_row(tmp_path: Path, text: str) -> None:
    session = session_over(tmp_path)
    found = session.sql(f"{text.replace('SELECT', 'SELECT PROVENANCE', 1)} AS OF 30")
    plain = session.sql(f"{text} AS OF 30")
    assert isinstance(found, pl.DataFrame)
    assert isinstance(plain, pl.DataFrame)
    assert found.drop("provenance").equals(plain)
    flat = session.why(f"WHY ALL ({text}) AT 30")
    for answer, row in enumerate(flat.sets().iter_rows(named=True)):
        told = [(one["stream"], one["id"]) for one in row["provenance"]]
        assert told == sorted(set(told))
        if flat.answers["copies"].max() == 1:
            mine = flat.frame.filter(answer=answer).select("stream", "id")
            assert sorted(set(mine.rows())) == told


def test_a_row_is_told_once_for_each_row_that_it_was_made_of(tmp_path: Path) -> None:
    why = session_over(tmp_path).why("WHY total AT 5")
    assert why.expand().select("k", "id").rows() == [(k, k + i) for k in range(3) for i in (0, 3)]
    empty = session_over(tmp_path / "again").why("WHY total WHERE total < 0 AT 5")
    assert empty.sets().is_empty()
    assert empty.sets().columns == ["k", "total", "n", "provenance"]
    assert empty.expand().is_empty()


@pytest.mark.parametrize("encoding", Encoding)
def test_ids_come_back_from_every_encoding(tmp_path: Path, encoding: Encoding) -> None:
    why = session_over(tmp_path).why("WHY total AT 35")
    (stream,) = why.encoded(encoding).items()
    assert stream[0] == "s"
    ids = [[one["id"] for one in row] for row in why.sets()["provenance"]]
    assert decode(stream[1]).to_list() == ids


def test_provenance_is_a_name_wherever_it_can_be_one() -> None:
    for text in ("SELECT provenance FROM s AS OF 5", "SELECT provenance AS p, 1 FROM s AS OF 5"):
        assert isinstance(parse_one(text), OneTimeQuery)
    asked = parse_one("select provenance k from s as of 5")
    assert isinstance(asked, Why)
    assert unparse(asked) == "SELECT PROVENANCE k FROM s AS OF 5"
    assert parse_one(unparse(asked)) == asked
