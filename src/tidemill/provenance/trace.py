"""Tracing: from the rows of an answer back to the rows of streams, step by step.

The answer is computed annotated. Where hidden columns lead to rows of streams, these are found.
Where they lead to rows of another operator, the input of that is computed annotated, and so on. All
rows that are asked about in one step are asked about at once, so there are as many steps as the
plan has such operators, whatever the number of rows.

Law: what is found for a row is what ``algebra/lineage.py`` says by definition, whatever the plan
that computes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.marked import TIME
from tidemill.model.batch import END, START, TIME_TYPE
from tidemill.model.time import END_OF_TIME, Time
from tidemill.provenance.annotate import annotate
from tidemill.provenance.computing import asked_of, elements
from tidemill.provenance.spans import SINCE, UNTIL, shown
from tidemill.provenance.steps import SOUGHT, Step, among, steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.provenance.computing import Elements
    from tidemill.provenance.leaves import Annotated, Ends, Leaf

__all__ = [
    "COPIES",
    "FROM",
    "MARK",
    "NODE",
    "OF",
    "TO",
    "Found",
    "Made",
    "Trace",
    "numbered",
    "pairs_of",
    "take",
    "trace",
]

NODE, OF = "@node", "@of"
"""The number of a row that is explained, and that of the one which it explains."""

FROM, TO = "@from", "@to"
"""The instants for which a row is explained: from the first up to, but not including, the other."""

MARK, COPIES = "@mark", "@copies"
"""The id of a row that was found, and how often a row of the answer is there."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of a stream or a relation.

    Attributes:
        leaf: Where they come from.
        frame: ``OF``, ``MARK``, ``TIME`` if they are a stream's, and from when to when each counts
            (``START``, ``END``).
        path: The operators that they have passed, from the answer downwards.
    """

    leaf: Leaf
    frame: pl.DataFrame
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """Rows of an operator, which are explained in their turn.

    Attributes:
        leaf: The operator, and the way to it.
        frame: ``NODE``, ``FROM``, ``TO`` and the values, in the columns of the operator.
        links: ``OF``, ``NODE``, ``START`` and ``END``: which rows each of them explains.
        path: The operators that they have passed, from the answer downwards.
    """

    leaf: Leaf
    frame: pl.DataFrame
    links: pl.DataFrame
    path: tuple[str, ...]


@dataclass(slots=True)
class Trace:
    """What the rows of an answer were made of.

    Attributes:
        answers: The rows that are explained: ``NODE``, their columns, how many there are of each
            (``COPIES``), and from when to when that is so.
        found: The rows of streams and relations.
        made: The rows between.
        plans: The plans that were computed.
    """

    answers: pl.DataFrame
    found: list[Found] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        """How many rows have a number."""
        return self.answers.height + sum(one.frame.height for one in self.made)


def trace(
    plan: Plan,
    condition: Expr,
    at: Time,
    compute: Elements,
    ends: Ends | None = None,
) -> Trace:
    """What the rows of a plan at an instant were made of.

    Args:
        plan: The plan.
        condition: What is true of the rows that are asked about.
        at: The instant.
        compute: What computes plans.
        ends: Nodes of the plan whose rows are not explained further.
    """
    ends = ends or {}
    annotated = annotate(plan, ends)
    asked = asked_of(annotated.plan, condition)
    there = elements(asked, annotated.cuts, at, at, compute)
    answers = numbered(there.with_columns(shown(plan)), annotated.columns)
    span = [pl.lit(at, TIME_TYPE).alias(FROM), pl.lit(at + 1, TIME_TYPE).alias(TO)]
    known = answers.select(NODE, *annotated.columns)
    rows = there.join(known, on=list(annotated.columns), how="inner", nulls_equal=True)
    found = Trace(answers, plans=[asked])
    take(found, annotated, rows.with_columns(span), ())
    done = 0
    while done < len(found.made):
        made = found.made[done]
        done += 1
        for step in steps_of(made.leaf.plan, ends):
            rows = pairs_of(found, made.frame, step, compute)
            take(found, step.annotated, rows, made.path)
    return found


def numbered(there: Batch, columns: Sequence[str], *more: str) -> pl.DataFrame:
    """The rows of an answer, each once, with their numbers and how often they are there.

    ``START`` and ``END`` are from when to when that is so, as it is told.
    """
    span = pl.col(SINCE).max().alias(START), pl.col(UNTIL).min().alias(END)
    first = [*span, pl.len().cast(pl.Int64).alias(COPIES)]
    key = [*columns, *more]
    answers = there.group_by(key).agg(first).sort(key, nulls_last=False)
    return answers.with_row_index(NODE).with_columns(pl.col(NODE).cast(pl.Int64))


def pairs_of(found: Trace, frame: pl.DataFrame, step: Step, compute: Elements) -> pl.DataFrame:
    """The rows of an input that rows of an operator were made of, with the numbers of these.

    Args:
        found: What has been found so far; the plan is noted there.
        frame: The rows of the operator, as of ``Made``.
        step: The input.
        compute: What computes plans.
    """
    names = dict(zip(step.annotated.columns, step.columns, strict=True))
    sought = frame.select(
        NODE, pl.col(FROM) - step.before, TO, *(pl.col(n).alias(by) for by, n in names.items())
    ).with_columns(pl.col(FROM).clip(0))
    plan = among(step.annotated.plan, sought.select(list(names)))
    first, last = sought[FROM].min(), sought[TO].max()
    if first is None or last is None:
        return pl.DataFrame()
    assert isinstance(first, int), "times are integers"
    assert isinstance(last, int), "times are integers"
    given = {} if step.sought is None else {SOUGHT: _relation(frame, step)}
    found.plans.append(plan)
    rows = elements(plan, step.annotated.cuts, Time(first), Time(last - 1), compute, given)
    if names:
        pairs = sought.join(rows, on=list(names), how="inner", nulls_equal=True)
    else:
        pairs = sought.join(rows, how="cross")
    return pairs.filter((pl.col(START) < pl.col(TO)) & (pl.col(END) > pl.col(FROM)))


def _relation(frame: pl.DataFrame, step: Step) -> Batch:
    """The rows that are asked about, always valid, so that others keep their own spans."""
    always = pl.lit(0, TIME_TYPE).alias(START), pl.lit(END_OF_TIME, TIME_TYPE).alias(END)
    return frame.select(step.columns).unique().with_columns(always)


def take(
    found: Trace,
    annotated: Annotated,
    rows: pl.DataFrame,
    path: tuple[str, ...],
    moved: Time | None = None,
) -> None:
    """Take what the hidden columns of rows lead to.

    Args:
        found: What has been found so far; it grows.
        annotated: Where the columns lead to.
        rows: The rows, with the numbers of those that they explain (``NODE``).
        path: The operators passed so far, from the answer downwards.
        moved: The instant at which the rows came or went, if that is asked about.
    """
    if rows.is_empty():
        return
    for leaf in annotated.leaves:
        there = rows.filter(pl.col(leaf.mark).is_not_null())
        if there.is_empty():
            continue
        told = there.with_columns(shown(annotated.plan, leaf, moved))
        if leaf.has_ids:
            found.found.append(_found(leaf, told, (*path, *leaf.via)))
        else:
            found.made.append(_made(leaf, told, found.nodes, (*path, *leaf.via)))


_SPAN = pl.col(SINCE).min().alias(START), pl.col(UNTIL).max().alias(END)


def _found(leaf: Leaf, rows: pl.DataFrame, path: tuple[str, ...]) -> Found:
    time = [pl.col(leaf.columns[0]).first().alias(TIME)] if leaf.columns else []
    key = pl.col(NODE).alias(OF), pl.col(leaf.mark).alias(MARK)
    return Found(leaf, rows.group_by(key).agg(*time, *_SPAN), path)


def _made(leaf: Leaf, rows: pl.DataFrame, first: int, path: tuple[str, ...]) -> Made:
    """The rows of an operator, each once for the instants for which it is explained."""
    names = leaf.plan.schema.names
    if leaf.at is None:
        span = [
            pl.max_horizontal(FROM, START).alias(FROM),
            pl.min_horizontal(TO, END).alias(TO),
        ]
    else:
        span = [pl.col(leaf.at).alias(FROM), (pl.col(leaf.at) + 1).alias(TO)]
    values = [pl.col(own).alias(name) for own, name in zip(leaf.columns, names, strict=True)]
    told = rows.select(pl.col(NODE).alias(OF), SINCE, UNTIL, *span, *values)
    key = [*names, FROM, TO]
    made = told.select(key).unique(maintain_order=True).sort(FROM, *names, nulls_last=False)
    made = made.with_row_index(NODE, first).with_columns(pl.col(NODE).cast(pl.Int64))
    links = told.join(made, on=key, how="inner", nulls_equal=True)
    return Made(leaf, made, links.group_by(OF, NODE).agg(_SPAN), path)
