"""Estimates of all parts of a plan, from what is known of its inputs upwards.

Every class of operator is named here: one that is missing is an error, not a guess.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final, assert_never

from tidemill.algebra.expr import Column
from tidemill.optimizer.estimates import aggregates, join_trees, joins, rows, sets, windows
from tidemill.optimizer.estimates.flow import (
    MOST,
    PACE,
    Flow,
    Pace,
    Work,
    bounded,
    row_width,
    width,
)
from tidemill.optimizer.selectivity import VALUES
from tidemill.optimizer.statistics import NOTHING_KNOWN, Edge
from tidemill.physical import interval, signed
from tidemill.physical.plan import Apply, Exchange, Input, inputs, walk_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tidemill.model.schema import Schema
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["RELATION_ROWS", "STREAM_DISTANCE", "estimate", "work_of"]

STREAM_DISTANCE: Final = 10_000.0
"""How many microseconds the rows of a stream are apart of which nothing is known: 100 a second."""

RELATION_ROWS: Final = 100.0
"""How many rows a relation has of which nothing is known."""


def estimate(
    roots: Iterable[PhysicalPlan],
    statistics: Statistics = NOTHING_KNOWN,
    pace: Pace = PACE,
    relations: Collection[str] = (),
) -> dict[str, Work]:
    """What flows out of each part, and what it does, by fingerprint.

    Args:
        roots: The plans.
        statistics: What is known of what comes in.
        pace: How the plans are run.
        relations: The inputs that are relations.
    """
    found: dict[str, Work] = {}
    for part in walk_physical(roots):
        below = [found[one.fingerprint].flow for one in inputs(part)]
        work = _of_part(part, below, statistics, pace, relations)
        found[part.fingerprint] = _weighed(part, below, work)
    return found


def _of_part(
    part: PhysicalPlan,
    below: Sequence[Flow],
    statistics: Statistics,
    pace: Pace,
    relations: Collection[str],
) -> Work:
    match part:
        case Input(name, schema):
            return Work(_input(name, schema, statistics, pace, is_stream=name not in relations))
        case Exchange():
            (one,) = below
            return Work(one, one.rows)
        case Apply(operator):
            return work_of(operator, below)
        case _:
            assert_never(part)


def _input(
    name: str, schema: Schema, statistics: Statistics, pace: Pace, *, is_stream: bool
) -> Flow:
    """What comes in: what is known of it, and assumptions where nothing is."""
    known = statistics.inputs.get(name)
    if known is not None:
        edge = known
    elif is_stream:
        edge = Edge(STREAM_DISTANCE, row_bytes=width(schema))
    else:
        edge = Edge(inf, length=pace.for_ever, standing=RELATION_ROWS, row_bytes=width(schema))
    if edge.distance == inf and edge.standing:
        edge = replace(edge, length=pace.for_ever)
    edge = bounded(edge, pace)
    # Rows that only stand have no more values than there are rows.
    assumed = min(VALUES, max(edge.standing, 1.0)) if edge.distance == inf else VALUES
    known_values = edge.distinct
    values = {one.name: min(max(1.0, known_values.get(one.name, assumed)), MOST) for one in schema}
    return Flow(
        replace(edge, distinct=values),
        pace,
        {field.name: f"{name}.{field.name}" for field in schema},
        statistics.conditions,
        weight=1.0 if edge.widths else edge.row_bytes / width(schema),
        widths={f"{name}.{column}": bytes_ for column, bytes_ in edge.widths.items()},
    )


def _weighed(part: PhysicalPlan, below: Sequence[Flow], work: Work) -> Work:
    """The work with how many bytes rows take that leave, and values that are remembered."""
    weight = max((one.weight for one in below), default=work.flow.weight)
    flow = replace(work.flow, weight=weight)
    edge = bounded(replace(flow.edge, row_bytes=row_width(part.schema, flow)), flow.pace)
    widths = _remembered(part, below) if work.state else {}
    return replace(work, flow=replace(flow, edge=edge), widths=widths)


def _remembered(part: PhysicalPlan, below: Sequence[Flow]) -> dict[str, float]:
    """How many bytes values take in tables, where columns have their names, or numbers."""
    columns = [
        (field.name, flow.width(field.name))
        for one, flow in zip(inputs(part), below, strict=True)
        for field in one.schema
    ]
    known = {f"@{i}": bytes_ for i, (_, bytes_) in enumerate(columns)} | dict(reversed(columns))
    if isinstance(part, Apply) and isinstance(part.operator, interval.Aggregate):
        for i, key in enumerate(part.operator.keys):
            known[f"@key{i}"] = (
                below[0].width(key.expr.name) if isinstance(key.expr, Column) else None
            )
    return {name: bytes_ for name, bytes_ in known.items() if bytes_ is not None}


def work_of(operator: Operator, below: Sequence[Flow]) -> Work:
    """What an operator does, given what flows into it."""
    match operator:
        # Aggregates, windows and set operations in signed form are those in interval form as well.
        case interval.Filter():
            return rows.filter_(operator, *below)
        case interval.Project():
            return rows.project(operator, *below)
        case interval.Union():
            return rows.union(operator, *below)
        case interval.Number():
            return rows.number(*below)
        case interval.Since():
            return rows.since(*below)
        case interval.Identify():
            return rows.identify(*below)
        case interval.Shorten():
            return rows.shorten(operator, *below)
        case interval.Split():
            return rows.split(operator, *below)
        case interval.Coalesce():
            return rows.coalesce(operator, *below)
        case interval.Granularity():
            return rows.granularity(operator, *below)
        case interval.Changes():
            return rows.changes(operator, *below)
        case signed.ToSigned():
            return rows.to_signed(*below)
        case signed.ToIntervals():
            return rows.to_intervals(operator, *below)
        case signed.Hold():
            return rows.hold(*below)
        case interval.Stretch() | signed.Stretch():
            return rows.stretch(operator, *below)
        case interval.TimeWindow():
            return windows.time_window(operator, *below)
        case interval.RowWindow() | signed.RowWindow():
            return windows.row_window(operator, *below)
        case interval.SessionWindow() | signed.SessionWindow():
            return windows.session_window(operator, *below)
        case interval.Join():
            return joins.join(operator, *below)
        case signed.Join():
            return joins.signed_join(operator, *below)
        case interval.MultiJoin():
            return joins.multi_join(operator, below)
        case interval.JoinTree():
            return join_trees.join_tree(operator, below)
        case signed.MultiJoin():
            return joins.signed_multi_join(operator, below)
        case interval.Aggregate() | signed.Aggregate():
            return aggregates.aggregate(operator, *below)
        case interval.Combine():
            return aggregates.combine(operator, *below)
        case interval.Counting() | signed.Counting():
            return sets.counting(operator, below)
        case interval.Distinct():
            return sets.distinct(operator, *below)
        case _:
            raise AssertionError(f"no estimate for {type(operator).__name__}")
