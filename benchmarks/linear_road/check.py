"""Linear Road, checked: simulate traffic, run all queries, compare with the validator.

Every answer must be the same bag of rows with the same instants, in one partition and in three.

    python -m benchmarks.linear_road.check [--cars 300] [--minutes 40]
"""

# ruff: noqa: T201 — a benchmark prints

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

import tidemill

sys.path.insert(0, str(Path(__file__).parents[1]))  # a program finds its neighbours from here

from benchmarks.linear_road.queries import QUERIES, declarations, views
from benchmarks.linear_road.rules import Rules
from benchmarks.linear_road.simulator import COLUMNS, Traffic, write_traffic
from benchmarks.linear_road.validator import Report, validate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.linear_road.validator import Answers, Row

__all__ = ["Comparison", "answers", "compare", "expected", "scaled"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is expected of a query and what was found.

    Attributes:
        query: Its name.
        expected: How many rows the validator has.
        found: How many rows Tidemill has.
        missing: Rows that should be there and are not.
        surplus: Rows that should not be there.
    """

    query: str
    expected: int
    found: int
    missing: Counter[Row]
    surplus: Counter[Row]

    @property
    def ok(self) -> bool:
        """Whether the answers are equal."""
        return not self.missing and not self.surplus


def scaled(cars: int) -> int:
    """How many cars make a segment full, for so many on an expressway: tolls are due above it.

    >>> scaled(300), scaled(10_000)
    (5, 166)
    """
    return max(2, cars // 60)


def expected(rows: pl.DataFrame, directory: Path, rules: Rules) -> Answers:
    """The answers of the validator."""
    history = pl.read_parquet(directory / "history.parquet")
    paid = {(car, day, way): toll for car, day, way, toll in history.rows()}
    return validate((Report(*row) for row in rows.select(COLUMNS).iter_rows()), paid, rules)


def answers(directory: Path, rules: Rules, *, partitions: int) -> tuple[float, Answers]:
    """The time, and the answers of Tidemill."""
    session = tidemill.connect(partitions=partitions)
    session.sql(declarations(directory))
    session.sql(views(rules))
    found = {name: session.sql(f"CREATE QUERY {name} AS {text}") for name, text in QUERIES.items()}
    began = perf_counter()
    session.run()
    time = perf_counter() - began
    bags: Answers = {}
    for name, query in found.items():
        assert isinstance(query, tidemill.Query), "CREATE QUERY gives a query"
        bags[name] = Counter(query.results().rows())
    return time, bags


def compare(wanted: Answers, found: Answers) -> list[Comparison]:
    """Each query's rows, as bags."""
    return [
        Comparison(
            name,
            wanted[name].total(),
            found[name].total(),
            wanted[name] - found[name],
            found[name] - wanted[name],
        )
        for name in QUERIES
    ]


def show(comparisons: Iterable[Comparison]) -> bool:
    """Print the table, with some rows where answers differ; whether they are all equal."""
    print("| query | rows expected | rows found | ok |")
    print("|---|---:|---:|---|")
    comparisons = list(comparisons)
    for one in comparisons:
        ok = "yes" if one.ok else "NO"
        print(f"| {one.query} | {one.expected:,} | {one.found:,} | {ok} |")
    for one in comparisons:
        for word, rows in (("missing", one.missing), ("surplus", one.surplus)):
            for row in sorted(rows, key=lambda row: row[-2:])[:5]:
                print(f"{one.query}: {word} {row}")
    return all(one.ok for one in comparisons)


def main() -> None:
    """Print a table for each number of partitions."""
    parser = argparse.ArgumentParser(description="Check Linear Road on the local engine.")
    parser.add_argument("--expressways", type=int, default=1)
    parser.add_argument("--cars", type=int, default=300, help="on each expressway")
    parser.add_argument("--minutes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--free-cars", type=int, help="tolls are due above; by default scaled")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 3])
    options = parser.parse_args()
    full = scaled(options.cars)
    traffic = Traffic(options.expressways, options.cars, options.minutes, options.seed, jam=full)
    rules = Rules(free_cars=full if options.free_cars is None else options.free_cars)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        began = perf_counter()
        rows = write_traffic(traffic, directory)
        print(f"{rows.height:,} rows, simulated in {perf_counter() - began:.1f} s")
        began = perf_counter()
        wanted = expected(rows, directory, rules)
        print(f"validated in {perf_counter() - began:.1f} s")
        paid = sum(count for row, count in wanted["notices"].items() if row[6])
        print(f"{paid:,} tolls to pay; they are due above {rules.free_cars} cars a segment")
        equal = True
        for partitions in options.partitions:
            time, found = answers(directory, rules, partitions=partitions)
            print(f"\n{partitions} partition(s), all queries in {time:.1f} s\n")
            equal = show(compare(wanted, found)) and equal
    sys.exit(not equal)


if __name__ == "__main__":
    main()
