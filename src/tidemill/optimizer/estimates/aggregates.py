"""Estimates of aggregates: what their groups remember, and how often a result changes."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import Column
from tidemill.model.batch import Form
from tidemill.optimizer import characteristics as shape
from tidemill.optimizer.estimates.flow import MOST, Flow, Work, shaped
from tidemill.optimizer.estimates.rows import held_back
from tidemill.optimizer.selectivity import VALUES, harmonic, seen, values_of
from tidemill.physical import signed
from tidemill.physical.kernels.arguments import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.physical import interval
    from tidemill.physical.kernels.arguments import Argument

__all__ = ["aggregate", "combine"]

_EXTREMES: Final = frozenset({"min", "max"})
_SHRINKS: Final = 4
"""Elements become panes if there are this many for each different start."""

_OF_VALUES: Final = (".totals", ".stairs", ".leaders")
"""The tables of which there is one for each argument whose values are remembered."""

_LEAST_LEADERS, _ROOTS = 64, 4


def aggregate(operator: interval.Aggregate, below: Flow) -> Work:
    """One row for each group, from one change of it to the next."""
    keys = [key.expr for key in operator.keys]
    groups = below.values(keys) if keys else 1.0
    together = below.together(keys)
    present = below.present(keys) if keys else seen(1.0, below.edge.size)
    remembered = _panes(operator, below, groups)
    state = _state(operator, below, present, remembered)
    in_signs = isinstance(operator, signed.Aggregate)
    rows = remembered / below.pace.steps * (1 if below.is_signed or below.lasts else 2)
    touched = seen(groups, max(rows, 0.0)) * below.pace.steps
    touched *= sum(state[name] for name in state if name.endswith(("totals", "stairs"))) / max(
        present, 1.0
    )
    out = _results(operator, below, groups, present, together)
    oldest = min(out.edge.length * harmonic(present), max(below.edge.length, 1.0))
    if in_signs:
        out = replace(out, is_signed=True, lag=below.lag, delay=below.lag)
    else:
        out = held_back(out, operator.max_delay, oldest)
    kept = sum(name.endswith(_OF_VALUES) for name in state)
    return Work(out, below.rows, state, scanned=touched, values=kept)


def combine(operator: interval.Combine, below: Flow) -> Work:
    """The elements of a step and a group that agree on start and end as one, in each partition."""
    pace, edge = below.pace, below.edge
    groups = below.values(key.expr for key in operator.keys)
    arriving = below.in_step / pace.partitions
    instants = max(1 / pace.steps / edge.granule, 1.0)
    left = seen(min(groups * instants, MOST), arriving) * pace.partitions * pace.steps
    values, origins = dict(edge.distinct), dict(below.origins)
    for key in operator.keys:
        values[key.name] = values_of(key.expr, below.columns)
        if isinstance(key.expr, Column) and key.expr.name in below.origins:
            origins[key.name] = below.origins[key.expr.name]
    out = edge if left <= 0 else replace(edge, distance=1 / left)
    standing = min(edge.standing, groups * pace.partitions)
    edge = replace(out, standing=standing, distinct=values)
    flow = replace(below, edge=edge, origins=origins, is_signed=False, is_ahead=False, joined=None)
    return Work(flow, below.rows)


def _panes(operator: interval.Aggregate, below: Flow, groups: float) -> float:
    """How many rows are remembered in a microsecond, after those that agree are added up."""
    pace, rate = below.pace, below.rows
    arriving = below.in_step
    # In signed form elements begin and end at other instants, and both are remembered.
    instants = max(1 / pace.steps / below.edge.granule, 1.0) * (2 if below.is_signed else 1)
    dense = seen(instants, arriving) * _SHRINKS <= arriving
    if operator.combined or not (operator.panes or dense):
        return rate
    return seen(groups * instants, arriving) * pace.steps


def _state(
    operator: interval.Aggregate, below: Flow, present: float, panes: float
) -> dict[str, float]:
    """How many rows each table has."""
    thinned = panes / below.rows if below.rows else 1.0
    pending = below.pending(below.lag) * thinned
    rising = 0.0 if below.is_signed or below.lasts else panes * below.edge.length
    tables = {"pending": pending, "ends": rising, "totals": present}
    each = max(below.edge.size / max(present, 1.0), 1.0)
    knows_ends = operator.takes is Form.INTERVAL
    for argument in arguments(a.call for a in operator.aggregates):
        values = _values(argument, below)
        of_group = seen(values, each)
        own = present * of_group
        if argument.keeps_values:
            tables |= _named(argument, "bag", pending=pending, ends=rising, totals=own)
        elif argument.keeps_wide:
            tables |= _named(argument, "bag", pending=0.0, ends=0.0, totals=0.0)
        for name in sorted(_EXTREMES & argument.functions):
            if knows_ends:
                stairs = present * min(harmonic(each), each)
                tables |= _named(argument, name, pending=pending, stairs=stairs)
            elif not argument.keeps_values:
                first = min(own, present * max(_LEAST_LEADERS, _ROOTS * of_group**0.5))
                tables |= _named(argument, name, pending=pending, leaders=first, others=own - first)
    return tables


def _named(argument: Argument, function: str, **tables: float) -> Mapping[str, float]:
    return {f"{function}{argument.index}.{name}": rows for name, rows in tables.items()}


def _values(argument: Argument, below: Flow) -> float:
    return VALUES if argument.expr is None else values_of(argument.expr, below.columns)


def _results(
    operator: interval.Aggregate, below: Flow, groups: float, present: float, together: float
) -> Flow:
    """The results: when any row of a group comes or goes, or only when its extremes do.

    Of rows that begin ``together`` a group changes once.
    """
    calls = [a.call for a in operator.aggregates]
    triple = below.triple._replace(distance=below.edge.distance * together)
    if below.edge.rate <= 0:
        out = below
    elif not calls and not below.lasts:
        out = _present(below, triple, groups)
    elif calls and all(call.function in _EXTREMES for call in calls):
        out = shaped(below, shape.extreme(triple, groups))
    elif below.lasts:
        out = shaped(below, triple._replace(length=groups * triple.distance))
    else:
        out = shaped(below, shape.group_at_random(triple, groups, chained=below.is_chained))
    values = {key.name: values_of(key.expr, below.columns) for key in operator.keys}
    values |= {a.name: max(present, VALUES) for a in operator.aggregates}
    origins = {
        key.name: below.origins[key.expr.name]
        for key in operator.keys
        if isinstance(key.expr, Column) and key.expr.name in below.origins
    }
    standing = 0.0 if below.edge.rate > 0 else seen(groups, below.edge.standing)
    edge = replace(out.edge, distinct=values, standing=standing, counted=inf)
    return replace(
        out,
        edge=edge,
        origins=origins,
        is_signed=False,
        is_ahead=False,
        is_chained=True,
        joined=None,
    )


def _present(below: Flow, of: shape.Triple, groups: float) -> Flow:
    """Groups of which nothing is computed: they appear and go."""
    triple = shape.presence(of, groups)
    for_ever = below.pace.for_ever
    if triple.length >= for_ever:
        triple = triple._replace(distance=for_ever / groups, length=for_ever)
    return shaped(below, triple)
