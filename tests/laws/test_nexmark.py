"""The auction queries Q1 to Q7 on generated days: the local engine gives the reference's answer."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from local import run_locally
from nexmark import DECLARATIONS
from tidemill.algebra.snapshot import Element, Reference
from tidemill.optimizer.logical.rewrite import optimize

QUERIES = {
    "Q1": "SELECT itemID, DolToEuro(bid_price), bidderID FROM Bid",
    "Q2": "SELECT Bid.* FROM Bid WHERE itemID = 1 OR itemID = 3",
    "Q3": "SELECT OpenAuction.* FROM OpenAuction O WINDOW(RANGE 5), ClosedAuction C "
    "WHERE O.itemID = C.itemID",
    "Q4": "SELECT itemID, bid_price FROM Bid WINDOW(RANGE 4) "
    "WHERE bid_price = (SELECT MAX(bid_price) FROM Bid WINDOW(RANGE 4))",
    "Q5": "SELECT * FROM ClosingPriceStream",
    "Q6": "SELECT itemID FROM (SELECT B1.itemID AS itemID, COUNT(*) AS num "
    "FROM Bid [RANGE 6] B1 GROUP BY B1.itemID) "
    "WHERE num >= ALL(SELECT COUNT(*) FROM Bid [RANGE 6] B2 GROUP BY B2.itemID)",
    "Q7": "SELECT sellerID, AVG(price) FROM ClosingPriceStream "
    "WINDOW(PARTITION BY sellerID ROWS 2) GROUP BY sellerID",
}
LAST = 20


@cache
def session() -> tidemill.Session:
    made = tidemill.connect()
    made.sql(DECLARATIONS.replace("TIMESTAMP", "BIGINT").replace("2 DAYS", "12"))
    return made


def events(*columns: st.SearchStrategy[float]) -> st.SearchStrategy[list[Element]]:
    rows = st.lists(st.tuples(*columns, st.integers(0, LAST)), max_size=12)
    return rows.map(
        lambda drawn: [Element(int(row[-1]), number, row) for number, row in enumerate(drawn)]
    )


ITEMS = st.integers(1, 4)
PRICES = st.integers(1, 40).map(lambda quarters: quarters / 4)


DAYS = st.fixed_dictionaries(
    {
        "OpenAuction": events(ITEMS, st.integers(1, 2), PRICES),
        "ClosedAuction": events(ITEMS, st.integers(1, 3)),
        "Bid": events(ITEMS, PRICES, st.integers(1, 3)),
    }
)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=settings().max_examples // 2)
@given(streams=DAYS, partitions=st.integers(1, 3), rows=st.integers(1, 12))
def test_local_engine_agrees_with_the_reference(
    name: str, streams: dict[str, list[Element]], partitions: int, rows: int
) -> None:
    query = session().sql(QUERIES[name])
    assert isinstance(query, tidemill.Query)
    answer = run_locally(
        optimize(query.plan), streams, {}, {}, partitions=partitions, rows_per_step=rows
    )
    reference = Reference(streams)
    for time in range(LAST + 15):
        expected = reference.snapshot(query.plan, time)
        assert Counter(answer.snapshot(time).rows()) == expected, f"{name} at {time}"
