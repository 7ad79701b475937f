"""What is estimated of plans, and what is measured of them: state, and rows through operators.

For each query the plan that was chosen, with what the engine itself has found out of its inputs.
What is more than twice, or less than half, is said why.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from statistics import median
from typing import TYPE_CHECKING

import tidemill
from benchmarks.estimates.generated import ABOVE, SHAPES, Joins, declare
from benchmarks.estimates.runs import Case, Compared, Figures, compared
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.nexmark.generator import around_midnight, write
from benchmarks.nexmark.queries import ASKED, declarations
from benchmarks.techniques.shapes import Shape, table_of
from tidemill.engine.pool import in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

WITHIN = 2.0
_TIME = (
    "Constants are those of another machine, and this one may have other work. So the last factor "
    "says how queries compare with each other."
)
FEW = ("q3", "q5", "q7", "q8", "q13", "q20")

OUTLIERS = {
    "q8": "a few people open most auctions: the pairs are those of few people, and DISTINCT leaves "
    "few; how often values come is not measured, only how many there are",
    "q11": "a few bidders bid most, so that most sessions are theirs and all others short",
    "q15": "the day is taken to have as many values as the time that it is computed of",
    "q16": "the day is taken to have as many values as the time that it is computed of",
    "q17": "most bids are on few auctions: there are fewer groups than if all were as frequent",
    "q18": "most bids are those of a few bidders on a few auctions: there are fewer pairs",
    "q23": "people who bid and people who sell are the same ones, and both the newest: the "
    "conditions depend on each other, and each is measured by itself",
}
"""Why, of what is not within a factor of two; of others it is not known."""


def answers(context: Context) -> Iterator[Table]:
    """NEXMark, joins, and how many are within the factor."""
    nexmark = dict(_nexmark(context))
    yield _table("NEXMark: what is estimated, and what is measured", nexmark)
    joins = dict(_joins(context))
    yield _table("Stars and chains of joins: what is estimated, and what is measured", joins)
    yield _operators({**nexmark, **joins})
    yield table_of("Estimates", _found(nexmark, joins))


def _nexmark(context: Context) -> Iterator[tuple[str, Compared]]:
    seconds = 300 if context.full else 110
    rate = 250 if context.full else 500
    site = around_midnight(seconds * rate, context.seed, rate=rate)
    place = context.folder / "nexmark"
    write(place, site, files=8)
    frames = site.streams()
    for query in ASKED:
        if query.stateless or not (context.full or query.name in FEW):
            continue
        assert query.sql is not None, "it is asked"
        context.progress(query.name)
        with tidemill.connect() as session:
            session.sql(declarations(site, place))
            warm = max(seconds // 2, 70)
            case = Case(query.sql, frames, "date_time", seconds, warm)
            yield query.name, in_pool(compared)(session, case)


def _joins(context: Context) -> Iterator[tuple[str, Compared]]:
    most, seconds = (6, 120) if context.full else (4, 60)
    above = ABOVE if context.full else ABOVE[:3]
    for shape in SHAPES:
        for inputs in range(2, most + 1):
            for what in above:
                joins = Joins(shape, inputs, what)
                context.progress(joins.name)
                frames = joins.frames(seconds, context.seed)
                with tidemill.connect() as session:
                    declare(session, frames)
                    case = Case(joins.sql, frames, "t", seconds, seconds // 2)
                    yield joins.name, in_pool(compared)(session, case)


def _table(title: str, found: Mapping[str, Compared]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    usual = median(one.cpu.factor or 1.0 for one in found.values())
    for name, one in found.items():
        is_near = one.is_within(WITHIN)
        cells = (cell for figures in (one.held, one.bytes, one.work) for cell in _cells(figures))
        cpu = (one.cpu.factor or 1.0) / usual
        rows.append((name, *cells, cpu, is_near, "" if is_near else OUTLIERS.get(name, "?")))
    return Table(
        title,
        (
            *("query", "rows held: estimate", "measured", "factor"),
            *("bytes: estimate", "measured ", "factor "),
            *("rows/s through operators: estimate", "measured  ", "factor  "),
            *("time, by the median", "within 2", "why not"),
        ),
        tuple(rows),
        (f"Of the time of the processor {usual:.2f} is estimated, in the middle. {_TIME}",),
    )


def _cells(figures: Figures) -> tuple[Cell, ...]:
    return round(figures.estimate), round(figures.measured), figures.factor


def _operators(found: Mapping[str, Compared]) -> Table:
    """Those operators of which most is wrong."""
    wrong = []
    for name, one in found.items():
        for part in one.parts:
            for what, figures in (("rows/s", part.rows), ("held", part.held)):
                if not figures.is_within(WITHIN, 50.0):
                    text = f"{part.text[:60]}…" if len(part.text) > 61 else part.text  # noqa: PLR2004
                    wrong.append((name, text, what, *_cells(figures)))
    return Table(
        "Operators of which more than twice, or less than half is estimated",
        ("query", "operator", "what", "estimate", "measured", "factor"),
        tuple(wrong),
        ("Not those with fewer than fifty rows either way.",),
    )


def _found(nexmark: Mapping[str, Compared], joins: Mapping[str, Compared]) -> Iterator[Shape]:
    for title, found in (("NEXMark", nexmark), ("stars and chains of joins", joins)):
        for what in ("held", "bytes", "work"):
            factors = {
                name: getattr(one, what).factor
                for name, one in found.items()
                if getattr(one, what).measured
            }
            most = max(factors, key=lambda name: max(factors[name], 1 / factors[name]))
            wrong = [n for n, factor in factors.items() if not 1 / WITHIN <= factor <= WITHIN]
            yield Shape(
                f"{title}: {what} within a factor of two",
                not wrong,
                f"{len(factors) - len(wrong)} of {len(factors)}; {factors[most]:.2f} at worst, "
                f"{most}",
                "; ".join(f"{name}: {OUTLIERS.get(name, 'not known')}" for name in wrong),
            )


QUESTION = Question("estimates", "How right estimates of plans are", answers)
