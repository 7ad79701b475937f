"""When a scalar aggregate is computed in two parts, and when it is not."""

from __future__ import annotations

import pytest

from nexmark import auction_session

SPLIT = {
    "sums and extremes": """
        SELECT COUNT(*), SUM(bid_price), AVG(bid_price), MIN(itemID), MAX(DISTINCT itemID),
               COUNT(bid_price) FILTER (WHERE itemID > 3), STDDEV_POP(bid_price)
        FROM Bid [RANGE 60 SECONDS SLIDE 1 SECOND]""",
    "a condition": "SELECT SUM(bid_price) FROM Bid [RANGE 6 SLIDE 2] WHERE itemID > 3",
    "a computed column": """
        SELECT SUM(x) FROM (SELECT bid_price * 2 AS x FROM Bid [RANGE 6 SLIDE 2]) y""",
    "a window that shows every row once": "SELECT COUNT(*) FROM Bid [RANGE 6 SLIDE 6]",
    "groups of a window that slides": """
        SELECT SUM(n) FROM (SELECT itemID, COUNT(*) AS n FROM Bid [RANGE 6 SLIDE 2]
                            GROUP BY itemID) y""",
    "different rows": "SELECT COUNT(*) FROM (SELECT DISTINCT itemID FROM Bid [RANGE 6 SLIDE 2]) y",
    "a join with what never changes": """
        SELECT COUNT(*) FROM Bid [RANGE 6 SLIDE 2], Person WHERE bidderID = id""",
    "a join of two that slide": """
        SELECT COUNT(*) FROM Bid a [RANGE 6 SLIDE 2], Bid b [RANGE 9 SLIDE 3]
        WHERE a.itemID = b.itemID""",
    "what has come where windows move": """
        SELECT COUNT(*) FROM (ISTREAM(SELECT DISTINCT itemID FROM Bid [RANGE 6 SLIDE 2])) y""",
}
OF_PARTS = {
    "the greatest of groups": """
        SELECT MAX(n) FROM (SELECT itemID, COUNT(*) AS n FROM Bid [RANGE 6 SLIDE 2]
                            GROUP BY itemID) y""",
    "of groups that change at any time": """
        SELECT MIN(n), COUNT(*), BOOL_OR(n > 3)
        FROM (SELECT itemID, COUNT(*) AS n FROM Bid [RANGE 6] GROUP BY itemID) y""",
}
WHOLE = {
    "a window that moves at every instant": "SELECT SUM(bid_price) FROM Bid [RANGE 6]",
    "no window": "SELECT COUNT(*) FROM Bid",
    "a window for ever": "SELECT COUNT(*) FROM Bid [RANGE UNBOUNDED]",
    "the last rows": "SELECT COUNT(*) FROM Bid [ROWS 10 SLIDE 5]",
    "sessions": "SELECT COUNT(*) FROM Bid [SESSION 10]",
    "groups": "SELECT itemID, COUNT(*) FROM Bid [RANGE 6 SLIDE 2] GROUP BY itemID",
    "the value in the middle": "SELECT MEDIAN(bid_price), COUNT(*) FROM Bid [RANGE 6 SLIDE 2]",
    "different values": "SELECT COUNT(DISTINCT itemID) FROM Bid [RANGE 6 SLIDE 2]",
    "a sum of different values": "SELECT SUM(DISTINCT bid_price) FROM Bid [RANGE 6 SLIDE 2]",
    "what never changes": "SELECT COUNT(*) FROM Person",
    "what changes at any time": "SELECT COUNT(*) FROM Bid [RANGE 6 SLIDE 2], Category",
    "one of two that slides": """
        SELECT COUNT(*) FROM Bid a [RANGE 6 SLIDE 2], Bid b [RANGE 6] WHERE a.itemID = b.itemID""",
    "rows that are in one partition already": """
        SELECT COUNT(*) FROM Bid a [RANGE 6 SLIDE 2], Bid b [RANGE 6 SLIDE 2]
        WHERE a.bid_price < b.bid_price""",
}


def physical(query: str, form: str = "PHYSICAL") -> list[str]:
    text = auction_session().sql(f"EXPLAIN {form} {query}")
    assert isinstance(text, str)
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("name", SPLIT)
def test_it_is_split_where_elements_share_their_interval(name: str) -> None:
    lines = physical(SPLIT[name])
    combine = next(i for i, line in enumerate(lines) if line.startswith("interval.Combine"))
    assert lines[combine - 1] == "Exchange to one partition"
    assert lines[combine - 2].startswith(("signed.Aggregate", "interval.Aggregate"))


@pytest.mark.parametrize("name", OF_PARTS)
def test_it_is_of_the_results_of_parts_where_rows_are_withdrawn(name: str) -> None:
    lines = physical(OF_PARTS[name])
    exchange = lines.index("Exchange to one partition")
    assert lines[exchange - 1].startswith("signed.Aggregate")
    assert lines[exchange + 1].startswith("signed.Aggregate")


@pytest.mark.parametrize("name", WHOLE)
def test_it_is_whole_where_that_gives_nothing_or_cannot_be(name: str) -> None:
    assert not any("Combine" in line for line in physical(WHOLE[name]))


def test_windows_and_what_is_combined_run_behind_the_gate_where_the_rows_are() -> None:
    query = "SELECT SUM(bid_price) AS total FROM Bid [RANGE 6 SLIDE 2] WHERE itemID > 3"
    assert physical(query, "STAGES") == [
        "stage 0, where rows come in",
        "interval.Filter(predicate=itemID > 3)",
        "interval.Project(columns=[bid_price])",
        "-> stage 1, same partition",
        "stage 1, in every partition",
        "interval.TimeWindow(size=6, slide=2)",
        "interval.Combine(aggregates=[sum(bid_price)])",
        "-> stage 2, all into one partition",
        "stage 2, in every partition",
        "signed.Aggregate(aggregates=[sum(bid_price)])",
        "signed.Project(columns=[sum(bid_price) AS total])",
        "-> answer",
    ]


def test_queries_that_differ_in_names_share_what_is_combined() -> None:
    one, other = (
        physical(f"SELECT SUM(bid_price) AS {name} FROM Bid [RANGE 6 SLIDE 2]") for name in "ab"
    )
    assert one[0] != other[0]
    assert one[1:] == other[1:]
