"""Computing an answer at one instant, from rows that are at hand, in this process.

The plan is made as for a query that runs, and run once: all rows come in one step, in the order of
their times and ids, and with them the end of the streams. So the answer is a function of the rows,
however they were cut into batches when they came.

Law: the snapshot at the instant is that of the plan over these rows, by the reference evaluator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.catalog.entries import QueryEntry
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, SIGN, START, TIME_TYPE, empty_batch
from tidemill.model.time import END_OF_TIME
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.planning import plan_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.optimizer.planned import Planned

__all__ = ["always_valid", "computed", "elements_at", "planned_once"]

_NAME = "@asked"


def planned_once(plan: Plan) -> Planned:
    """How a query is computed that is asked once: in every process alike."""
    return plan_entry(QueryEntry(_NAME, plan, "", frozenset()))


def computed(plan: Plan, rows: Callable[[str], Iterable[Batch]]) -> Answer:
    """The answer of a plan to some rows, after which the streams end.

    Args:
        plan: The plan.
        rows: Gives the rows of each stream and relation that it reads, as elements.

    Raises:
        PlanError: A window stands over rows that never end.
    """
    return _answer(plan, _given(plan, rows))


def _given(plan: Plan, rows: Callable[[str], Iterable[Batch]]) -> list[Batch]:
    runner = LocalRunner(build_graph({_NAME: planned_once(plan).physical}))
    flows = {
        input_.rows: Flow(_in_order(rows(input_.name)), END_OF_TIME)
        for input_ in runner.graph.inputs
    }
    return runner.step(flows)[_NAME]


def _answer(plan: Plan, given: Iterable[Batch]) -> Answer:
    answer = Answer(plan.schema)
    answer.add(given)
    answer.known = END_OF_TIME
    return answer


def elements_at(
    plan: Plan,
    rows: Callable[[str], Iterable[Batch]],
    first: Time,
    last: Time,
    marks: Sequence[str] = (),
) -> Batch:
    """The elements of a plan that are there at instants from ``first`` to ``last``, in any order.

    Law: at these instants they have the snapshots of the plan; what ends where an equal row begins
        is one element, so they do not depend on how they were computed.

    Args:
        plan: The plan.
        rows: As of ``computed``.
        first: The first instant that is asked for.
        last: The last one.
        marks: Columns that tell rows from each other, if no row is there more than once.
    """
    there = (pl.col(START) <= last) & (pl.col(END) > first)
    given = [batch for batch in _given(plan, rows) if batch.height]
    if any(SIGN in batch.columns for batch in given):
        return _answer(plan, given).elements().filter(there)
    names = plan.schema.names
    columns = [*names, START, END]
    whole = pl.concat([empty_batch(plan.schema), *(batch.select(columns) for batch in given)])
    found = whole.filter(there)
    if marks and not whole.select(marks).is_duplicated().any():
        return found  # no row is equal to another one
    if 0 < found.height < whole.height // 2:
        # Only what is equal to a row that is there can go on with it.
        once = found.select(names).unique()
        whole = whole.join(once, on=names, how="semi", nulls_equal=True)
    return _answer(plan, [whole]).elements().filter(there)


def always_valid(frame: pl.DataFrame) -> Batch:
    """Rows that are valid at every instant, as elements."""
    bounds = {START: 0, END: END_OF_TIME}
    return frame.with_columns(pl.lit(time, TIME_TYPE).alias(name) for name, time in bounds.items())


def _in_order(batches: Iterable[Batch]) -> list[Batch]:
    found = list(batches)
    if not found:
        return []
    whole = pl.concat(found)
    return [whole.sort(START, ID) if ID in whole.columns else whole]
