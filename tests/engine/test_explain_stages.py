"""EXPLAIN STAGES says what is done in which stage, and where rows go."""

from __future__ import annotations

from nexmark import auction_session


def test_two_exchanges_make_three_stages() -> None:
    text = auction_session().sql("""
        EXPLAIN STAGES
        SELECT n, COUNT(*) AS items
        FROM (SELECT itemID, COUNT(*) AS n FROM Bid [RANGE 10] GROUP BY itemID) x GROUP BY n""")
    assert isinstance(text, str)
    assert [line for line in text.splitlines() if "stage" in line or "answer" in line] == [
        "stage 0, where rows come in",
        "  -> stage 1, by itemID",
        "stage 1, in every partition",
        "  -> stage 2, by count(*)",
        "stage 2, in every partition",
        "  -> answer",
    ]


def test_rows_that_need_not_meet_others_stay_where_they_are() -> None:
    text = auction_session().sql("EXPLAIN STAGES SELECT itemID FROM Bid [RANGE 10]")
    assert isinstance(text, str)
    assert "  -> stage 1, same partition" in text.splitlines()


def test_a_condition_without_equality_needs_one_partition() -> None:
    text = auction_session().sql("""
        EXPLAIN STAGES SELECT a.itemID FROM Bid a [RANGE 5], Bid b [RANGE 5]
        WHERE a.bid_price < b.bid_price""")
    assert isinstance(text, str)
    assert "  -> stage 1, all into one partition" in text.splitlines()
