"""How long it takes to say why a row is in an answer, why it changed, and why another is not there.

Streams of 20,000 rows a second keep ten minutes, by reference to their files. Nothing is done for
WHY while they come: what is measured is the statement, in a session that only looks at the
checkpoint. What it says is compared with what Polars finds in the raw rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl

import tidemill
from benchmarks.harness.comparable import require_same
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.linear_road.queries import declarations as of_reports
from benchmarks.linear_road.queries import views
from benchmarks.linear_road.rules import POSITION, SECOND, Rules
from benchmarks.linear_road.simulator import write_traffic
from benchmarks.linear_road.traffic import Traffic
from benchmarks.nexmark.queries import QUESTIONS
from tidemill.control import explaining
from tidemill.control.tracing import Kept
from tidemill.demo.nexmark import Site
from tidemill.demo.site import declarations as of_site
from tidemill.demo.site import write_site
from tidemill.model.batch import END, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.harness.question import Context
    from tidemill.algebra.plan import Plan
    from tidemill.control.asked import Asked
    from tidemill.model.time import Time

RATE, BAR = 20_000, 2.0
KEEP = "KEEP ALL BY REFERENCE;"
MINUTE = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, and what must be said.

    Attributes:
        name: What the query is called.
        text: The query.
        stream: The stream whose rows are compared.
        row: The row of the answer that is asked about.
        at: The instant.
        made_of: The raw rows that it is made of.
        moves: Whether a raw row may have to do with a change at an instant: its time, and that.
        absent: A condition that no row of the answer meets.
    """

    name: str
    text: str
    stream: str
    row: dict[str, int]
    at: int
    made_of: pl.LazyFrame
    moves: Callable[[pl.Expr, int], pl.Expr]
    absent: str


def answers(context: Context) -> Iterator[Table]:
    """The times of WHY."""
    rows = []
    for session, cases, kept in (_nexmark(context), _linear_road(context)):
        with session:
            for case in cases:
                context.progress(case.name)
                rows.append(_asked(session, case, kept))
    columns = ("query", "rows kept", "rows read", "made of", "WHY, s", "CHANGE, s", "NOT, s", "ok")
    read = "Rows read are those of WHY, again if they are read again."
    tolls = (
        "Tolls look at the last four reports of each car, however old: all that is kept is read."
    )
    notes = (f"At most {BAR:g} s are wanted for WHY. {read}", tolls)
    title = f"WHY over streams of {RATE:,} rows a second that keep 10 minutes"
    yield Table(title if context.full else f"{title}, a small part", columns, tuple(rows), notes)


def _asked(session: tidemill.Session, case: Case, kept: int) -> tuple[str | float | bool, ...]:
    """A row of the table."""
    target, used, computed = f"({case.text})", list[Kept](), list[pl.DataFrame]()

    class Noted(Kept):
        """Notes what is computed."""

        def elements(
            self, plan: Plan, first: Time, last: Time, given: Mapping[str, pl.DataFrame]
        ) -> pl.DataFrame:
            computed.append(super().elements(plan, first, last, given))
            return computed[-1]

    def noted(asked: Asked) -> Kept:
        used.append(Noted(asked))
        return used[-1]

    began = perf_counter()
    with patch.object(explaining, "Kept", noted):
        why = session.why(f"WHY {target} AT {case.at}", row=case.row)
    took = [perf_counter() - began]
    made_of = case.made_of.collect()
    found = why.rows(case.stream)
    if case.name == "tolls":  # reports from an accident explain a toll of 0
        found = found.join(made_of, on=made_of.columns, how="semi", nulls_equal=True)
    require_same(f"WHY {case.name}", found, made_of)
    fields = {*why.answers["row"].struct.fields}
    answer = (one for one in computed if fields <= {*one.columns})
    there = (one.filter(pl.col(START) <= case.at, pl.col(END) > case.at) for one in answer)
    start = _micros(next(one for one in there if one.height)[START])
    began = perf_counter()
    change = session.why(f"WHY CHANGE {target} AT {start}", row=case.row)
    took.append(perf_counter() - began)
    _check_change(case, change.frame, change.answers, start)
    began = perf_counter()
    missing = session.why(f"WHY NOT {target} WHERE {case.absent} AT {case.at}")
    took.append(perf_counter() - began)
    if missing.frame.is_empty() or not missing.answers.is_empty():
        raise WrongAnswerError(f"WHY NOT {case.name} has no line")
    return (case.name, kept, sum(used[0].read.values()), made_of.height, *took, took[0] < BAR)


def _micros(times: pl.Series) -> int:
    found = times.cast(pl.Int64).max()
    assert isinstance(found, int), "it is there since an instant"
    return found


def _check_change(case: Case, frame: pl.DataFrame, answers_: pl.DataFrame, at: int) -> None:
    """Refuse a change that is none, and rows that have not moved at the instant."""
    if "came" not in answers_["change"].to_list():
        raise WrongAnswerError(f"WHY CHANGE {case.name}: the row has not come at {at}")
    lines = frame.filter(pl.col("stream") == case.stream)
    if lines.is_empty():
        return  # what rows of operators below a window were made of is another question
    time = pl.col("row").struct.field("at" if case.name == "tolls" else "date_time").cast(pl.Int64)
    still = lines.filter(~case.moves(time, at))
    if still.height:
        raise WrongAnswerError(f"WHY CHANGE {case.name}: {still.height:,} rows have not moved")


# NEXMark


def _nexmark(context: Context) -> tuple[tidemill.Session, list[Case], int]:
    """A site, and what is asked of it."""
    seconds = 600 if context.full else 30
    place, state = context.folder / "site", context.folder / "state-site"
    context.progress("writing the site")
    site = Site(seconds * RATE, context.seed, RATE)
    write_site(site, place, files=max(seconds // 5, 2))
    said = of_site(site, place, files_per_batch=12)
    read = (
        "CREATE QUERY read_bids AS SELECT auction FROM bid WHERE price < 0;"
        "CREATE QUERY read_auctions AS SELECT id FROM auction WHERE id < 0"
    )
    session = _kept(state, said.replace(" MICROSECONDS;", f" MICROSECONDS {KEEP}"), read)
    bid, auction = (pl.scan_parquet(place / n / "*.parquet") for n in ("bid", "auction"))
    asked = {q.name: q.sql or "" for q in QUESTIONS}
    cases = [
        _highest_bid(session, asked["q7"], bid),
        _hot_auction(session, asked["q5"], bid),
        _mean_offer(session, asked["q4"], bid, auction),
    ]
    return session, sorted(cases, key=lambda case: case.name), seconds * RATE


def _kept(state: Path, said: str, read: str) -> tidemill.Session:
    """A session on a checkpoint in which streams have kept all rows."""
    with tidemill.connect(checkpoint=state) as session:
        session.sql(said)
        session.sql(read)
        session.run()
    return tidemill.connect(checkpoint=state, read_only=True)


def _inside(until: int, seconds: int) -> pl.Expr:
    time = pl.col("date_time").cast(pl.Int64)
    return (time > until - seconds * SECOND) & (time <= until)


def _window(slide: int, size: int) -> Callable[[pl.Expr, int], pl.Expr]:
    """What comes into a window that moves at an instant, or leaves it."""

    def moves(time: pl.Expr, at: int) -> pl.Expr:
        comes = (time > at - slide) & (time <= at)
        return comes | ((time > at - slide - size) & (time <= at - size))

    return moves


def _highest_bid(session: tidemill.Session, text: str, bid: pl.LazyFrame) -> Case:
    asked = session.ask(text)
    until = (asked.at + 1) // (10 * SECOND) * 10 * SECOND - 1
    held = bid.filter(_inside(until, 10))
    row, other = asked.frame.row(0, named=True), held.head(1).collect()["auction"][0]
    moves = _window(10 * SECOND, 10 * SECOND)
    key = {"auction": row["auction"]}
    return Case("q7", text, "bid", key, asked.at, held, moves, f"auction = {other}")


def _hot_auction(session: tidemill.Session, text: str, bid: pl.LazyFrame) -> Case:
    asked = session.ask(text)
    until = (asked.at + 1) // (2 * SECOND) * 2 * SECOND - 1
    held = bid.filter(_inside(until, 10))
    counts = held.collect()["auction"].value_counts().sort("count", "auction")
    moves = _window(2 * SECOND, 10 * SECOND)
    key = {"auction": asked.frame["auction"][0]}
    absent = f"auction = {counts['auction'][0]}"
    return Case("q5", text, "bid", key, asked.at, held, moves, absent)


def _mean_offer(
    session: tidemill.Session, text: str, bid: pl.LazyFrame, auction: pl.LazyFrame
) -> Case:
    asked = session.ask(text)
    category = asked.frame["category"][0]
    here = auction.filter(_inside(asked.at, 60), pl.col("category") == category)
    spans = here.select(pl.col("id").alias("auction"), begin="date_time", past="expires")
    met = bid.filter(_inside(asked.at, 60)).join(spans, on="auction")
    offers = met.filter(pl.col("date_time").is_between(pl.col("begin"), pl.col("past")))
    moves = _window(1, MINUTE)
    key, absent = {"category": category}, f"category = {category} AND mean < 0"
    return Case("q4", text, "bid", key, asked.at, offers.drop("begin", "past"), moves, absent)


# Linear Road


def _linear_road(context: Context) -> tuple[tidemill.Session, list[Case], int]:
    """The traffic of some expressways, and the toll of the fullest segment."""
    cars = 100_000 if context.full else 2_000
    place, minutes = context.folder / "road", 10
    context.progress("simulating the traffic")
    traffic = Traffic(8 if context.full else 1, cars, minutes, context.seed, jam=cars // 60)
    rows = write_traffic(traffic, place, seconds=10)
    said = of_reports(place, files=6).replace("ORDERED BY at;", f"ORDERED BY at {KEEP}")
    road = views(Rules(free_cars=cars // 100))
    read = "CREATE QUERY read AS SELECT carid FROM report WHERE type < 0"
    session = _kept(context.folder / "state-road", f"{said}\n{road}", read)
    minute = minutes - 1
    reports = rows.lazy().filter(pl.col("type") == POSITION)
    last = reports.filter(pl.col("time") // 60 == minute - 1)
    place_ = ["exp_way", "dir", "seg"]
    full = last.group_by(place_).agg(pl.col("carid").n_unique()).sort("carid", *place_).last()
    segment = full.select(place_).collect()
    key = segment.row(0, named=True)
    there = reports.join(segment.lazy(), on=place_, how="semi")
    held = there.filter((pl.col("time") // 60).is_between(minute - 5, minute - 1))
    where = " AND ".join(f"{name} = {value}" for name, value in key.items())
    at = minute * MINUTE + 5 * SECOND
    moves = _window(MINUTE, 5 * MINUTE)
    text, absent = "SELECT * FROM toll", f"{where} AND toll < 0"
    case = Case("tolls", text, "report", key, at, held, moves, absent)
    return session, [case], rows.height


QUESTION = Question("why", "How long it takes to say why a row is in an answer", answers)
