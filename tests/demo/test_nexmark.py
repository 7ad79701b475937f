"""NEXMark's streams are a function of the seed, and look as the benchmark says."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tidemill.demo.chance import Chance
from tidemill.demo.events import BLOCK, EPOCH, FIRST_ID, LEAD, SECOND
from tidemill.demo.nexmark import BEGIN, STREAMS, Site, demo_site
from tidemill.demo.site import columns_of, declarations, write_site

if TYPE_CHECKING:
    from pathlib import Path

Streams: TypeAlias = dict[str, pl.DataFrame]

COUNT = 30_000
TIME = pl.Datetime("us")


@pytest.fixture(scope="module")
def streams() -> Streams:
    return Site(COUNT, seed=3).streams()


@pytest.fixture(scope="module")
def shuffled() -> Streams:
    return Site(COUNT, seed=3, disorder=SECOND // 10).streams()


def numbers(bid: pl.DataFrame) -> pl.Series:
    """The numbers of the events that bids are, from their times."""
    return (bid["date_time"] - BEGIN).dt.total_microseconds() * 10_000 // SECOND


@pytest.mark.parametrize("disorder", [0, SECOND // 10])
@pytest.mark.parametrize("chunk", [977, 10_000])
def test_the_rows_do_not_depend_on_the_chunks(chunk: int, disorder: int) -> None:
    whole = Site(5_000, seed=3, disorder=disorder).streams()
    pieces = Site(5_000, seed=3, disorder=disorder).streams(chunk=chunk)
    for name in STREAMS:
        assert_frame_equal(pieces[name], whole[name])


def test_more_events_begin_with_the_same(streams: Streams) -> None:
    for name, rows in Site(5_000, seed=3).streams().items():
        assert_frame_equal(rows, streams[name].head(rows.height))


def test_another_seed_gives_others_at_the_same_times(streams: Streams) -> None:
    others = Site(COUNT, seed=4).streams()
    assert not others["bid"].equals(streams["bid"])
    assert others["bid"]["date_time"].equals(streams["bid"]["date_time"])


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(streams: Streams) -> None:
    heights = [streams[name].height for name in ("person", "auction", "bid")]
    assert heights == [COUNT // EPOCH * share for share in (1, 3, 46)]


def test_people_and_auctions_are_numbered(streams: Streams) -> None:
    for name in ("person", "auction"):
        assert streams[name]["id"].to_list() == list(
            range(FIRST_ID, FIRST_ID + streams[name].height)
        )


def test_who_is_referred_to_is_there_or_soon_will_be(streams: Streams) -> None:
    bid = streams["bid"].with_columns(newest=numbers(streams["bid"]) // EPOCH + FIRST_ID)
    newest_auction = (pl.col("newest") - FIRST_ID) * 3 + 2 + FIRST_ID
    assert bid.select(
        bidders=pl.col("bidder").is_between(FIRST_ID, pl.col("newest") + LEAD).all(),
        auctions=pl.col("auction").is_between(FIRST_ID, newest_auction + LEAD).all(),
        recent=(pl.col("auction") >= newest_auction - BLOCK).all(),
    ).row(0) == (True, True, True)


@pytest.mark.parametrize(
    ("stream", "column", "place", "share"),
    [("bid", "auction", 0, 0.5), ("bid", "bidder", 1, 0.75), ("auction", "seller", 0, 0.75)],
)
def test_chance_has_favourites(
    streams: Streams, stream: str, column: str, place: int, share: float
) -> None:
    is_hot = (streams[stream][column] - FIRST_ID) % BLOCK == place
    assert is_hot.mean() == pytest.approx(share, abs=0.03)


def test_prices_are_spread_over_orders_of_magnitude(streams: Streams) -> None:
    price = streams["bid"]["price"]
    assert price.is_between(100, 100_000_000).all()
    for power in range(2, 8):
        share = price.is_between(10**power, 10 ** (power + 1), closed="left").mean()
        assert share == pytest.approx(1 / 6, abs=0.02)


def test_half_of_the_bids_come_through_four_channels(streams: Streams) -> None:
    known = streams["bid"]["channel"].is_in(["Google", "Facebook", "Baidu", "Apple"])
    assert known.mean() == pytest.approx(0.5, abs=0.02)
    has_id = streams["bid"].filter(~known)["url"].str.contains("&channel_id=")
    assert has_id.mean() == pytest.approx(0.9, abs=0.02)


def test_rows_have_the_sizes_of_the_benchmark(streams: Streams) -> None:
    texts = ["name", "email_address", "credit_card", "city", "state", "extra"]
    size = streams["person"].select(pl.sum_horizontal(pl.col(texts).str.len_bytes())).to_series()
    assert size.mean() == pytest.approx(192, abs=5)
    assert streams["bid"]["extra"].str.len_bytes().mean() == pytest.approx(68, abs=1)
    assert streams["bid"]["extra"].str.contains(r"^[a-z]+$").all()


def test_auctions_are_open_while_a_hundred_others_open(streams: Streams) -> None:
    life = (streams["auction"]["expires"] - streams["auction"]["date_time"]).dt.total_microseconds()
    mean = BLOCK * EPOCH // 3 * SECOND // 10_000
    assert life.is_between(1, 2 * mean + 200).all()
    assert life.mean() == pytest.approx(mean, rel=0.05)


@pytest.mark.parametrize("disorder", [0, SECOND // 10])
def test_what_has_closed_by_the_last_event_is_closed_once(disorder: int) -> None:
    streams = Site(COUNT, seed=3, disorder=disorder).streams()
    last = max(streams[name]["date_time"].max() for name in ("person", "auction", "bid"))  # type: ignore[type-var]
    expected = streams["auction"].filter(pl.col("expires") <= pl.lit(last))
    same = ["id", "seller", "category"]
    assert_frame_equal(
        streams["closed"].select(*same, opened="opened", date_time="date_time").sort("id"),
        expected.select(*same, opened="date_time", date_time="expires").sort("id"),
    )


def test_disorder_moves_rows_by_less_than_it_says(streams: Streams, shuffled: Streams) -> None:
    for name in ("person", "auction", "bid"):
        assert_frame_equal(shuffled[name].sort("date_time"), streams[name])
    for rows in shuffled.values():
        late = (rows["date_time"].cum_max() - rows["date_time"]).dt.total_microseconds()
        assert late.max() > SECOND // 100  # type: ignore[operator]
        assert late.max() < SECOND // 10  # type: ignore[operator]


def test_the_schema_is_that_of_the_benchmark(streams: Streams) -> None:
    whole, text = pl.Int64(), pl.String()
    assert dict(streams["person"].schema) == {
        "id": whole,
        **dict.fromkeys(["name", "email_address", "credit_card", "city", "state"], text),
        "date_time": TIME,
        "extra": text,
    }
    assert dict(streams["auction"].schema) == {
        "id": whole,
        "item_name": text,
        "description": text,
        "initial_bid": whole,
        "reserve": whole,
        "date_time": TIME,
        "expires": TIME,
        "seller": whole,
        "category": whole,
        "extra": text,
    }
    assert dict(streams["bid"].schema) == {
        "auction": whole,
        "bidder": whole,
        "price": whole,
        "channel": text,
        "url": text,
        "date_time": TIME,
        "extra": text,
    }
    assert not any(rows.null_count().sum_horizontal().item() for rows in streams.values())


def test_files_have_what_arrives_one_after_another(tmp_path: Path, shuffled: Streams) -> None:
    write_site(Site(COUNT, 3, disorder=SECOND // 10), tmp_path, files=7)
    for name, rows in shuffled.items():
        files = sorted((tmp_path / name).iterdir())
        assert [path.name for path in files] == [f"{number:04d}.parquet" for number in range(7)]
        assert_frame_equal(pl.concat([pl.read_parquet(path) for path in files]), rows)


# The site of the demonstration: the same generator with other settings


@pytest.fixture(scope="module")
def shown() -> Streams:
    return demo_site(COUNT, seed=3).streams()


@pytest.mark.parametrize(
    ("stream", "column", "other"),
    [("auction", "seller", "person"), ("bid", "bidder", "person"), ("bid", "auction", "auction")],
)
def test_without_a_lead_all_that_is_referred_to_is_there_already(
    shown: Streams, stream: str, column: str, other: str
) -> None:
    known = shown[other].select(pl.col("id").alias(column), since="date_time")
    joined = shown[stream].join(known, on=column)
    assert joined.height == shown[stream].height
    assert (joined["since"] <= joined["date_time"]).all()


@pytest.mark.parametrize(
    ("stream", "column", "place", "share"),
    [("bid", "auction", 0, 0.5), ("bid", "bidder", 1, 0.75), ("auction", "seller", 0, 0.75)],
)
def test_chance_has_the_same_favourites_without_a_lead(
    shown: Streams, stream: str, column: str, place: int, share: float
) -> None:
    is_hot = (shown[stream][column] - FIRST_ID) % BLOCK == place
    assert is_hot.mean() == pytest.approx(share, abs=0.03)


def test_rows_that_are_not_padded_differ_in_nothing_else(streams: Streams) -> None:
    bare = Site(COUNT, seed=3, padded=False).streams()
    for name, rows in streams.items():
        assert_frame_equal(bare[name], rows.select(pl.exclude("extra")))


@pytest.mark.parametrize("padded", [False, True])
def test_the_declared_columns_are_those_of_the_rows(*, padded: bool) -> None:
    site = Site(100, seed=1, padded=padded)
    for name, rows in site.streams().items():
        declared = [column.split()[0] for column in columns_of(padded=padded)[name].split(", ")]
        assert declared == rows.columns


def test_the_demonstration_is_slow_and_in_order(shown: Streams) -> None:
    site = demo_site(COUNT, seed=3)
    for rows in shown.values():
        times = rows["date_time"].dt.epoch("us")
        assert times.is_sorted()
        assert times.is_between(site.begins(), site.ends()).all()
    assert (site.ends() - site.begins()) // SECOND == (COUNT - 1) // 100


def test_the_numbers_of_people_and_auctions_are_unique(shown: Streams) -> None:
    for name in ("person", "auction", "closed"):
        assert shown[name]["id"].is_unique().all()


def test_texts_are_there(shown: Streams) -> None:
    for rows in shown.values():
        assert sum(rows.null_count().row(0)) == 0
    person, auction, bid = shown["person"], shown["auction"], shown["bid"]
    assert person["email_address"].str.contains(r"^[a-z_]+@[a-z_]+\.com$").all()
    assert person["credit_card"].str.contains(r"^(\d{4} ){3}\d{4}$").all()
    assert auction["description"].str.len_chars().max() == 99
    assert bid["url"].str.contains("channel_id=").mean() == pytest.approx(0.45, abs=0.02)


def test_a_path_with_a_quote_can_be_declared(tmp_path: Path) -> None:
    assert "Ann''s/bid'" in declarations(demo_site(1, seed=1), tmp_path / "Ann's")


def test_chance_is_even_and_lanes_are_independent() -> None:
    places = pl.int_range(50_000, eager=True)
    first = Chance(1).fractions(places, lane="first")
    second = Chance(1).fractions(places, lane="second")
    assert first.is_between(0, 1, closed="left").all()
    assert first.mean() == pytest.approx(0.5, abs=0.01)
    frame = pl.DataFrame({"first": first, "second": second})
    assert abs(frame.select(pl.corr("first", "second")).item()) < 0.02
