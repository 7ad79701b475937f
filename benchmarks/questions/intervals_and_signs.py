"""Intervals against signs: Krämer's queries over an auction site, and windows that count rows.

Each query runs in interval form (direct) and in signed form from the window up (negative), on the
same batches; what counts is the ratio of the times of the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.techniques.shapes import Shape, table_of
from benchmarks.techniques.sides import (
    DIRECT,
    NEGATIVE,
    PATTERN,
    by_technique,
    compare,
    declared,
    feed_of,
    planned,
)
from tidemill.demo.nexmark import demo_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

AUCTIONS = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT",
    "auction": "id BIGINT, seller BIGINT, initial_bid BIGINT",
    "closed": "id BIGINT, seller BIGINT",
}
QUERIES = {
    "Q1 currency, map": "SELECT auction, bidder, price * 0.9 AS euro FROM bid [RANGE 1 MINUTE]",
    "Q2 some items, filter": "SELECT auction, price FROM bid [RANGE 1 MINUTE] "
    "WHERE auction IN (1007, 1020, 1087, 1201, 1219)",
    "Q3 closed soon, join": "SELECT a.id, a.seller FROM auction [RANGE 1 MINUTE] a "
    "JOIN closed c ON a.id = c.id",
    "Q4 highest bid, MAX and semi-join": "SELECT auction, price FROM bid [RANGE 1 MINUTE] "
    "WHERE price = (SELECT MAX(price) FROM bid [RANGE 1 MINUTE])",
    "Q5 closing price, joins and MAX": """
        SELECT p.id, a.seller, MAX(p.price) AS price
        FROM ((SELECT auction AS id, price FROM bid [RANGE 1 MINUTE])
              UNION ALL (SELECT id, initial_bid AS price FROM auction [RANGE 1 MINUTE])) p
        JOIN closed c ON p.id = c.id JOIN auction [RANGE 1 MINUTE] a ON c.id = a.id
        GROUP BY p.id, a.seller""",
}
_AS_WRITTEN = ("Q1", "Q2")
"""They run as written, since a rewritten filter stands below the window, where there are no signs;
Q4 and Q5 can be computed only once they are rewritten."""

_ABOUT_TWICE = 2
_STEP = 50


def auction_site(count: int, seed: int) -> dict[str, pl.DataFrame]:
    """The events of an auction site, with times from 0 on."""
    events = demo_site(count, seed).streams()
    times = [frame["date_time"].cast(pl.Int64) for frame in events.values()]
    first = min(int(time[0]) for time in times)
    return {
        name: events[name]
        .with_columns((pl.col("date_time").cast(pl.Int64) - first).alias("at"))
        .select(*(part.split()[0] for part in columns.split(", ")), "at")
        for name, columns in AUCTIONS.items()
    }


def answers(context: Context) -> Iterator[Table]:
    """Q1 to Q5, then count windows."""
    yield from _auctions(context)
    yield from _count_windows(context)


def _auctions(context: Context) -> Iterator[Table]:
    count = 200_000 if context.full else 40_000
    feed = feed_of(auction_site(count, context.seed + 6), 20)
    session = declared(AUCTIONS)
    found: list[tuple[Cell, ...]] = []
    ratios: dict[str, float] = {}
    for name, text in QUERIES.items():
        context.progress(name)
        plan = planned(session, text)
        sides = by_technique(plan, DIRECT, NEGATIVE, rewritten=not name.startswith(_AS_WRITTEN))
        result = compare(plan, sides, feed, repeat=3)
        direct, negative = result["direct"], result["negative"]
        ratios[name[:2]] = negative.seconds / direct.seconds
        messages = negative.messages / direct.messages
        state = f"{direct.state:,} / {negative.state:,}"
        out = negative.rows_out / max(direct.rows_out, 1)
        found.append((name, direct.seconds, ratios[name[:2]], messages, out, state))
    yield Table(
        f"Direct and negative: {count:,} events of an auction site, windows of a minute",
        (
            "query",
            "direct: s",
            "negative / direct",
            "messages",
            "rows of the answer",
            "state rows",
        ),
        tuple(found),
    )
    yield table_of("Of Krämer's findings", _found_by_kraemer(ratios, float(found[0][4] or 0)))


def _found_by_kraemer(ratios: dict[str, float], twice: float) -> Iterator[Shape]:
    yield Shape("Q1: twice as many messages", twice == _ABOUT_TWICE, f"{twice:.2f} times")
    for name, ratio in ratios.items():
        yield Shape(f"{name}: intervals are faster", ratio > 1, f"{ratio:.1f}")
    yield Shape(
        "Q1: about twice as fast",
        ratios["Q1"] >= _ABOUT_TWICE - 0.5,
        f"{ratios['Q1']:.1f}",
    )
    for name in ("Q2", "Q3"):
        yield Shape(
            f"{name}: more than twice, and more than Q1",
            ratios[name] > max(_ABOUT_TWICE, ratios["Q1"]),
            f"{ratios[name]:.1f} against {ratios['Q1']:.1f}",
            "columns are filtered, not objects made: a filter costs as little as a map",
        )
    yield Shape(
        "Q4, Q5: between once and twice",
        all(1 < ratios[name] < _ABOUT_TWICE for name in ("Q4", "Q5")),
        f"{ratios['Q4']:.1f}, {ratios['Q5']:.1f}",
        "a signed join finds and updates rows by key, an interval join appends and drops: "
        "intervals gain more",
    )


def _count_windows(context: Context) -> Iterator[Table]:
    """The last N rows in signed form and in interval form."""
    rows = 20_000 if context.full else 5_000
    numbers = pl.int_range(rows, dtype=pl.Int64, eager=True)
    values = (numbers.hash(seed=context.seed) % 1000).cast(pl.Int64)
    stream = pl.DataFrame({"v": values, "at": numbers * 20_000})
    feed = feed_of({"s": stream}, rows // _STEP)
    session = declared({"s": "v BIGINT"})
    found: list[tuple[Cell, ...]] = []
    shapes: list[Shape] = []
    for size in (100, 500, 2000):
        context.progress(f"the last {size:,} rows")
        plan = planned(session, f"SELECT v FROM s [ROWS {size}]")
        result = compare(plan, by_technique(plan, PATTERN, DIRECT), feed)
        signs, intervals = result["pattern"], result["direct"]
        assert signs.first is not None, "there are results"
        assert intervals.first is not None, "there are results"
        found.append(
            (
                size,
                signs.first,
                intervals.first,
                signs.seconds / rows * 1e6,
                intervals.seconds / rows * 1e6,
            )
        )
        at_once = signs.first <= _STEP and size < intervals.first <= size + 2 * _STEP
        says = f"N = {size:,}: signs give a result with the first rows, intervals after N"
        shapes.append(Shape(says, at_once, f"{signs.first:,}, {intervals.first:,}"))
    yield Table(
        f"The last N rows: {rows:,} rows, {_STEP} a step",
        (
            "N",
            "signs: rows until the first result",
            "intervals",
            "signs: us a row",
            "intervals: us a row",
        ),
        tuple(found),
    )
    yield table_of("Of Krämer's findings, count windows", shapes)


QUESTION = Question("intervals_and_signs", "What it costs to withdraw results by messages", answers)
