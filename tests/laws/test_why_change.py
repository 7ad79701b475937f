"""What came or went, so that rows of an answer came or went.

By definition (``algebra/lineage.py``), a row of an answer changes at an instant only if a row of a
stream that it has to do with was there an instant before and is not there any more, or the reverse.
So for each row that has changed there is one that is named, and what is named has moved itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import LAST, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.strategies import plans
from laws.test_why import kept
from physical.run import normal
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import TRUE
from tidemill.algebra.lineage import is_certain
from tidemill.algebra.plan import (
    Difference,
    Dstream,
    Istream,
    MaxUnion,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Window,
)
from tidemill.algebra.tree import share, walk
from tidemill.errors import PlanError, RunError
from tidemill.model.time import Time
from tidemill.provenance.changes import CAME, CHANGE, trace_change
from tidemill.provenance.lines import stepwise
from tidemill.provenance.trace import COPIES

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row
    from tidemill.provenance.trace import Trace

often = settings(max_examples=2 * settings().max_examples)


def changed(content: Inputs, plan: Plan, time: int) -> Trace:
    here = kept(content)
    try:
        return trace_change(plan, TRUE, Time(time), here.elements)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    except RunError as error:
        if "instants together" not in str(error):
            raise
        reject()


@often
@given(inputs() | dense_inputs(), plans(), st.integers(1, LAST))
def test_the_rows_that_changed_are_those_of_the_reference(
    content: Inputs, plan: Plan, time: int
) -> None:
    plan = share(plan)
    found = changed(content, plan, time)
    net: Counter[Row] = Counter()
    for *row, change, copies in found.answers.select(
        *plan.schema.names, CHANGE, COPIES
    ).iter_rows():
        net[normal(row)] += copies if change == CAME else -copies
    reference = content.reference()
    wanted: Counter[Row] = Counter()
    for there, count in reference.snapshot(plan, time).items():
        wanted[normal(there)] += count
    for there, count in reference.snapshot(plan, time - 1).items():
        wanted[normal(there)] -= count
    assert {r: n for r, n in net.items() if n} == {r: n for r, n in wanted.items() if n}


def is_told(plan: Plan) -> bool:
    """Whether a change is always that of rows that have to do with it.

    Not where a row is there because of how two instants differ, nor where windows move by rows.
    """
    moved_by_rows = (RowWindow, SessionWindow)
    for node in walk(plan):
        if isinstance(node, Istream | Dstream | Difference | MaxUnion):
            return False
        if isinstance(node, Window) and isinstance(node.spec, moved_by_rows):
            return False
        if isinstance(node, Window) and isinstance(node.spec, TimeWindow) and node.spec.slide > 1:
            return False
    return True


@often
@given(inputs() | dense_inputs(), plans(), st.integers(1, LAST))
def test_what_changed_a_row_is_named(content: Inputs, plan: Plan, time: int) -> None:
    plan = share(plan)
    if not (is_certain(plan) and is_told(plan)):
        reject()
    found = changed(content, plan, time)
    here = kept(content)
    for name in "STU":
        here.stream(name, Time(0), Time(LAST))
    lines = stepwise(found, here.rows_of, {})
    explained = set(lines.filter(lines["of"].is_null())["answer"].to_list())
    if found.answers.height:
        event("changed")
    assert explained == set(range(found.answers.height)), explain(plan)
    moved = (lines["start"] == time) | (lines["end"] == time)
    assert moved.all(), "what is named has moved"
