"""Cars on expressways, tick by tick: a function of a few numbers and a seed.

A tick is the 30 seconds between two reports of a car; all cars are moved at once, as columns. A car
enters by the ramp of a segment (lane 0), travels in lanes 1 to 3, leaves by the ramp of another
(lane 4), rests and comes again. It is the slower the more cars are in its segment. From time to
time a car stops and the next one behind runs into it: both stand at one place for 10 to 20
minutes, and those behind crawl past or queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.linear_road.rules import ENTRY_LANE, EXIT_LANE, MILE, REPORT_SECONDS
from tidemill.demo.chance import Chance

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FEET", "Traffic", "drive"]

FEET = 44
"""The feet that one mile an hour makes in a tick."""

_SET_OUT = 10  # by this tick every car has set out once
_STOP = (20, 40)  # for how many ticks an accident lasts: 10 to 20 minutes
_NEAR = 60 * FEET  # a car that is closer behind can run into the one before it


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


def drive(traffic: Traffic) -> Iterator[pl.DataFrame]:
    """The cars on the road at every tick, as the columns of ``_garage``."""
    chance = Chance(traffic.seed)
    cars = _garage(traffic, chance)
    for tick in range(traffic.minutes * 60 // REPORT_SECONDS):
        luck = _Luck(chance, cars.height, tick)
        cars = _left(cars, luck)
        cars = _crashed(cars, luck, traffic)
        cars = _moved(cars, luck, traffic)
        cars = _entered(cars, luck)
        yield cars.filter("travels")


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
    pairs = _pairs(cars.with_columns(luck.below(2**30, "victim").alias("victim")), luck.tick)
    pairs = pairs.filter(pl.col("exp_way").is_in(unlucky.arg_true().cast(pl.Int64).implode()))
    stop = luck.tick + _STOP[0] + pl.col("victim") % (_STOP[1] - _STOP[0] + 1)
    hit = pl.concat(
        [
            pairs.select(pl.col(name).alias("carid"), "place", "place_lane", stop.alias("stop"))
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


def _pairs(cars: pl.DataFrame, tick: int) -> pl.DataFrame:
    """For each expressway two cars that can crash, chosen by ``victim``: one, and who is ahead."""
    ahead = {"other": "carid", "place": "way", "place_lane": "lane"}
    return (
        cars.filter(
            "travels",
            pl.col("lane").is_between(ENTRY_LANE + 1, EXIT_LANE - 1),
            pl.col("stands") <= tick,
        )
        .sort("exp_way", "dir", "way", "carid")
        .with_columns(
            pl.col(name).shift(-1).over("exp_way", "dir").alias(alias)
            for alias, name in ahead.items()
        )
        .filter(
            (pl.col("place") - pl.col("way")).is_between(1, _NEAR),
            pl.col("place") < pl.col("exit"),
        )
        .sort("exp_way", "victim")
        .unique("exp_way", keep="first", maintain_order=True)
    )


def _moved(cars: pl.DataFrame, luck: _Luck, traffic: Traffic) -> pl.DataFrame:
    """Those on the road have gone on for a tick."""
    stands = pl.col("stands") > luck.tick
    speed = pl.when(stands).then(0).otherwise(_speed(luck, traffic))
    way = pl.min_horizontal(pl.col("way") + FEET * pl.col("speed"), "exit")
    change = (pl.col("lane") - 1 + luck.below(8, "change") // 7) % 3 + 1
    lane = (
        pl.when(stands)
        .then("lane")
        .when(pl.col("way") == pl.col("exit"))
        .then(EXIT_LANE)
        .when(pl.col("lane") == ENTRY_LANE)
        .then(1 + luck.below(3, "lane"))
        .otherwise(change)
    )
    cars = _with_sites(cars, stands)
    for name, value in (("speed", speed), ("way", way), ("lane", lane)):
        cars = cars.with_columns(pl.when("travels").then(value).otherwise(name).alias(name))
    return cars.drop("site", "site_lane")


def _with_sites(cars: pl.DataFrame, stands: pl.Expr) -> pl.DataFrame:
    """The way and lane of the next car that stands ahead of each, NULL if there is none."""
    sites = cars.filter("travels", stands).select(
        "exp_way", "dir", "way", site="way", site_lane="lane"
    )
    ahead = cars.sort("way").join_asof(
        sites.unique().sort("way", "site_lane"),
        on="way",
        by=["exp_way", "dir"],
        strategy="forward",
        check_sortedness=False,  # they are sorted, which it cannot tell within groups
    )
    return ahead.sort("carid")


def _speed(luck: _Luck, traffic: Traffic) -> pl.Expr:
    """The speed of a car that does not stand, by its lane, the crowd and what is ahead."""
    crowd = pl.col("travels").sum().over("exp_way", "dir", pl.col("way") // MILE)
    wish = 50 + 8 * pl.col("lane") + pl.col("temper")
    flows = (wish / (1 + (crowd / traffic.jam) ** 2)).cast(pl.Int64).clip(2)
    crawls = pl.min_horizontal(flows, 6 + luck.below(10, "crawl"))
    gap = pl.col("site") - pl.col("way")
    blocked = (gap < MILE // 8) & (pl.col("site_lane") == pl.col("lane"))
    queues = blocked & (luck.below(2, "queue") == 0)
    return pl.when(queues).then(0).when(gap < MILE).then(crawls).otherwise(flows)


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
