"""EXPLAIN TRACE: a rule, and the node before and after it."""

from __future__ import annotations

from nexmark import auction_session
from tidemill.optimizer.explain.trace import trace_text
from tidemill.optimizer.logical.rewrite import rewrite
from tidemill.session import Query


def trace(query: str) -> str:
    found = auction_session().sql(query)
    assert isinstance(found, Query)
    return trace_text(rewrite(found.plan).steps)


def test_each_step_shows_what_it_changes() -> None:
    query = "SELECT itemID FROM (SELECT DISTINCT * FROM Bid [RANGE 5]) WHERE 1 = 1 AND bidderID = 1"
    assert trace(query) == (
        """\
fold_constants
  Filter 1 = 1 AND bidderID = 1
    Distinct …
=>
  Filter bidderID = 1
    Distinct …

push_filter_through_distinct
  Filter bidderID = 1
    Distinct
      Window range=5us …
=>
  Distinct
    Filter bidderID = 1
      Window range=5us …

push_filter_through_window
  Filter bidderID = 1
    Window range=5us
      Source Bid
=>
  Window range=5us
    Filter bidderID = 1
      Source Bid"""
    )


def test_a_part_that_is_there_twice_is_shown_once() -> None:
    query = """
    SELECT itemID FROM Bid [RANGE 5] WHERE bid_price = (SELECT MAX(bid_price) FROM Bid [RANGE 5])
    """
    assert trace(query) == (
        """\
prune_columns
  Project itemID
    SemiJoin on bid_price = max(bid_price)
      Window range=5us
        Source Bid
      Aggregate max(bid_price)
        Window range=5us …
=>
  Project itemID
    SemiJoin on bid_price = max(bid_price)
      Window range=5us
        Project itemID, bid_price
          Source Bid
      Aggregate max(bid_price)
        Project bid_price
          Window range=5us …"""
    )


def test_a_plan_that_stays_says_so() -> None:
    assert trace("SELECT * FROM Bid") == "(no rule applies)"
