"""WHY: what is asked of, of which rows, and where the explanation stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nexmark import auction_session
from tidemill.algebra.expr import TRUE, Call, Column
from tidemill.algebra.plan import Aggregate, Source, Window
from tidemill.algebra.text import expr_text
from tidemill.algebra.tree import share, streams_of, walk
from tidemill.binder.why import BoundWhy, bind_why
from tidemill.catalog.entries import DerivedStreamEntry, QueryEntry
from tidemill.errors import BindError, Note, PlanError, TidemillError
from tidemill.lang import parse_one
from tidemill.lang.statements import Why

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog

MORE = """
CREATE QUERY top AS
  SELECT itemID, MAX(price) AS price, COUNT(*) AS n
  FROM ClosingPriceStream [RANGE 5 MINUTES] GROUP BY itemID;
CREATE TABLE hot KEEP ALL AS SELECT itemID, bid_price FROM Bid [RANGE 1 HOUR] WHERE bid_price > 5;
CREATE STREAM Kept AS SELECT itemID FROM Bid [RANGE 5 MINUTES INTERNAL];
CREATE QUERY odd AS SELECT itemID FROM Kept [RANGE 5 MINUTES];
CREATE STREAM Unused AS SELECT itemID FROM Bid [RANGE 1 MINUTE];
CREATE RELATION Seller FROM STREAM OpenAuction KEY (sellerID);
CREATE QUERY "the sellers" AS SELECT sellerID FROM Seller;
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    session = auction_session()
    session.sql(MORE)
    return session.catalog


def bound(text: str, catalog: Catalog, notes: list[Note] | None = None) -> BoundWhy:
    statement = parse_one(text)
    assert isinstance(statement, Why)
    return bind_why(statement, catalog, [] if notes is None else notes)


def is_part(part: Plan, plan: Plan) -> bool:
    known: dict[tuple[object, ...], Plan] = {}
    wanted = share(part, known)
    return any(node is wanted for node in walk(share(plan, known)))


# The target


@pytest.mark.parametrize("name", ["top", "TOP", "hot", "CurrentPrice", '"the sellers"'])
@pytest.mark.parametrize("kind", ["", "ALL ", "CHANGE "])
def test_a_name_means_the_plan_of_its_entry(kind: str, name: str, catalog: Catalog) -> None:
    found = bound(f"WHY {kind}{name}", catalog)
    entry = catalog.find(name.strip('"'))
    assert isinstance(entry, QueryEntry | DerivedStreamEntry)
    assert found == BoundWhy(entry, None, entry.plan, TRUE, None)


def test_a_query_in_parentheses_is_a_question(catalog: Catalog) -> None:
    found = bound("WHY (SELECT itemID, COUNT(*) AS n FROM Bid [NOW] GROUP BY itemID)", catalog)
    assert found.entry is None
    assert found.question is not None
    assert found.plan is found.question.plan
    assert found.question.columns == ("itemID", "n")
    assert (found.question.keys, found.question.limit, found.question.offset) == ((), None, 0)
    assert any(isinstance(node, Aggregate) for node in walk(found.plan))


def test_a_table_in_parentheses_is_what_it_asks(catalog: Catalog) -> None:
    found = bound("WHY (SELECT itemID FROM hot WHERE bid_price > 9)", catalog)
    assert found.question is not None
    assert found.question.answers == {}
    assert streams_of(found.plan) == {"Bid"}


def test_a_relation_that_changes_can_be_asked_about_in_parentheses(catalog: Catalog) -> None:
    found = bound("WHY (SELECT * FROM Seller) WHERE start_price > 3", catalog)
    assert isinstance(found.plan, Window)
    assert isinstance(found.plan.input, Source)


def test_a_window_may_keep_everything_since_it_is_asked_once(catalog: Catalog) -> None:
    found = bound("WHY (SELECT DISTINCT itemID FROM Bid [RANGE UNBOUNDED])", catalog)
    assert streams_of(found.plan) == {"Bid"}
    with pytest.raises(PlanError, match="rows that may never end"):
        bound("WHY (SELECT itemID FROM (SELECT * FROM Bid [ROWS 5]) [RANGE 1 HOUR] b)", catalog)


def test_what_there_is_to_be_warned_of_is_told_once(catalog: Catalog) -> None:
    notes: list[Note] = []
    bound("WHY (SELECT itemID FROM Bid [RANGE 5]) WHERE itemID = 3", catalog, notes)
    assert [note.message for note in notes] == ["RANGE 5 without a unit means 5 microseconds"]


# The condition


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("ITEMID = 3 AND n > 1", "itemID = 3 AND n > 1"),
        ("top.itemID = 3", "itemID = 3"),
        ("Top.n IS NULL", "n IS NULL"),
        ("price > DolToEuro(9)", "price > 9.0 * 0.9"),
        ("TRUE", "TRUE"),
        ("NULL", "CAST(NULL AS BOOLEAN)"),
    ],
)
def test_a_condition_is_about_the_columns_of_the_answer(
    condition: str, meaning: str, catalog: Catalog
) -> None:
    assert expr_text(bound(f"WHY NOT top WHERE {condition}", catalog).condition) == meaning


def test_it_has_the_names_that_the_plan_has(catalog: Catalog) -> None:
    found = bound("WHY (SELECT bid_price AS Price FROM Bid) WHERE pRICE > 3", catalog)
    assert isinstance(found.condition, Call)
    assert found.condition.arguments[0] == Column("Price", found.plan.schema.types[0])


# DOWN TO


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("WHY top DOWN TO closingpricestream", "ClosingPriceStream"),
        ("WHY ALL top DOWN TO CurrentPrice", "CurrentPrice"),
        ("WHY ClosingPriceStream DOWN TO CurrentPrice", "CurrentPrice"),
        ("WHY (SELECT itemID FROM Kept) DOWN TO Kept", "Kept"),
        ("WHY (SELECT * FROM CurrentPrice) DOWN TO CurrentPrice", "CurrentPrice"),
        ("WHY (SELECT k.itemID FROM Unused k JOIN hot USING (itemID)) DOWN TO Unused", "Unused"),
    ],
)
def test_it_stops_at_a_part_of_the_plan(text: str, name: str, catalog: Catalog) -> None:
    found = bound(text, catalog)
    assert found.down_to == catalog.find(name)
    assert found.down_to is not None
    assert is_part(found.down_to.plan, found.plan)


# Mistakes

MISTAKES = """
there is no query, table or derived stream "tip"
   1 | WHY tip
           ^^^
hint: did you mean "top"?
===
"Bid" is a stream with a source, not a query, table or derived stream
   1 | WHY Bid WHERE price > 3
           ^^^
hint: nothing stands behind its rows: they are themselves the answer to WHY
===
"Person" is a relation, not a query, table or derived stream
   1 | WHY Person
           ^^^^^^
hint: ask about a query that reads it; one in parentheses needs no name: WHY (SELECT …)
===
"Seller" is a relation, not a query, table or derived stream
   1 | WHY ALL Seller
               ^^^^^^
hint: ask about a query that reads it; one in parentheses needs no name: WHY (SELECT …)
===
"DolToEuro" is a function, not a query, table or derived stream
   1 | WHY DolToEuro
           ^^^^^^^^^
hint: ask about a query that calls it
===
column "pric" does not exist
   1 | WHY top WHERE pric > 3
                     ^^^^
hint: did you mean "price"?
===
column "pric" does not exist in "top"
   1 | WHY top WHERE top.pric > 3
                     ^^^^^^^^
hint: did you mean "price"?
===
WHERE needs a condition, this is DOUBLE
   1 | WHY top WHERE price AT 5
                     ^^^^^
hint: compare it with something, as in … > 0
===
there is no "b" in the answer
   1 | WHY (SELECT b.itemID FROM Bid b) WHERE b.itemID = 3
                                              ^^^^^^^^
hint: leave b out: it is about the columns of the answer alone
===
there is no "b" in the answer
   1 | WHY top WHERE b.bidderID = 3
                     ^^^^^^^^^^
hint: the columns are itemID, price, n
===
the sides of "=" have no common type: DOUBLE and VARCHAR
   1 | WHY top WHERE price = 'x'
                             ^^^
hint: convert one of them: CAST(… AS DOUBLE)
===
the condition of WHY takes no aggregate
   1 | WHY top WHERE n > 1 AND price = MAX(price)
                                       ^^^^^^^^^^
hint: it is about one row of the answer; name the column that has the value
===
the condition of WHY takes no subquery
   1 | WHY top WHERE price = (SELECT MAX(bid_price) FROM Bid)
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: it is about one row of the answer; compare its columns with values
===
the condition of WHY takes no subquery
   1 | WHY NOT top WHERE NOT EXISTS (SELECT * FROM Bid)
                                     ^^^^^^^^^^^^^^^^^
hint: it is about one row of the answer; compare its columns with values
===
the condition of WHY takes no subquery
   1 | WHY top WHERE price IN (SELECT bid_price FROM Bid)
                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: it is about one row of the answer; compare its columns with values
===
"CURRENT_TIMESTAMP" is not available: the answer is a function of the input alone
   1 | WHY top WHERE CURRENT_TIMESTAMP > TIMESTAMP '2026-03-01'
                     ^^^^^^^^^^^^^^^^^
hint: use the column of ORDERED BY for the time of a row
===
there is no derived stream "ClosingPrice"
   1 | WHY top DOWN TO ClosingPrice
                       ^^^^^^^^^^^^
hint: did you mean "ClosingPriceStream"?
===
there is no derived stream "Nope"
   1 | WHY hot DOWN TO Nope
                       ^^^^
hint: "hot" reads no derived stream; leave DOWN TO out
===
"ClosedAuction" is a stream with a source, not a derived stream
   1 | WHY top DOWN TO ClosedAuction
                       ^^^^^^^^^^^^^
hint: leave DOWN TO out: without it the explanation goes on to the streams
===
"hot" is a table, not a derived stream
   1 | WHY top DOWN TO hot
                       ^^^
hint: the derived streams that "top" reads are ClosingPriceStream, CurrentPrice
===
"Person" is a relation, not a derived stream
   1 | WHY hot DOWN TO Person
                       ^^^^^^
hint: "hot" reads no derived stream; leave DOWN TO out
===
"DolToEuro" is a function, not a derived stream
   1 | WHY hot DOWN TO DolToEuro
                       ^^^^^^^^^
hint: "hot" reads no derived stream; leave DOWN TO out
===
"top" does not read "Unused"
   1 | WHY top DOWN TO Unused
                       ^^^^^^
hint: the derived streams that "top" reads are ClosingPriceStream, CurrentPrice
===
"CurrentPrice" does not read "ClosingPriceStream"
   1 | WHY CurrentPrice DOWN TO ClosingPriceStream
                                ^^^^^^^^^^^^^^^^^^
hint: "CurrentPrice" reads no derived stream; leave DOWN TO out
===
"Unused" does not read "Unused"
   1 | WHY Unused DOWN TO Unused
                          ^^^^^^
hint: "Unused" reads no derived stream; leave DOWN TO out
===
the query in parentheses does not read "Unused"
   1 | WHY (SELECT itemID FROM Bid) DOWN TO Unused
                                            ^^^^^^
hint: the query in parentheses reads no derived stream; leave DOWN TO out
===
"odd" reads "Kept" in another form, without what its windows keep
   1 | WHY odd DOWN TO Kept
                       ^^^^
hint: leave DOWN TO out, or name a derived stream that stands below it
===
ORDER BY has no meaning below WHY: an answer is a bag of rows
   1 | WHY (SELECT itemID FROM Bid ORDER BY itemID) AT 5
                                   ^^^^^^^^^^^^^^^
hint: say behind the parentheses, with WHERE, which rows are asked about
===
LIMIT has no meaning below WHY: an answer is a bag of rows
   1 | WHY ((SELECT itemID FROM Bid) LIMIT 3)
                                     ^^^^^^^
hint: say behind the parentheses, with WHERE, which rows are asked about
===
OFFSET has no meaning below WHY: an answer is a bag of rows
   1 | WHY (SELECT itemID FROM (SELECT itemID FROM Bid OFFSET 3) b)
                                                       ^^^^^^^^
hint: say behind the parentheses, with WHERE, which rows are asked about
===
QUERY the sellers is an answer alone, and WHY asks what is behind it
   1 | WHY (SELECT sellerID FROM QUERY "the sellers")
                                 ^^^^^^^^^^^^^^^^^^^
hint: write WHY "the sellers" to ask about that answer
===
there is no query "tip"
   1 | WHY (SELECT itemID FROM QUERY tip)
                               ^^^^^^^^^
hint: did you mean "top"?
===
"top" is a query; its answer is not a stream others can read
   1 | WHY (SELECT itemID FROM top)
                               ^^^
hint: define it with CREATE STREAM … AS, or CREATE TABLE … AS, to read from it
"""


@pytest.mark.parametrize("expected", [case.strip("\n") for case in MISTAKES.split("===")])
def test_a_mistake_says_where_and_how_to_go_on(expected: str, catalog: Catalog) -> None:
    text = expected.splitlines()[1].removeprefix("   1 | ")
    with pytest.raises(BindError) as raised:
        bound(text, catalog)
    assert str(raised.value.located(text)) == expected


def test_nobody_is_left_without_a_hint(catalog: Catalog) -> None:
    empty = type(catalog)()
    with pytest.raises(TidemillError) as raised:
        bound("WHY q", empty)
    assert raised.value.hint == "there are no queries, tables and derived streams"
