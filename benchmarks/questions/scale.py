"""What an event costs as the rate, the window, the slide, the keys, the queries or partitions grow.

A grouped sum, a join and DISTINCT on the local engine. Everything but what grows stays as it is:
10,000 rows a second of each stream in steps of a second, 1,000 keys, windows of ten seconds. What
counts is the time of the processor for each event, in the step in the middle, once windows are
full; one core. Each answer is compared with a plain computation at the last instant.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.scale.curves import Curves
from benchmarks.scale.load import Load, cost_of, distinct, greatest, joined, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.harness.question import Context
    from benchmarks.scale.load import Query

RANGE = 10

Point = tuple[Load, "list[Query]"]


@dataclass(frozen=True, slots=True)
class Axis:
    """Something that grows.

    Attributes:
        name: Its name, from which the picture has its own.
        grows: What grows, in words.
        points: How far, and how far if there is time.
        lines: By the name of a query, what is run at a point.
        note: How it is meant.
    """

    name: str
    grows: str
    points: tuple[Sequence[float], Sequence[float]]
    lines: dict[str, Callable[[float], Point]]
    note: str = ""


THREE: dict[str, Callable[[float], Query]] = {
    "sum by key": summed,
    "join": joined,
    "distinct": distinct,
}


def _each(
    point: Callable[[float, Callable[[float], Query]], Point],
) -> dict[str, Callable[[float], Point]]:
    """A line for each of the three queries."""

    def line(query: Callable[[float], Query]) -> Callable[[float], Point]:
        return lambda x: point(x, query)

    return {name: line(query) for name, query in THREE.items()}


AXES = (
    Axis(
        "rate",
        "rows a second of a stream, in steps of a second",
        ((100, 1_000, 10_000, 100_000), (10, 100, 1_000, 10_000, 100_000, 300_000)),
        _each(lambda x, query: (Load(rate=int(x)), [query(RANGE)])),
        "A step costs the same whether few rows come or none: what an event costs falls until there"
        " are some ten thousand a step.",
    ),
    Axis(
        "window",
        "RANGE in seconds",
        ((1, 10, 100), (1, 10, 30, 100, 300)),
        _each(lambda x, query: (Load(), [query(x)])),
    ),
    Axis(
        "slide",
        "RANGE / SLIDE, RANGE 60 s",
        ((1, 6, 60, 600), (1, 6, 60, 600, 6_000)),
        {
            "sum by key": lambda x: (Load(), [summed(60, 60 / x)]),
        },
        "A window that slides by a hundredth of a second changes a hundred times in a step.",
    ),
    Axis(
        "keys",
        "keys",
        ((10, 1_000, 100_000), (10, 100, 1_000, 10_000, 100_000, 1_000_000)),
        _each(lambda x, query: (Load(keys=int(x)), [query(RANGE)])),
        "Few keys mean many pairs in the join: what it costs there is its results.",
    ),
    Axis(
        "queries",
        "queries on one stream",
        ((1, 4, 16), (1, 2, 4, 8, 16, 32, 64)),
        {
            "sums with filters of their own": lambda x: (
                Load(),
                [summed(RANGE, least=10 * number) for number in range(int(x))],
            ),
            "sums with windows of their own": lambda x: (
                Load(),
                [summed(RANGE - number / 10, least=1) for number in range(int(x))],
            ),
            "the same sum": lambda x: (Load(), [summed(RANGE)] * int(x)),
        },
        "What an event costs is that of all queries together.",
    ),
    Axis(
        "rows",
        "the last rows that count",
        ((1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000)),
        {"MAX": lambda x: (Load(rate=1_000), [greatest(int(x), 1_000)])},
        "Nobody knows when a row will be displaced: its value is withdrawn by a message. A thousand"
        " rows a second.",
    ),
    Axis(
        "partitions",
        "partitions",
        ((1, 2, 4, 8), (1, 2, 4, 8, 16)),
        _each(lambda x, query: (Load(partitions=int(x)), [query(RANGE)])),
        "In one process, one after another: what partitioning itself costs.",
    ),
)


def answers(context: Context) -> Iterator[Table]:
    """A table and a picture for each."""
    for axis in AXES:
        points = axis.points[context.full]
        costs = {name: [] for name in axis.lines}  # type: dict[str, list[float]]
        state = {name: [] for name in axis.lines}  # type: dict[str, list[int]]
        for x in points:
            for name, at in axis.lines.items():
                context.progress(f"{axis.grows}: {x:g}, {name}")
                cost = cost_of(*at(x))
                costs[name].append(cost.microseconds)
                state[name].append(cost.state_bytes)
        title = f"What an event costs: {axis.grows}"
        Curves("What an event costs", axis.grows, "microseconds an event", points, costs).save(
            context.out / f"scale_{axis.name}.png"
        )
        yield Table(
            title,
            (axis.grows, *(f"{n}: us" for n in costs), *(f"{n}: state, kB" for n in state)),
            tuple(
                (
                    x,
                    *(found[i] for found in costs.values()),
                    *(round(found[i] / 1000) for found in state.values()),
                )
                for i, x in enumerate(points)
            ),
            (axis.note,) if axis.note else (),
        )


QUESTION = Question("scale", "What an event costs as things grow", answers)
