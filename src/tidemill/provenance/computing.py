"""Computing: the elements of annotated plans, with the inputs of their cuts before them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import polars as pl

from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import Filter
from tidemill.algebra.reach import needs, newest
from tidemill.algebra.tree import streams_of
from tidemill.errors import RunError
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.provenance.wanted import either, rows_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.provenance.leaves import Cut

__all__ = ["Elements", "asked_of", "elements"]

_MOST = 20_000_000
"""So many single instants of rows below a window are gone through at most."""


class Elements(Protocol):
    """What computes plans."""

    def __call__(self, plan: Plan, first: Time, last: Time, given: Mapping[str, Batch]) -> Batch:
        """The elements of a plan that are there at instants from ``first`` to ``last``.

        Sources and relations have rows with their ids and times as columns, where the plan asks for
        these; those that are given are not read.
        """
        ...


def asked_of(plan: Plan, condition: Expr) -> Plan:
    """The rows of a plan that are asked about."""
    return plan if condition == TRUE else Filter(plan, condition)


def elements(  # noqa: PLR0913, PLR0917 — what is computed, and from what
    plan: Plan,
    cuts: Sequence[Cut],
    first: Time,
    last: Time,
    compute: Elements,
    given: Mapping[str, Batch] | None = None,
) -> Batch:
    """The elements of a plan at some instants, with the inputs of its cuts computed before it.

    Of these inputs only the rows are computed that the plan can be made of.
    """
    by_name = {cut.name: cut for cut in cuts}
    there = dict(given or {})
    read = sorted(streams_of(plan) & by_name.keys())
    wanted = rows_wanted(optimize(plan)) if read else {}
    for name in read:
        low, high = needs(plan, first)[name], newest(plan, last)
        cut = by_name[name]
        condition = either(wanted.get(name, frozenset()), {*cut.plan.schema.names})
        below = elements(asked_of(cut.plan, condition), cuts, low, high, compute)
        there[name] = _instants(below, cut, low, high)
    return compute(plan, first, last, there)


def _instants(rows: Batch, cut: Cut, low: Time, high: Time) -> Batch:
    """The rows once for each instant at which they are there, with the instant as a column."""
    rows = rows.with_columns(pl.col(START).clip(low), pl.col(END).clip(upper_bound=high + 1))
    count = rows.select((pl.col(END) - pl.col(START)).sum()).item() if rows.height else 0
    if count > _MOST:
        raise RunError(
            f"a window stands over rows that are there for {count:,} instants together, and each"
            " would be gone through",
            hint="put ISTREAM below the window, so that a row is one element",
        )
    single = rows.with_columns(pl.int_ranges(START, END).alias(START)).explode(START)
    columns = list(polars_schema(cut.plan.schema))
    ordered = single.sort(START, *columns, nulls_last=False)
    return ordered.select(
        *columns,
        pl.col(START).alias(cut.at),
        START,
        (pl.col(START) + 1).alias(END),
        pl.int_range(pl.len(), dtype=TIME_TYPE).alias(ID),
    )
