"""Linear Road's input: what the cars of ``traffic.py`` report, and what they ask for.

A car on the road reports its position every 30 seconds, each at seconds of its own. With some
reports it asks for its balance, for what it has paid on an earlier day, or for a travel time.

    python -m benchmarks.linear_road.simulator directory [--cars 1000] [--minutes 10]
"""

# ruff: noqa: T201 — a program prints

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

from tidemill.demo.chance import Chance

sys.path.insert(0, str(Path(__file__).parents[1]))  # a program finds its neighbours from here

from benchmarks.linear_road.rules import (
    BALANCE,
    EAST,
    EXPENDITURE,
    MILE,
    POSITION,
    REPORT_SECONDS,
    SECOND,
    SEGMENTS,
    TRAVEL_TIME,
)
from benchmarks.linear_road.traffic import Traffic, drive

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

_ROAD = SEGMENTS * MILE
_NONE = pl.lit(-1, pl.Int64)


def simulate(traffic: Traffic) -> pl.DataFrame:
    """All reports and requests, in the order of their time; ``at`` is the time in microseconds."""
    ticks = [
        cars.with_columns(pl.lit(tick, pl.Int64).alias("tick"))
        for tick, cars in enumerate(drive(traffic))
    ]
    reports = _positions(pl.concat(ticks))
    rows = pl.concat([reports, *_requests(reports, traffic)]).sort("time", "type", "carid")
    number = pl.when(pl.col("type") != POSITION).then(pl.int_range(pl.len())).otherwise(-1)
    at = pl.col("time") * SECOND
    return rows.select(at.alias("at"), *COLUMNS).with_columns(number.alias("qid"))


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


def _requests(reports: pl.DataFrame, traffic: Traffic) -> Iterator[pl.DataFrame]:
    """What cars ask with some of their reports."""
    chance = Chance(traffic.seed)
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
