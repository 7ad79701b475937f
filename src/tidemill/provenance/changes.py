"""Changes: why rows of an answer came, or went, at an instant.

A row has come if it is there more often than an instant before, and has gone if it is there less
often. Looked at are the rows that were there at one of both instants and have to do with it: those
that it is, or was, made of; all of a group, whatever its value is now; and partners that keep, or
kept, it back. Of these the ones count that came, or went, at the instant as well.

From when to when a row is there by itself decides, and not how long it has met others: of a pair
that is new, one row has come and the other one was there.

What had come at another instant, below a window, and leaves the window, is not explained further:
WHY at that instant says what it was made of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE
from tidemill.model.time import Time
from tidemill.provenance.annotate import annotate
from tidemill.provenance.computing import asked_of, elements
from tidemill.provenance.spans import shown
from tidemill.provenance.steps import among, steps_of
from tidemill.provenance.trace import FROM, NODE, TO, Trace, numbered, pairs_of, take

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.provenance.computing import Elements
    from tidemill.provenance.leaves import Annotated, Ends, Leaf

__all__ = ["CAME", "CHANGE", "WENT", "change_of", "trace_change"]

CHANGE = "@change"
CAME, WENT = "came", "went"


def change_of(at: Time, start: str, end: str) -> pl.Expr:
    """Whether what is there from ``start`` to ``end`` came or went at an instant."""
    return (
        pl.when(pl.col(start) == at).then(pl.lit(CAME)).when(pl.col(end) == at).then(pl.lit(WENT))
    )


def trace_change(
    plan: Plan,
    condition: Expr,
    at: Time,
    compute: Elements,
    ends: Ends | None = None,
) -> Trace:
    """Why rows of a plan came or went at an instant; the answers say which in ``CHANGE``.

    Args:
        plan: The plan.
        condition: What is true of the rows that are asked about.
        at: The instant.
        compute: What computes plans.
        ends: Nodes of the plan whose rows are not explained further.
    """
    ends = ends or {}
    before = Time(max(at - 1, 0))
    moved = compute(asked_of(plan, condition), before, at, {})
    moved = moved.with_columns(change_of(at, START, END).alias(CHANGE))
    moved = moved.filter(pl.col(CHANGE).is_not_null())
    names = plan.schema.names
    answers = numbered(moved.with_columns(shown(plan, moved=at)), names, CHANGE)
    found = Trace(answers)
    if answers.is_empty():
        return found
    annotated = annotate(plan, ends, against=True)
    asked = asked_of(annotated.plan, condition)
    found.plans.append(asked)
    there = elements(asked, annotated.cuts, before, at, compute)
    numbers = answers.select(NODE, *names, CHANGE)
    rows = there.join(numbers, on=list(names), how="inner", nulls_equal=True)
    then = pl.when(pl.col(CHANGE) == CAME).then(at).otherwise(at - 1)
    rows = rows.filter((pl.col(START) <= then) & (pl.col(END) > then))
    _take_moved(found, annotated, rows, (), at, compute)
    done = 0
    while done < len(found.made):
        made = found.made[done]
        done += 1
        if made.leaf.at is not None:
            continue
        sought = made.frame.with_columns(*_both(at))
        for step in steps_of(made.leaf.plan, ends, against=True):
            pairs = pairs_of(found, sought, step, compute)
            _take_moved(found, step.annotated, pairs, made.path, at, compute)
    return found


def _both(at: Time) -> tuple[pl.Expr, pl.Expr]:
    """The instant, and the one before it."""
    first, past = pl.lit(max(at - 1, 0), TIME_TYPE), pl.lit(at + 1, TIME_TYPE)
    return first.alias(FROM), past.alias(TO)


def _take_moved(  # noqa: PLR0913, PLR0917 — what a step is taken with
    found: Trace,
    annotated: Annotated,
    rows: pl.DataFrame,
    path: tuple[str, ...],
    at: Time,
    compute: Elements,
) -> None:
    """Take what rows lead to, as far as that came or went, or has to do with it."""
    if rows.is_empty():
        return
    for leaf in annotated.leaves:
        own = rows.filter(pl.col(leaf.mark).is_not_null())
        if own.is_empty():
            continue
        if len(annotated.leaves) > 1 and not leaf.has_partners:
            own = _by_themselves(own, annotated, leaf, at, compute)
        if not leaf.has_partners:
            own = own.filter(change_of(at, START, END).is_not_null())
        one = replace(annotated, leaves=(leaf,))
        take(found, one, own.with_columns(*_both(at)), path, at)


def _by_themselves(
    rows: pl.DataFrame, annotated: Annotated, leaf: Leaf, at: Time, compute: Elements
) -> pl.DataFrame:
    """Rows with the spans for which what they lead to is there, whatever it meets."""
    before = Time(max(at - 1, 0))
    key = [leaf.mark] if leaf.has_ids else [leaf.mark, *leaf.columns]
    own = among(leaf.own, rows.select(key))
    alone = elements(own, annotated.cuts, before, at, compute)
    spans = alone.group_by(key).agg(pl.col(START).min(), pl.col(END).max())
    return rows.drop(START, END).join(spans, on=key, how="inner", nulls_equal=True)
