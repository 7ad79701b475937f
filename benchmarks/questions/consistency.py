"""Whether every answer is one that was true at some instant: money that only moves adds up to 0.

Transfers come out of order; credits and debits by account, a full outer join of both, and the sum
of all balances. The total must be 0 at every instant of every answer, and so must be the sum that
a reader has who applies the changes, after every single step, for every technique, in one
partition and in three, on the local engine and on Spark. Who looks is plain Python.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from benchmarks.consistency.native import Tried, as_it_is, by_window, two_queries
from benchmarks.consistency.runs import Seen, in_memory, local, on_spark, steps_of
from benchmarks.consistency.transfers import VARIANTS, arrivals
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import polars as pl

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

TECHNIQUES = ("direct", "negative", "hybrid", "pattern")
COLUMNS = (
    *("technique", "engine", "partitions", "steps of each"),
    *("instants checked", "wrong", "missing", "seconds"),
)


def answers(context: Context) -> Iterator[Table]:
    """What readers see on each engine, and what Spark's own operators give."""
    count, most = (400, 20) if context.full else (80, 20)
    transfers = arrivals(count, accounts=12, seed=context.seed)
    steps = list(steps_of(transfers, most, context.seed))
    yield _enforced(
        f"The total of {count} transfers, as a sink gets its changes and as results, local",
        [
            (technique, "local", partitions, local(variant, technique, partitions, steps))
            for variant in VARIANTS
            for technique in _told(context, TECHNIQUES)
            for partitions in (1, 3)
        ],
    )
    yield _memory(context, steps)
    few = list(steps_of(transfers[: 120 if context.full else 60], most, context.seed))
    runs = [("pattern", 3)]
    if context.full:
        runs += [("pattern", 1), *((technique, 3) for technique in TECHNIQUES[:-1])]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = []
        for technique, partitions in runs:
            context.progress(f"Spark, {technique}, {partitions}")
            folder = context.folder / f"{technique}{partitions}"
            seen = pool.submit(on_spark, technique, partitions, few, folder).result()
            found += [(technique, "Spark", partitions, one) for one in seen]
    yield _enforced("The same on Spark, of fewer transfers, as a sink gets its changes", found)
    context.progress("native")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        tried = pool.submit(native, folder / "in", context.folder / "native").result()
    yield Table(
        "The same with Spark's own operators",
        ("what", "totals seen", "not 0", "Spark says"),
        tuple((one.what, one.totals, one.wrong, one.says) for one in tried),
    )


def native(folder: Path, out: Path) -> list[Tried]:
    """What Spark's own operators give, on a Spark that nobody else has set up."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    return [
        *as_it_is(spark, folder, out),
        by_window(spark, folder, out),
        two_queries(spark, folder, out / "two"),
    ]


def _enforced(title: str, found: Sequence[tuple[str, str, int, Seen]]) -> Table:
    """The table, if nothing is wrong.

    Raises:
        WrongAnswerError: A total is not 0, or an instant was never delivered.
    """
    for technique, engine, partitions, seen in found:
        if seen.wrong or seen.missing:
            raise WrongAnswerError(
                f"{engine}, {technique}, {partitions} partitions, {seen.variant}: "
                f"{seen.wrong} of {seen.instants} instants are wrong, {seen.missing} are missing"
            )
    alike: dict[tuple[str, str, int], list[Seen]] = {}
    for technique, engine, partitions, seen in found:
        alike.setdefault((technique, engine, partitions), []).append(seen)
    windows = ", ".join(f"`{variant}`" for variant in dict.fromkeys(s.variant for *_, s in found))
    return Table(
        title,
        COLUMNS,
        tuple((*run, *_added_up(seen)) for run, seen in alike.items()),
        (f"Over the windows {windows}.",),
    )


def _added_up(seen: Sequence[Seen]) -> tuple[Cell, ...]:
    """What was seen over all windows."""
    return (
        seen[0].steps,
        *(sum(one.instants for one in seen), sum(one.wrong for one in seen)),
        *(sum(one.missing for one in seen), sum(one.seconds for one in seen)),
    )


def _memory(context: Context, steps: Sequence[pl.DataFrame]) -> Table:
    """What ``changes()`` gives while the streams go on."""
    return _enforced(
        "changes() of an answer in memory, read from the first instant on after every step",
        [
            (technique, "local", 1, in_memory(variant, technique, steps))
            for variant in VARIANTS
            for technique in _told(context, TECHNIQUES)
        ],
    )


def _told(context: Context, techniques: Sequence[str]) -> Iterator[str]:
    for technique in techniques:
        context.progress(technique)
        yield technique


QUESTION = Question(
    "consistency", "Does money that only moves add up to 0 at every instant?", answers
)
