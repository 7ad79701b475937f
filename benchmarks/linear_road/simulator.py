"""Traffic on expressways, as Linear Road's input: a function of a few numbers and a seed.

A tick is the 30 seconds between two reports of a car; all cars are moved at once, as columns. A car
enters by the ramp of a segment (lane 0), travels in lanes 1 to 3, leaves by the ramp of another
(lane 4), rests and comes again. It is the slower the more cars are in its segment. From time to
time a car stops and the next one behind runs into it: both report the same place for 10 to 20
minutes, and those behind crawl past. With its report a car asks for something now and then.

    python benchmarks/linear_road/simulator.py directory [--cars 1000] [--minutes 10]
"""

# ruff: noqa: T201 — a program prints

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

from tidemill.demo.chance import Chance

sys.path.insert(0, str(Path(__file__).parents[1]))  # a program finds its neighbours from here

from linear_road.rules import (
    BALANCE,
    EAST,
    ENTRY_LANE,
    EXIT_LANE,
    EXPENDITURE,
    MILE,
    POSITION,
    REPORT_SECONDS,
    SECOND,
    SEGMENTS,
    TRAVEL_TIME,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COLUMNS", "Traffic", "history", "simulate", "write_traffic"]

COLUMNS = (
    *("type", "time", "carid", "speed", "exp_way", "lane", "dir", "seg", "pos"),
    *("qid", "s_init", "s_end", "dow", "tod", "day"),
)
"""The fields of the benchmark, all whole numbers; -1 if one does not apply. Time is in seconds."""

DAYS = 10
"""How many days the history of tolls goes back."""

FEET = 44
"""The feet that one mile an hour makes in a tick."""

_ROAD = SEGMENTS * MILE
_SET_OUT = 10  # by this tick every car has set out once
_STOP = (20, 40)  # for how many ticks an accident lasts: 10 to 20 minutes
_NEAR = 60 * FEET  # a car that is closer behind can run into the one before it
_NONE = pl.lit(-1, pl.Int64)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is simulated.

    Attributes:
        expressways: How many there are; the scale L of the benchmark.
        cars: How many cars each has.
        minutes: For how long.
        seed: Which traffic.
        jam: With so many cars in a segment, speed is half of what it would be.
        accident_minutes: How many minutes there are between two accidents on an expressway, in the
            mean.
        requests: The share of reports that come with a request.
    """

    expressways: int = 1
    cars: int = 1000
    minutes: int = 10
    seed: int = 1
    jam: int = 16
    accident_minutes: int = 10
    requests: float = 0.02


def simulate(traffic: Traffic) -> pl.DataFrame:
    """All reports and requests, in the order of their time; ``at`` is the time in microseconds."""
    chance = Chance(traffic.seed)
    cars = _garage(traffic, chance)
    ticks = []
    for tick in range(traffic.minutes * 60 // REPORT_SECONDS):
        luck = _Luck(chance, cars.height, tick)
        cars = _left(cars, luck)
        cars = _crashed(cars, luck, traffic)
        cars = _moved(cars, luck, traffic)
        cars = _entered(cars, luck)
        ticks.append(cars.filter("travels").with_columns(pl.lit(tick, pl.Int64).alias("tick")))
    reports = _positions(pl.concat(ticks))
    rows = pl.concat([reports, *_requests(reports, traffic, chance)])
    number = pl.when(pl.col("type") != POSITION).then(pl.int_range(pl.len())).otherwise(-1)
    return (
        rows.sort("time", "type", "carid")
        .with_columns((pl.col("time") * SECOND).alias("at"), number.alias("qid"))
        .select("at", *COLUMNS)
    )


@dataclass(frozen=True, slots=True)
class _Luck:
    """The chances of all cars in one tick."""

    chance: Chance
    cars: int
    tick: int

    def below(self, limit: int, lane: str) -> pl.Series:
        """A number for each car, from 0 up to, but not including, the limit."""
        return self.chance.below(limit, self._positions(self.cars), lane=lane)

    def fractions(self, count: int, lane: str) -> pl.Series:
        """So many numbers from 0 up to, but not including, 1."""
        return self.chance.fractions(self._positions(count), lane=lane)

    def _positions(self, count: int) -> pl.Series:
        return pl.int_range(self.tick * count, (self.tick + 1) * count, eager=True)


def _garage(traffic: Traffic, chance: Chance) -> pl.DataFrame:
    """The cars before the first tick: all at home.

    ``way`` is how far a car is from the beginning of its direction, in feet; ``wakes`` is the tick
    at which a car at home sets out, ``stands`` the one up to which a car on the road stands still.
    """
    carid = pl.int_range(traffic.expressways * traffic.cars, eager=True).alias("carid")
    zero = pl.lit(0, pl.Int64)
    return carid.to_frame().select(
        "carid",
        (pl.col("carid") // traffic.cars).alias("exp_way"),
        chance.below(REPORT_SECONDS, carid, lane="phase").alias("phase"),
        (chance.below(17, carid, lane="temper") - 8).alias("temper"),
        chance.below(_SET_OUT, carid, lane="wakes").alias("wakes"),
        pl.lit(value=False).alias("travels"),
        *(zero.alias(name) for name in ("dir", "lane", "way", "speed", "exit", "stands")),
    )


def _left(cars: pl.DataFrame, luck: _Luck) -> pl.DataFrame:
    """Those that have reported from an exit ramp are at home."""
    leaves = pl.col("travels") & (pl.col("lane") == EXIT_LANE)
    return cars.with_columns(
        travels=pl.col("travels") & ~leaves,
        wakes=pl.when(leaves).then(luck.tick + 2 + luck.below(10, "rest")).otherwise("wakes"),
    )


def _crashed(cars: pl.DataFrame, luck: _Luck, traffic: Traffic) -> pl.DataFrame:
    """On some expressways a car has stopped, and the next one behind has run into it."""
    share = REPORT_SECONDS / 60 / traffic.accident_minutes
    unlucky = luck.fractions(traffic.expressways, "accident") < share
    if not unlucky.any():
        return cars
    ahead = {name: pl.col(name).shift(-1).over("exp_way", "dir") for name in ("carid", "way")}
    pairs = (
        cars.with_columns(luck.below(2**30, "victim").alias("victim"))
        .filter(
            "travels",
            pl.col("lane").is_between(ENTRY_LANE + 1, EXIT_LANE - 1),
            pl.col("stands") <= luck.tick,
            pl.col("exp_way").is_in(unlucky.arg_true().cast(pl.Int64).implode()),
        )
        .sort("exp_way", "dir", "way", "carid")
        .with_columns(
            ahead["carid"].alias("other"),
            ahead["way"].alias("place"),
            pl.col("lane").shift(-1).over("exp_way", "dir").alias("place_lane"),
        )
        .filter((pl.col("place") - pl.col("way")).is_between(1, _NEAR))
        .filter(pl.col("place") < pl.col("exit"))
        .sort("exp_way", "victim")
        .unique("exp_way", keep="first", maintain_order=True)
    )
    stop = (luck.tick + _STOP[0] + pl.col("victim") % (_STOP[1] - _STOP[0] + 1)).alias("stop")
    hit = pl.concat(
        [
            pairs.select(pl.col(name).alias("carid"), "place", "place_lane", stop)
            for name in ("carid", "other")
        ]
    )
    return (
        cars.join(hit, on="carid", how="left", maintain_order="left")
        .with_columns(
            way=pl.coalesce("place", "way"),
            lane=pl.coalesce("place_lane", "lane"),
            stands=pl.coalesce("stop", "stands"),
        )
        .drop("place", "place_lane", "stop")
    )


def _moved(cars: pl.DataFrame, luck: _Luck, traffic: Traffic) -> pl.DataFrame:
    """Those on the road have gone on for a tick."""
    stands = pl.col("travels") & (pl.col("stands") > luck.tick)
    sites = cars.filter(stands).select("exp_way", "dir", "way", site="way", site_lane="lane")
    if sites.height:
        cars = (
            cars.sort("way")
            .join_asof(
                sites.unique(maintain_order=True).sort("way"),
                on="way",
                by=["exp_way", "dir"],
                strategy="forward",
                check_sortedness=False,
            )
            .sort("carid")
        )
    else:
        cars = cars.with_columns(pl.lit(None, pl.Int64).alias(n) for n in ("site", "site_lane"))
    crowd = pl.col("travels").sum().over("exp_way", "dir", pl.col("way") // MILE)
    wish = 50 + 8 * pl.col("lane") + pl.col("temper")
    flowing = (wish / (1 + (crowd / traffic.jam) ** 2)).cast(pl.Int64).clip(2)
    gap = pl.col("site") - pl.col("way")
    queues = (
        (gap < MILE // 8) & (pl.col("site_lane") == pl.col("lane")) & (luck.below(2, "queue") == 0)
    )
    crawl = pl.min_horizontal(flowing, 6 + luck.below(10, "crawl"))
    speed = pl.when(stands | queues).then(0).when(gap < MILE).then(crawl).otherwise(flowing)
    cars = cars.with_columns(speed=pl.when("travels").then(speed).otherwise("speed"))
    way = pl.min_horizontal(pl.col("way") + FEET * pl.col("speed"), "exit")
    cars = cars.with_columns(way=pl.when("travels").then(way).otherwise("way"))
    other = (pl.col("lane") - 1 + luck.below(8, "change") // 7).clip(0, 5) % 3 + 1
    lane = (
        pl.when(stands)
        .then("lane")
        .when(pl.col("way") == pl.col("exit"))
        .then(EXIT_LANE)
        .when(pl.col("lane") == ENTRY_LANE)
        .then(1 + luck.below(3, "lane"))
        .otherwise(other)
    )
    return cars.with_columns(lane=pl.when("travels").then(lane).otherwise("lane")).drop(
        "site", "site_lane"
    )


def _entered(cars: pl.DataFrame, luck: _Luck) -> pl.DataFrame:
    """Those whose rest is over are on an entry ramp."""
    enters = ~pl.col("travels") & (pl.col("wakes") <= luck.tick)
    ramp = luck.below(40, "ramp") + luck.below(40, "other ramp")  # the middle is busiest
    trip: dict[str, pl.Series | pl.Expr] = {
        "dir": luck.below(2, "dir"),
        "lane": pl.lit(ENTRY_LANE, pl.Int64),
        "way": ramp * MILE,
        "speed": luck.below(20, "ramp speed") + 10,
        "exit": (ramp + luck.below(18, "length") + 3) * MILE - 1,
        "stands": pl.lit(0, pl.Int64),
    }
    return cars.with_columns(
        *(pl.when(enters).then(value).otherwise(name).alias(name) for name, value in trip.items()),
        travels=pl.col("travels") | enters,
    )


def _positions(cars: pl.DataFrame) -> pl.DataFrame:
    """The reports of cars on the road, each at its own second of a tick."""
    pos = pl.when(pl.col("dir") == EAST).then("way").otherwise(_ROAD - 1 - pl.col("way"))
    known = {
        "type": pl.lit(POSITION, pl.Int64),
        "time": pl.col("tick") * REPORT_SECONDS + pl.col("phase"),
        "seg": pos // MILE,
        "pos": pos,
        **{name: pl.col(name) for name in ("carid", "speed", "exp_way", "lane", "dir")},
    }
    return cars.select(known.get(name, _NONE).alias(name) for name in COLUMNS)


def _requests(reports: pl.DataFrame, traffic: Traffic, chance: Chance) -> Iterator[pl.DataFrame]:
    """What cars ask with some of their reports."""
    positions = reports["time"] * traffic.expressways * traffic.cars + reports["carid"]
    asks = chance.fractions(positions, lane="asks") < traffic.requests
    cars, positions = reports.filter(asks), positions.filter(asks)

    def below(limit: int, lane: str) -> pl.Expr:
        return pl.lit(chance.below(limit, positions, lane=lane))

    fields = {
        BALANCE: {},
        EXPENDITURE: {"exp_way": pl.col("exp_way"), "day": 1 + below(DAYS, "day")},
        TRAVEL_TIME: {
            "exp_way": pl.col("exp_way"),
            "s_init": below(SEGMENTS, "s_init"),
            "s_end": below(SEGMENTS, "s_end"),
            "dow": 1 + below(7, "dow"),
            "tod": below(24 * 60, "tod"),
        },
    }
    kinds = chance.below(10, positions, lane="kind")
    for kind, limit in ((BALANCE, (0, 4)), (EXPENDITURE, (5, 7)), (TRAVEL_TIME, (8, 9))):
        known = {
            "type": pl.lit(kind, pl.Int64),
            "time": pl.col("time"),
            "carid": pl.col("carid"),
            **fields[kind],
        }
        columns = cars.select(known.get(name, _NONE).alias(name) for name in COLUMNS)
        yield columns.filter(kinds.is_between(*limit))


def history(traffic: Traffic) -> pl.DataFrame:
    """What cars have paid on earlier days: on three of four days something."""
    key = pl.int_range(traffic.expressways * traffic.cars * DAYS, eager=True).alias("key")
    chance = Chance(traffic.seed)
    carid = pl.col("key") // DAYS
    return (
        key.to_frame()
        .select(
            carid.alias("carid"),
            (pl.col("key") % DAYS + 1).alias("day"),
            (carid // traffic.cars).alias("exp_way"),
            chance.below(100, key, lane="paid").alias("toll"),
        )
        .filter(chance.below(4, key, lane="drove") > 0)
    )


def write_traffic(traffic: Traffic, directory: Path, *, seconds: int = 60) -> pl.DataFrame:
    """Write the input, a file for so many seconds of it, and the history; the input is given back.

    The files are ``input/00000.parquet`` and so on, and ``history.parquet``.
    """
    rows = simulate(traffic)
    (directory / "input").mkdir(parents=True)
    parts = rows.with_columns(pl.col("time") // seconds).partition_by("time", maintain_order=True)
    begin = 0
    for part in parts:
        number = int(part["time"][0])
        path = directory / "input" / f"{number:05d}.parquet"
        rows[begin : begin + part.height].write_parquet(path)
        begin += part.height
    history(traffic).write_parquet(directory / "history.parquet")
    return rows


def main() -> None:
    """Write the traffic of the command line."""
    parser = argparse.ArgumentParser(description="Write Linear Road traffic as Parquet files.")
    parser.add_argument("directory", type=Path)
    for name in ("expressways", "cars", "minutes", "seed", "jam", "accident_minutes"):
        default = getattr(Traffic(), name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = vars(parser.parse_args())
    directory = options.pop("directory")
    began = perf_counter()
    rows = write_traffic(Traffic(**options), directory)
    print(f"{rows.height:,} rows in {perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
