"""WHY through sessions: contributors of all kinds, what is shown of them, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.why_body import Pipeline, explained_throughout

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def auction() -> tidemill.Session:
    """Items that people sell, bids for them, and bids that came late; all in memory."""
    session = tidemill.connect()
    items = [(1, 10, "pen"), (2, 20, "cup"), (3, 30, "vase")]
    session.put("items", pl.DataFrame(items, ["at", "id", "name"], orient="row"))
    bids = [(1, 10, 5), (2, 10, None), (4, 20, 7), (9, 30, 1)]
    session.put("bids", pl.DataFrame(bids, ["at", "item", "id"], orient="row"))
    session.sql("""
        CREATE STREAM item (at BIGINT, id BIGINT, name VARCHAR)
          SOURCE memory('items') ORDERED BY at KEEP ALL;
        CREATE STREAM bid (at BIGINT, item BIGINT, id INTEGER)
          SOURCE memory('bids') ORDERED BY at KEEP ALL;
        CREATE STREAM cheap AS SELECT item, id FROM bid WHERE id < 7;
        CREATE QUERY offers AS
          SELECT name, b.id AS bid FROM item [RANGE 8] i LEFT JOIN bid [RANGE 4] b ON i.id = item;
        CREATE QUERY quiet AS
          SELECT id FROM item [RANGE 8] EXCEPT SELECT item FROM bid [RANGE 3]
    """)
    session.run()
    return session


def test_all_that_is_explained_is_what_the_reference_says(tmp_path: Path) -> None:
    connect = partial(tidemill.connect, checkpoint=tmp_path / "state")
    explained_throughout(Pipeline(connect, tmp_path))


# What is shown


def test_a_tree_shows_nulls_of_the_answer_and_none_of_other_streams(
    auction: tidemill.Session,
) -> None:
    assert auction.why("WHY offers WHERE bid IS NULL AT 4").tree().splitlines() == [
        "name=pen, bid=NULL",
        "├─ Join left on i.id = item · Window range=4us",
        "│  └─ bid 1  at=2, item=10  from 2 to 6",
        "└─ Join left on i.id = item · Window range=8us",
        "   └─ item 0  at=1, item.id=10, name=pen  from 1 to 9",
        "name=vase, bid=NULL",
        "└─ Join left on i.id = item · Window range=8us",
        "   └─ item 2  at=3, item.id=30, name=vase  from 3 to 11",
    ]


def test_a_tree_of_changes_says_what_came_and_went(auction: tidemill.Session) -> None:
    assert auction.why("WHY CHANGE quiet AT 4").tree().splitlines() == [
        "id=20  until 4  went",
        "└─ StrictDifference · Window range=3us",
        "   └─ bid 2  at=4, item=20, id=7  from 4 to 7  came",
    ]
    assert auction.why("WHY CHANGE quiet AT 9 ").tree().splitlines()[0].endswith("went")
    assert auction.why("WHY CHANGE quiet WHERE id = 10 AT 3").tree() == "no row of the answer"


def test_a_tree_of_missing_rows_says_where_candidates_have_ended(auction: tidemill.Session) -> None:
    found = auction.why("WHY NOT quiet WHERE id = 20 AT 5")
    assert repr(found).splitlines() == [
        "Why at 5, after batch 0",
        "no such row",
        "└─ StrictDifference: rows on the right take it away",
        "   └─ item 1  at=2, id=20, name=cup  at 2",
    ]
    assert auction.why("WHY NOT quiet WHERE id = 99 AT 5").tree().splitlines() == [
        "no such row",
        "└─ item: there is no row of which id = 99 is true",
    ]


def test_a_tree_has_so_many_rows_of_a_kind(auction: tidemill.Session) -> None:
    found = auction.why("WHY (SELECT COUNT(*) AS n FROM bid [RANGE UNBOUNDED]) AT 9")
    assert found.tree(rows=2).splitlines()[-1] == "   └─ and 2 more"
    missing = auction.why("WHY NOT quiet WHERE id > 0 AND id + 1 < 0 AT 5")
    assert missing.tree(rows=2).splitlines()[-1].startswith("└─ item: there is no row")
    missing = auction.why("WHY NOT (SELECT at FROM bid WHERE at > 0) WHERE at < 9 AT 5")
    assert missing.tree(rows=2).splitlines()[-1] == "   └─ and 1 more"


def test_instants_are_calendar_times_if_columns_are() -> None:
    with tidemill.connect() as session:
        session.put("ticks", pl.DataFrame({"at": [pl.datetime(2026, 3, 1, 12)]}))
        ticks = pl.DataFrame({"at": ["2026-03-01T12:00:00"], "n": [1]})
        session.put("ticks", ticks.with_columns(pl.col("at").str.to_datetime()))
        session.sql(
            "CREATE STREAM tick (at TIMESTAMP, n BIGINT) SOURCE memory('ticks') ORDERED BY at"
            " KEEP ALL"
        )
        session.run()
        text = "WHY NOT (SELECT n FROM tick [RANGE 1 MINUTE]) WHERE n = 1"
        missing = session.why(f"{text} AT '2026-03-01T12:02:00'")
        assert missing.tree().splitlines()[-1].endswith("n=1  at 2026-03-01 12:00:00")


def test_a_row_that_was_not_taken_is_named_once_however_often_its_stream_is_read() -> None:
    with tidemill.connect() as session:
        session.put("ticks", pl.DataFrame({"at": [1, 2], "k": [1, 1], "n": [1, 2**40]}))
        session.sql(
            "CREATE STREAM tick (at BIGINT, k BIGINT, n INTEGER) SOURCE memory('ticks') ORDERED BY"
            " at MALFORMED QUARANTINE KEEP ALL"
        )
        session.sql("CREATE QUERY all_of_it AS SELECT k FROM tick")
        session.run()
        pairs = "(SELECT a.k FROM tick [RANGE 3] a, tick [RANGE 3] b WHERE a.k = b.k AND a.n < b.n)"
        missing = session.why(f"WHY NOT {pairs} WHERE k = 1 AT 2")
        assert missing.tree().splitlines() == [
            "no such row",
            "├─ tick: it was not taken: malformed",
            "│  └─ tick  at=2, k=1",
            "└─ Join inner on a.k = b.k AND a.n < b.n: it has no partner",
            "   └─ tick 0  at=1, k=1, n=1  at 1",
        ]


# Rows and JSON


def test_rows_of_a_stream_have_its_own_columns(auction: tidemill.Session) -> None:
    found = auction.why("WHY offers AT 4")
    assert found.rows("bid").columns == ["at", "item", "id", "id_"]
    assert found.rows("bid").rows() == [(1, 10, 5, 0), (2, 10, None, 1), (4, 20, 7, 2)]
    assert [row[1:] for row in found.rows("item").rows()] == [
        (10, "pen", 0),
        (20, "cup", 1),
        (30, "vase", 2),
    ]
    with pytest.raises(tidemill.RunError, match='"cheap" has no rows here'):
        found.rows("cheap")


def test_rows_of_a_derived_stream_have_no_ids(auction: tidemill.Session) -> None:
    found = auction.why("WHY (SELECT COUNT(*) AS n FROM cheap [RANGE 9]) DOWN TO cheap AT 5")
    assert found.rows("cheap").rows() == [(10, 5, None)]


def test_rows_that_are_missing_have_the_values_of_their_streams(auction: tidemill.Session) -> None:
    """Two streams have a column of one name and of different types."""
    found = auction.why("WHY NOT offers WHERE name = 'pen' AND bid = 7 AT 4")
    assert found.rows("item").rows() == [(1, 10, "pen", 0)]
    assert found.rows("bid").rows() == [(4, 20, 7, 2)]


def test_json_has_answers_and_lines(auction: tidemill.Session) -> None:
    told = json.loads(auction.why("WHY ALL offers WHERE name = 'vase' AT 6").json())
    assert told == {
        "at": 6,
        "known": 2**63 - 1,
        "batch": 0,
        "answers": [
            {
                "answer": 0,
                "row": {"name": "vase", "bid": None},
                "copies": 1,
                "start": None,
                "end": None,
            }
        ],
        "lines": [
            {
                "answer": 0,
                "stream": "item",
                "id": 2,
                "row": {"at": 3, "id": 30, "name": "vase"},
                "start": 3,
                "end": 11,
                "via": ["Join left on i.id = item", "Window range=8us"],
            }
        ],
    }


# Refused


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("WHY NOT quiet WHERE id = 10 AT 6", "at 6 a row meets the condition"),
        ("SELECT id FROM item AS OF 3", "this is not one WHY"),
        ("WHY quiet AT 3; WHY quiet AT 4", "this is not one WHY"),
    ],
)
def test_what_cannot_be_explained_is_an_error(
    auction: tidemill.Session, text: str, match: str
) -> None:
    with pytest.raises(tidemill.TidemillError, match=match):
        auction.why(text)


def test_columns_of_rows_must_be_there_and_of_their_type(auction: tidemill.Session) -> None:
    offers = auction.find("offers")
    assert offers.why({"name": "pen", "bid": None}, 4).answers.height == 1
    with pytest.raises(tidemill.RunError, match='the answer has no column "nam"') as found:
        offers.why({"nam": "pen"}, 4)
    assert found.value.hint == 'did you mean "name"?'
    with pytest.raises(tidemill.RunError, match="cannot be 'pen'"):
        offers.why({"bid": "pen"}, 4)


def test_columns_of_streams_may_be_called_as_one_likes() -> None:
    session = tidemill.connect()
    session.put("odd", pl.DataFrame({"at": [1, 2], "id1": [7, 8], "time2": [9, 9], "is3": [0, 0]}))
    session.sql("""
        CREATE STREAM odd (at BIGINT, id1 BIGINT, time2 BIGINT, is3 BIGINT)
          SOURCE memory('odd') ORDERED BY at KEEP ALL;
        CREATE QUERY pairs AS
          SELECT x.id1, x.time2, y.is3 AS of4 FROM odd [RANGE 5] x LEFT JOIN odd [RANGE 5] y
          ON x.id1 = y.id1
    """)
    session.run()
    assert session.why("WHY ALL pairs WHERE id1 = 8 AT 2").rows("odd")["id1"].to_list() == [8]
    assert session.why("WHY CHANGE pairs AT 2").answers.height == 1
    assert session.why("WHY NOT pairs WHERE id1 = 9 AT 2").frame.height == 1


def test_operators_of_one_text_may_have_columns_of_different_types() -> None:
    session = tidemill.connect()
    session.put("whole", pl.DataFrame({"at": [1, 2], "x": [1, 2], "part.x": ["a", "b"]}))
    session.put("part", pl.DataFrame({"at": [1, 2], "x": [1.5, 2.5]}))
    session.sql("""
        CREATE STREAM whole (at BIGINT, x BIGINT, "part.x" VARCHAR)
          SOURCE memory('whole') ORDERED BY at KEEP ALL;
        CREATE STREAM part (at BIGINT, x DOUBLE) SOURCE memory('part') ORDERED BY at KEEP ALL;
        CREATE QUERY sums AS SELECT a.s, b.s AS t
          FROM (SELECT SUM(x) AS s FROM whole [RANGE 5]) a,
               (SELECT SUM(x) AS s FROM part [RANGE 5]) b
    """)
    session.run()
    found = session.why("WHY sums AT 2")
    sums = found.frame.filter(pl.col("operator").is_not_null())["row"].struct.unnest()
    told = sums.select("Aggregate sum(x).sum(x)", "Aggregate sum(x) 2.sum(x)").rows()
    assert sorted(told, key=repr) == [(3, None), (None, 4.0)]
    for text in ("WHY sums AT 2", "WHY NOT sums WHERE s = 0 AND t = 0 AT 2"):
        session.why(text).json()
    missed = session.why(
        "WHY NOT (SELECT whole.x, part.x AS y FROM whole [RANGE 5], part [RANGE 5])"
        " WHERE x = 1 AND y = 9 AT 2"
    )
    for one in (found, missed):
        assert one.rows("whole")["part.x"].dtype == pl.String
    assert found.rows("part").select("at", "x").rows() == [(1, 1.5), (2, 2.5)]
