"""Linear Road: the traffic is plausible, the validator is right, the queries agree with it."""

from __future__ import annotations

import doctest
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.linear_road import check, validator
from benchmarks.linear_road.check import answers, compare, expected
from benchmarks.linear_road.queries import QUERIES
from benchmarks.linear_road.rules import (
    EAST,
    ENTRY_LANE,
    EXIT_LANE,
    MILE,
    POSITION,
    REPORT_SECONDS,
    SECOND,
    SEGMENTS,
    WEST,
    Rules,
)
from benchmarks.linear_road.simulator import COLUMNS, simulate, write_traffic
from benchmarks.linear_road.traffic import FEET, Traffic
from benchmarks.linear_road.validator import Report, validate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRAFFIC = Traffic(cars=60, minutes=12, seed=3, jam=2, accident_minutes=2, requests=0.1)
RULES = Rules(free_cars=1)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return simulate(TRAFFIC)


@pytest.fixture(scope="module")
def trips(rows: pl.DataFrame) -> list[list[Report]]:
    """The position reports of each trip, from an entry ramp on."""
    return list(_trips(rows))


def _trips(rows: pl.DataFrame) -> Iterator[list[Report]]:
    positions = rows.filter(pl.col("type") == POSITION).sort("carid", "time")
    trip: list[Report] = []
    for report in map(Report._make, positions.select(COLUMNS).iter_rows()):
        if report.lane == ENTRY_LANE and trip:
            yield trip
            trip = []
        trip.append(report)
    yield trip


def test_traffic_is_a_function_of_its_seed() -> None:
    short = replace(TRAFFIC, minutes=4)
    assert simulate(short).equals(simulate(short))
    assert not simulate(short).equals(simulate(replace(short, seed=4)))


def test_expressways_have_cars_of_their_own() -> None:
    rows = simulate(Traffic(expressways=2, cars=5, minutes=6, seed=1))
    positions = rows.filter(pl.col("type") == POSITION)
    assert positions.select((pl.col("carid") // 5 == pl.col("exp_way")).all()).item()
    assert set(positions["exp_way"]) == {0, 1}


def test_a_trip_goes_from_a_ramp_to_a_ramp_with_a_report_every_30_seconds(
    trips: list[list[Report]],
) -> None:
    ends = (TRAFFIC.minutes * 60) - REPORT_SECONDS
    for trip in trips:
        assert [report.lane == ENTRY_LANE for report in trip] == [True] + [False] * (len(trip) - 1)
        assert all(report.lane != EXIT_LANE for report in trip[:-1])
        assert trip[-1].lane == EXIT_LANE or trip[-1].time >= ends
        assert all(b.time - a.time == REPORT_SECONDS for a, b in pairwise(trip))


def test_cars_go_forward_no_faster_than_they_can(trips: list[list[Report]]) -> None:
    for trip in trips:
        assert len({(report.exp_way, report.dir) for report in trip}) == 1
        sense = 1 if trip[0].dir == EAST else -1
        steps = [sense * (b.pos - a.pos) for a, b in pairwise(trip)]
        assert all(0 <= step <= 100 * FEET for step in steps)
        for report in trip:
            assert 0 <= report.pos < SEGMENTS * MILE
            assert report.seg == report.pos // MILE


def test_cars_are_slower_where_there_are_more_of_them(rows: pl.DataFrame) -> None:
    inside = rows.filter(pl.col("type") == POSITION, pl.col("lane").is_between(1, 3))
    crowd = pl.len().over(pl.col("time") // 60, "dir", "seg")
    crowded = inside.filter(crowd > 5)["speed"].to_list()
    free = inside.filter(crowd <= 2)["speed"].to_list()
    assert sum(crowded) / len(crowded) < 0.7 * sum(free) / len(free)


def test_accidents_are_two_cars_that_report_one_place_for_10_to_20_minutes() -> None:
    rows = simulate(replace(TRAFFIC, minutes=30))
    stops = (
        rows.filter(pl.col("type") == POSITION)
        .group_by("carid", "exp_way", "dir", "seg", "lane", "pos")
        .agg(pl.len().alias("reports"), pl.col("time").max().alias("last"))
        .filter(pl.col("reports") > 8, pl.col("last") < 29 * 60)
    )
    places = stops.group_by("exp_way", "dir", "pos", "lane").agg("carid", "reports")
    assert places.height >= 3
    assert all(len(cars) == 2 for cars in places["carid"])
    assert all(20 <= n <= 41 for n in stops["reports"])


def test_files_hold_one_stretch_of_time_after_the_other(tmp_path: Path) -> None:
    rows = write_traffic(replace(TRAFFIC, cars=20, minutes=4), tmp_path, seconds=60)
    parts = [pl.read_parquet(path) for path in sorted((tmp_path / "input").iterdir())]
    assert [set(part["time"] // 60) for part in parts] == [{0}, {1}, {2}, {3}]
    assert pl.concat(parts).equals(rows)
    assert rows["at"].is_sorted()


# Worked out by hand. Cars 1 and 2 crash in segment 10: each has reported the place four times at
# second 90 and 95, and car 1 moves on at 120. Car 6 enters segment 10 in minute 1, when the toll is
# due that the two have caused in minute 0; car 7 does in minute 2, which is free for the accident
# that was there when minute 1 ended. Car 3 comes from behind, 4 is past, 5 goes the other way.
PLACE = {"exp_way": 0, "dir": EAST, "seg": 10, "lane": 2, "pos": 10 * MILE + 100}


def _at(time: int, carid: int, seg: int, speed: int, *, lane: int = 1) -> Report:
    return Report(POSITION, time, carid, speed, 0, lane, EAST, seg, seg * MILE + time)


BY_HAND = sorted(
    [
        *(Report(POSITION, time, 1, 0, **PLACE) for time in (0, 30, 60, 90)),
        _at(120, 1, 10, 10),
        *(Report(POSITION, time, 2, 0, **PLACE) for time in (5, 35, 65, 95, 125)),
        Report(2, 60, 6, qid=100),
        _at(61, 6, 10, 30),
        Report(2, 61, 6, qid=101),
        _at(91, 6, 10, 30),
        _at(121, 6, 11, 30, lane=EXIT_LANE),
        Report(2, 170, 6, qid=102),
        _at(100, 3, 7, 60, lane=ENTRY_LANE),
        _at(130, 3, 8, 60),
        _at(110, 4, 11, 60),
        _at(115, 5, 12, 60)._replace(dir=WEST),
        _at(130, 7, 10, 50),
        Report(3, 140, 7, exp_way=0, day=4, qid=103),
        Report(3, 141, 7, exp_way=0, day=5, qid=104),
    ],
    key=lambda report: report.time,
)
PAID = {(7, 4, 0): 33}
HAND_RULES = Rules(free_cars=1)


def _instant(time: int, *row: float | None) -> tuple[float | None, ...]:
    return (time, *row, time * SECOND, time * SECOND + 1)


def test_the_validator_finds_what_was_worked_out_by_hand() -> None:
    found = validate(BY_HAND, PAID, HAND_RULES)
    assert found["accidents"] == Counter(
        [(0, EAST, 10, 2, 10 * MILE + 100, 95 * SECOND, 120 * SECOND)]
    )
    assert found["alerts"] == Counter([_instant(100, 3, 0, EAST, 7, 10)])
    assert found["notices"] == Counter(
        [
            _instant(0, 1, 0, EAST, 10, 0.0, 0),
            _instant(5, 2, 0, EAST, 10, 0.0, 0),
            _instant(61, 6, 0, EAST, 10, 0.0, 2),
            _instant(100, 3, 0, EAST, 7, 0.0, 0),
            _instant(110, 4, 0, EAST, 11, 0.0, 0),
            _instant(115, 5, 0, WEST, 12, 0.0, 0),
            _instant(130, 3, 0, EAST, 8, 0.0, 0),
            _instant(130, 7, 0, EAST, 10, 5.0, 0),
        ]
    )
    assert found["balances"] == Counter(
        [_instant(60, 6, 100, 0, None), _instant(61, 6, 101, 2, 61), _instant(170, 6, 102, 2, 61)]
    )
    assert found["expenditures"] == Counter(
        [_instant(140, 7, 103, 0, 4, 33), _instant(141, 7, 104, 0, 5, 0)]
    )
    segment = [row[:-2] for name in ("statistics", "tolls") for row in found[name] if row[3] == 10]
    assert segment == [
        *((0, 0, EAST, 10, 0.0, 2), (1, 0, EAST, 10, 10.0, 3), (2, 0, EAST, 10, 20.0, 3)),
        *((1, 0, EAST, 10, 0.0, 2, 2), (2, 0, EAST, 10, 5.0, 3, 0), (3, 0, EAST, 10, 10.0, 3, 8)),
    ]
    held = [row[-2:] for row in found["tolls"] if row[0] == 1]
    assert held == [(60 * SECOND - 1, 120 * SECOND - 1)]


def test_the_queries_find_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    rows = pl.DataFrame(BY_HAND, schema=dict.fromkeys(COLUMNS, pl.Int64), orient="row")
    rows = rows.with_columns((pl.col("time") * SECOND).alias("at"))
    rows.write_parquet(tmp_path / "input" / "0.parquet")
    history = [(car, day, way, toll) for (car, day, way), toll in PAID.items()]
    columns = ["carid", "day", "exp_way", "toll"]
    pl.DataFrame(history, schema=columns, orient="row").write_parquet(tmp_path / "history.parquet")
    wanted = validate(BY_HAND, PAID, HAND_RULES)
    _, found = answers(tmp_path, HAND_RULES, partitions=1)
    assert found == wanted
    other = validate(BY_HAND, PAID, replace(HAND_RULES, stopped_reports=5))
    differ = {one.query for one in compare(other, found) if not one.ok}
    assert differ == {"accidents", "tolls", "alerts", "notices"}, "a wrong answer is noticed"


def test_examples_run() -> None:
    assert all(doctest.testmod(module) == (0, 1) for module in (check, validator))


def test_all_queries_agree_with_the_validator(tmp_path: Path) -> None:
    rows = write_traffic(TRAFFIC, tmp_path)
    wanted = expected(rows, tmp_path, RULES)
    assert all(wanted[name] for name in QUERIES)
    assert sum(1 for row in wanted["notices"] if row[6]) >= 10, "tolls to pay"
    assert any(row[3] for row in wanted["balances"]), "balances that are not 0"
    for partitions in (1, 3):
        _, found = answers(tmp_path, RULES, partitions=partitions)
        assert all(one.ok for one in compare(wanted, found))
