"""The auction site is a function of the seed, and what it refers to exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tidemill.demo.chance import Chance
from tidemill.demo.nexmark import BEGIN, EPOCH, FIRST_ID, generate

if TYPE_CHECKING:
    from tidemill.demo.nexmark import Events

COUNT = 20_000


@pytest.fixture(scope="module")
def events() -> Events:
    return generate(COUNT, seed=3)


def test_the_same_seed_gives_the_same_events(events: Events) -> None:
    for name, rows in generate(COUNT, seed=3).streams().items():
        assert_frame_equal(rows, events.streams()[name])


def test_another_seed_gives_others(events: Events) -> None:
    others = generate(COUNT, seed=4)
    assert not others.bid.equals(events.bid)
    assert others.bid["date_time"].equals(events.bid["date_time"])


def test_more_events_begin_with_the_same(events: Events) -> None:
    fewer = generate(1_000, seed=3)
    assert_frame_equal(fewer.bid, events.bid.head(fewer.bid.height))
    assert_frame_equal(fewer.auction, events.auction.head(fewer.auction.height))


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(events: Events) -> None:
    epochs = COUNT // EPOCH
    assert events.person.height == epochs
    assert events.auction.height == 3 * epochs
    assert events.bid.height == 46 * epochs


def test_streams_are_ordered_by_time(events: Events) -> None:
    for rows in events.streams().values():
        times = rows["date_time"]
        assert times.is_sorted()
        assert times.is_between(BEGIN, events.last).all()


def test_numbers_are_unique(events: Events) -> None:
    for rows in (events.person, events.auction, events.closed):
        assert rows["id"].is_unique().all()
    assert events.person["id"][0] == events.auction["id"][0] == FIRST_ID


@pytest.mark.parametrize(
    ("stream", "column", "other"),
    [("auction", "seller", "person"), ("bid", "bidder", "person"), ("bid", "auction", "auction")],
)
def test_what_is_referred_to_is_there_already(
    events: Events, stream: str, column: str, other: str
) -> None:
    rows, others = events.streams()[stream], events.streams()[other]
    known = others.select(pl.col("id").alias(column), since="date_time")
    joined = rows.join(known, on=column)
    assert joined.height == rows.height
    assert (joined["since"] <= joined["date_time"]).all()


def test_half_of_the_bids_go_to_one_auction_in_a_hundred(events: Events) -> None:
    hot = events.bid.filter((pl.col("auction") - FIRST_ID) % 100 == 0).height / events.bid.height
    assert 0.48 < hot < 0.54
    bidder = events.bid.filter((pl.col("bidder") - FIRST_ID) % 100 == 1).height / events.bid.height
    assert 0.7 < bidder < 0.8
    seller = events.auction.filter((pl.col("seller") - FIRST_ID) % 100 == 0).height
    assert 0.7 < seller / events.auction.height < 0.8


def test_prices_are_spread_over_six_orders_of_magnitude(events: Events) -> None:
    price = events.bid["price"]
    assert price.is_between(100, 10**8).all()
    shares = [(price < 10**power).mean() for power in range(3, 9)]
    assert shares == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1], abs=0.02)


def test_auctions_close_once_and_after_they_open(events: Events) -> None:
    assert (events.auction["expires"] > events.auction["date_time"]).all()
    by_then = events.auction.filter(pl.col("expires") <= events.last)
    assert events.closed.height == by_then.height > 0
    joined = events.closed.join(events.auction, on="id")
    assert (joined["date_time"] == joined["expires"]).all()


def test_texts_are_there(events: Events) -> None:
    for rows in events.streams().values():
        assert sum(rows.null_count().row(0)) == 0
    assert events.person["email_address"].str.contains(r"^[a-z_]+@[a-z_]+\.com$").all()
    assert events.person["credit_card"].str.contains(r"^(\d{4} ){3}\d{4}$").all()
    assert events.auction["description"].str.len_chars().max() == 99
    assert events.bid["url"].str.contains("channel_id=").mean() == pytest.approx(0.45, abs=0.02)


def test_chance_is_even_and_lanes_are_independent() -> None:
    places = pl.int_range(50_000, eager=True)
    first = Chance(1).fractions(places, lane="first")
    second = Chance(1).fractions(places, lane="second")
    assert first.is_between(0, 1, closed="left").all()
    assert first.mean() == pytest.approx(0.5, abs=0.01)
    frame = pl.DataFrame({"first": first, "second": second})
    assert abs(frame.select(pl.corr("first", "second")).item()) < 0.02
