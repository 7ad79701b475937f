"""Linear Road live on the local engine: all queries in one session, second by second.

The network is filled first, in large steps that do not count. Then reports arrive as they would,
all of a second at that second, on the clock of ``harness/live.py``. The engine learns that a second
is over from the first report of the next one, as it does from any source: results that depend on
all reports of a second are a second late for that reason alone, which is part of their response.

A result answers the instant from which on it holds; that of a minute's statistics is the end of the
minute.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.live import Course, Served, live
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.stepped import Stepped, instants, resident
from benchmarks.linear_road.check import Comparison, expected, scaled
from benchmarks.linear_road.queries import QUERIES, declarations, views
from benchmarks.linear_road.rules import SECOND, Rules
from benchmarks.linear_road.simulator import Traffic, history, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.linear_road.validator import Answers
    from tidemill.runtime.answers import Answer

__all__ = [
    "CARS",
    "LIMIT",
    "Figures",
    "Plan",
    "declare",
    "drive",
    "prepare",
    "validated",
    "write_answers",
]

CARS = 60_000
"""The cars of a whole expressway: they send about 1,900 rows a second, the mean of the original."""

LIMIT = 5.0
"""How many seconds after its event a result may be out."""

FILL = 15
"""The seconds of a step while the network fills."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is driven.

    Attributes:
        scale: How many expressways; a part of one is one with fewer cars.
        minutes: For how long the network fills: in 5 minutes every car has set out.
        seconds: For how long the responses count.
        seed: Which traffic.
    """

    scale: float
    minutes: int
    seconds: int
    seed: int

    @property
    def traffic(self) -> Traffic:
        """The cars."""
        ways = max(1, round(self.scale))
        cars = round(CARS * self.scale / ways)
        minutes = self.minutes + -(-self.seconds // 60)
        return Traffic(ways, cars, minutes, self.seed, jam=scaled(cars), accident_minutes=2)

    @property
    def rules(self) -> Rules:
        """The rules: tolls are due where the fewer cars are still many."""
        return Rules(free_cars=scaled(self.traffic.cars))

    @property
    def filled(self) -> int:
        """The second from which on responses count."""
        return self.minutes * 60


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured.

    Attributes:
        course: The steps and responses.
        by_query: The responses of each query.
        state_rows: How many rows were remembered at the end.
        state_bytes: In how many bytes.
        resident: How many bytes the process had, with the input and all answers.
    """

    course: Course
    by_query: dict[str, pl.Series]
    state_rows: int
    state_bytes: int
    resident: int


def prepare(plan: Plan, folder: Path) -> pl.DataFrame:
    """Write the input and the history, and give the input."""
    traffic = plan.traffic
    rows = simulate(traffic).filter(pl.col("time") < plan.filled + plan.seconds)
    folder.mkdir(parents=True)
    rows.write_parquet(folder / "input.parquet")
    history(traffic).write_parquet(folder / "history.parquet")
    return rows


def declare(
    session: tidemill.Session, plan: Plan, folder: Path, *, into: str = "", files: int = 1
) -> None:
    """Register the streams, the views and all queries.

    Args:
        session: Where.
        plan: Whose rules.
        folder: Where the input is.
        into: Where answers go, with ``{name}`` for the name of the query.
        files: How many files are taken at once.
    """
    session.sql(declarations(folder, files=files))
    session.sql(views(plan.rules))
    for name, text in QUERIES.items():
        session.sql(f"CREATE QUERY {name} {into.format(name=name)} AS {text}")


def drive(plan: Plan, folder: Path) -> Figures:
    """Run what ``prepare`` has written; the answers go to ``answers`` in the same place."""
    session = tidemill.connect()
    declare(session, plan, folder)
    engine = Stepped(session)
    rows = pl.read_parquet(folder / "input.parquet")
    before = rows.filter(pl.col("time") < plan.filled)
    for begin in range(0, plan.filled, FILL):
        engine.step({"report": before.filter(pl.col("time") // FILL == begin // FILL)})
    course, by_query = _live(engine, rows.filter(pl.col("time") >= plan.filled))
    figures = Figures(course, by_query, *engine.state(), resident())
    engine.finish()
    write_answers(folder, engine.answers)
    return figures


def write_answers(folder: Path, answers: Mapping[str, Answer]) -> None:
    """Write the results where ``validated`` looks for them."""
    (folder / "answers").mkdir()
    for name, answer in answers.items():
        answer.results().write_parquet(folder / "answers" / f"{name}.parquet")


def _live(engine: Stepped, rows: pl.DataFrame) -> tuple[Course, dict[str, pl.Series]]:
    """Let the rows arrive, each at its second; all responses, and those of each query."""
    given: list[dict[str, pl.Series]] = []

    def serve(first: int, last: int) -> Served:
        part = rows[first:last]
        began, had = perf_counter(), process_time()
        out = engine.step({"report": part})
        seconds, processor = perf_counter() - began, process_time() - had
        answered = {name: instants(batches) / SECOND for name, batches in out.items()}
        given.append(answered)
        return Served(seconds, pl.concat(list(answered.values())), processor)

    course = live(rows["time"].cast(pl.Float64).to_list(), serve)
    outs = [step.began + step.seconds for step in course.steps]
    by_query = {
        name: pl.concat([out - answered[name] for out, answered in zip(outs, given, strict=True)])
        for name in QUERIES
    }
    return course, by_query


def validated(plan: Plan, folder: Path, rows: pl.DataFrame) -> int:
    """How many results the validator finds as well, of all queries.

    Raises:
        WrongAnswerError: It finds others.
    """
    wanted: Answers = expected(rows, folder, plan.rules)
    total = 0
    for name in QUERIES:
        found = Counter(pl.read_parquet(folder / "answers" / f"{name}.parquet").iter_rows())
        bag = wanted.pop(name)
        one = Comparison(name, bag.total(), found.total(), bag - found, found - bag)
        if not one.ok:
            raise WrongAnswerError(
                f"{name} at scale {plan.scale:g}: {one.missing.total():,} rows are missing and "
                f"{one.surplus.total():,} should not be there"
            )
        total += one.found
    return total
