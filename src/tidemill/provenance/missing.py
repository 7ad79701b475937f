"""Missing: why rows are not in an answer at an instant, by where candidates for them have ended.

A candidate is a row of a stream or a relation of which the condition is true as far as it can be
said there (``paths.py``). It is followed upwards, operator by operator: what the operator gives is
computed with hidden columns, and a candidate goes on if something is there that was made of it.
Behind what makes one row of many, that row is followed in its place.

Law: where a candidate has ended, something made of it is in the input of the operator that is
named, and nothing is in its output, at the instants that matter for the one that is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.marked import ROW
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Intersect,
    Istream,
    MaxUnion,
    Plan,
    Relation,
    SemiJoin,
    Source,
    StrictDifference,
    Window,
)
from tidemill.algebra.reach import needs, newest
from tidemill.algebra.tree import children, with_children
from tidemill.model.batch import END, START
from tidemill.model.time import Time
from tidemill.provenance.annotate import annotate
from tidemill.provenance.computing import asked_of, elements
from tidemill.provenance.paths import paths_of
from tidemill.provenance.reasons import reason_of
from tidemill.provenance.steps import among, steps_of
from tidemill.provenance.trace import FROM, TO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.provenance.computing import Elements
    from tidemill.provenance.leaves import Annotated, Leaf
    from tidemill.provenance.paths import Path, Place

__all__ = ["CANDIDATE", "ENDS_COLUMNS", "Candidates", "Ended", "missing", "span_of"]

CANDIDATE = "@candidate"
"""The id of a candidate."""

_ABOVE = "@above"
"""The stream that stands in the place of an operator, to find out which of its instants matter."""

_MOST = 1_000
"""So many candidates of a leaf are followed at most, those that came last."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Candidates that have ended at one operator.

    Attributes:
        ids: Their ids.
        operator: The operator; ``None`` if they are part of rows of the answer.
        reason: What that means.
    """

    ids: pl.Series
    operator: Plan | None
    reason: str


@dataclass(slots=True)
class Candidates:
    """The candidates of one leaf.

    Attributes:
        path: The way from the answer to it.
        rows: Their ids (``CANDIDATE``), columns, and when they are there.
        left_out: How many candidates have not been followed, since others came later.
        ended: Where they have ended.
    """

    path: Path
    rows: pl.DataFrame
    left_out: int = 0
    ended: list[Ended] = field(default_factory=list)


def missing(
    plan: Plan, condition: Expr, at: Time, compute: Elements, since: Mapping[str, Time]
) -> list[Candidates]:
    """Where candidates for rows that are not in an answer have ended.

    Args:
        plan: The plan.
        condition: What would be true of the rows.
        at: The instant.
        compute: What computes plans.
        since: From when on the rows of each stream can be read.
    """
    found = []
    for path in paths_of(plan, condition):
        one = _candidates(path, at, compute, since)
        if not one.rows.is_empty():
            _follow(one, at, compute)
        found.append(one)
    return found


def _candidates(path: Path, at: Time, compute: Elements, since: Mapping[str, Time]) -> Candidates:
    leaf = path.leaf
    annotated = annotate(leaf)
    asked = asked_of(annotated.plan, path.condition)
    first = at if isinstance(leaf, Relation) else Time(min(since.get(leaf.name, at), at))
    rows = compute(asked, first, at, {})
    mark = annotated.leaves[0].mark
    named = rows.select(pl.col(mark).alias(CANDIDATE), *leaf.schema.names, START, END)
    newest_first = named.sort(START, CANDIDATE, descending=True)
    return Candidates(path, newest_first.head(_MOST), max(named.height - _MOST, 0))


@dataclass(frozen=True, slots=True)
class _Tracked:
    """Candidates on their way up.

    Attributes:
        frame: ``CANDIDATE``, and the values by which they are known above the leaf of their box;
            behind an operator, ``FROM`` and ``TO`` as well, the instants at which its row is there.
        below: How many operators stand between the answer and that leaf.
    """

    frame: pl.DataFrame
    below: int


def _follow(found: Candidates, at: Time, compute: Elements) -> None:
    """Follow candidates upwards, and note where they end."""
    places = found.path.places
    tracked = _Tracked(found.rows.select(CANDIDATE, pl.col(CANDIDATE).alias(ROW)), len(places) - 1)
    tracked = _in_time(found, tracked, at)
    for number in range(len(places) - 2, -1, -1):
        if tracked.frame.is_empty():
            return
        node = places[number].plan
        first, last = span_of(places, number, at)
        if isinstance(node, ENDS_COLUMNS):
            rows = _through(places, number, tracked, at, compute)
        else:
            rows = _there(annotate(node), places, number, tracked, (first, last), compute)
        ended = tracked.frame.join(rows, on=CANDIDATE, how="anti")
        _note(found, ended, node)
        there = tracked.frame.join(rows, on=CANDIDATE, how="semi")
        tracked = replace(tracked, frame=there)
        if isinstance(node, ENDS_COLUMNS):
            tracked = _Tracked(rows, number)
    if not tracked.frame.is_empty():
        reason = "it is part of rows of the answer that do not meet the condition"
        found.ended.append(Ended(tracked.frame[CANDIDATE].unique(), None, reason))


ENDS_COLUMNS = (
    *(Aggregate, Distinct, Istream, Dstream),
    *(Difference, StrictDifference, Intersect, MaxUnion),
)
"""Operators whose rows are followed in the place of what they were made of."""


def _in_time(found: Candidates, tracked: _Tracked, at: Time) -> _Tracked:
    """Leave out candidates that no window holds any more at the instant."""
    leaf = found.path.leaf
    if isinstance(leaf, Relation):
        return tracked
    first, last = span_of(found.path.places, len(found.path.places) - 1, at)
    late = found.rows.filter((pl.col(START) < first) | (pl.col(START) > last))
    window = next((p.plan for p in reversed(found.path.places) if isinstance(p.plan, Window)), None)
    if late.is_empty():
        return tracked
    if window is None:
        found.ended.append(
            Ended(late[CANDIDATE], leaf, "it is there at its own instant only, without a window")
        )
    else:
        _note(found, late.select(CANDIDATE), window)
    return replace(tracked, frame=tracked.frame.join(late, on=CANDIDATE, how="anti"))


def span_of(places: Sequence[Place], number: int, at: Time) -> tuple[Time, Time]:
    """The instants at which what an operator gives matters for the one that is asked about."""
    plan: Plan = Source(_ABOVE, places[number].plan.schema)
    for place in reversed(places[:number]):
        below = [*children(place.plan)]
        nothing = [Relation(f"@beside{i}", child.schema) for i, child in enumerate(below)]
        inputs = [plan if i == place.input else one for i, one in enumerate(nothing)]
        plan = with_children(place.plan, tuple(inputs))
    return needs(plan, at)[_ABOVE], newest(plan, at)


def _there(  # noqa: PLR0913, PLR0917 — what is looked at
    annotated: Annotated,
    places: Sequence[Place],
    number: int,
    tracked: _Tracked,
    span: tuple[Time, Time],
    compute: Elements,
) -> pl.DataFrame:
    """The candidates of which something is in what an operator gives: ``CANDIDATE``."""
    leaf = annotated.leaves[_leaf_number(places[number : tracked.below + 1])]
    plan = among(annotated.plan, _marked(leaf, tracked))
    rows = elements(plan, annotated.cuts, *span, compute)
    return _known_in(rows, leaf, tracked).select(CANDIDATE).unique()


def _known_in(rows: pl.DataFrame, leaf: Leaf, tracked: _Tracked) -> pl.DataFrame:
    """The rows of a plan that were made of candidates, with these."""
    known = _marked(leaf, tracked)
    columns = [name for name in known.columns if name not in {CANDIDATE, FROM, TO}]
    marked = rows.filter(pl.col(leaf.mark).is_not_null())
    found = marked.join(known, on=columns, how="inner", nulls_equal=True)
    if leaf.has_ids:
        return found
    if leaf.at is not None:
        return found.filter((pl.col(leaf.at) >= pl.col(FROM)) & (pl.col(leaf.at) < pl.col(TO)))
    return found.filter((pl.col(START) < pl.col(TO)) & (pl.col(END) > pl.col(FROM)))


def _marked(leaf: Leaf, tracked: _Tracked) -> pl.DataFrame:
    """Candidates with the values by which they are known, in the columns of a leaf."""
    values = [name for name in tracked.frame.columns if name not in {CANDIDATE, FROM, TO}]
    columns = [leaf.mark] if leaf.has_ids else list(leaf.columns)
    return tracked.frame.rename(dict(zip(values, columns, strict=True)))


def _leaf_number(places: Sequence[Place]) -> int:
    """Which leaf of the first operator, annotated, is the last place."""
    number = 0
    for place in places[:-1]:
        if place.input and not isinstance(place.plan, SemiJoin | AntiJoin):
            number += len(annotate(children(place.plan)[0]).leaves)
    return number


def _through(
    places: Sequence[Place], number: int, tracked: _Tracked, at: Time, compute: Elements
) -> pl.DataFrame:
    """The rows of an operator that were made of candidates: ``CANDIDATE`` and the values."""
    place = places[number]
    step = steps_of(place.plan, {})[place.input]
    leaf = step.annotated.leaves[_leaf_number(places[number + 1 : tracked.below + 1])]
    first, last = span_of(places, number + 1, at)
    plan = among(step.annotated.plan, _marked(leaf, tracked))
    below = elements(plan, step.annotated.cuts, first, last, compute)
    by = list(step.annotated.columns)
    sought = _known_in(below, leaf, tracked).select(CANDIDATE, START, END, *by)
    found = dict(zip(by, step.columns, strict=True))
    names = place.plan.schema.names
    first, last = span_of(places, number, at)
    values = sought.select(pl.col(key).alias(name) for key, name in found.items())
    made = compute(among(place.plan, values), first, last, {})
    copies = {name: f"@value{i}" for i, name in enumerate(names)}
    told = made.select(
        *(pl.col(name).alias(new) for name, new in copies.items()),
        *(pl.col(name).alias(key) for key, name in found.items()),
        pl.col(START).alias(FROM),
        pl.col(END).alias(TO),
    )
    if by:
        pairs = sought.join(told, on=by, how="inner", nulls_equal=True)
    else:
        pairs = sought.join(told, how="cross")
    # ISTREAM and DSTREAM have a row one instant after something came or went.
    late = 1 if isinstance(place.plan, Istream | Dstream) else 0
    there = pairs.with_columns(
        pl.max_horizontal(FROM, START).alias(FROM),
        pl.min_horizontal(TO, pl.col(END) + late).alias(TO),
    ).filter(pl.col(FROM) < pl.col(TO))
    return there.select(CANDIDATE, *copies.values(), FROM, TO).unique()


def _note(found: Candidates, ended: pl.DataFrame, operator: Plan) -> None:
    if not ended.is_empty():
        ids = ended[CANDIDATE].unique()
        found.ended.append(Ended(ids, operator, reason_of(operator)))
