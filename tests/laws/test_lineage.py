"""The rows that an answer is made of are enough for it, and there are none too many.

Plans are of these classes, each part of the next (``lineage_plans.py``). Windows are time windows
and unbounded ones, if nothing else is said.

- linear: Source, Relation, Filter, Project, Window, Union, Rstream. Each copy is made of one row.
- simple: inner joins, too. Each copy is made of one row of some of the leaves.
- positive: SemiJoin, Distinct, Intersect and MaxUnion, too. More input makes no row fewer.
- one step: a positive plan, or one operator of any kind over positive plans; and filters above.

So DISTINCT can be nested; what sums up, takes away or looks back cannot. Over more than one step
rows are explained step by step: a row of the second is made of rows of the first. Why these laws
are not about more plans is in ``test_lineage_counterexamples.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, inputs
from laws.derived_streams import DERIVED, dense_inputs, windows_over
from laws.lineage_plans import (
    DIFFERENCES,
    LONE,
    OUTER,
    SUMS,
    all_origins,
    at_present,
    by_time,
    counted,
    linear,
    one_step,
    origins_of,
    positive,
    simple,
    snapshot,
    some_instant,
)
from laws.strategies import plans
from tidemill.algebra import lineage
from tidemill.algebra.explain import explain
from tidemill.algebra.lineage import is_certain
from tidemill.algebra.plan import Aggregate

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from tidemill.algebra.origins import Origin
    from tidemill.algebra.plan import Plan

MANY = settings(max_examples=6 * settings().max_examples)


def contents() -> SearchStrategy[Inputs]:
    return inputs() | dense_inputs()


def some_part(data: st.DataObject, plan: Plan, content: Inputs) -> frozenset[Origin]:
    whole = all_origins(content, plan)
    few = frozenset(data.draw(st.sets(st.sampled_from(whole), max_size=6)))
    return frozenset(whole) - few if data.draw(st.booleans()) else few


# The rows


@MANY
@given(plan=plans() | st.sampled_from(DERIVED).flatmap(windows_over), content=contents())
def test_the_rows_are_the_snapshot(plan: Plan, content: Inputs) -> None:
    judge, reference = content.lineage(), content.reference()
    for time in HORIZON:
        expected = reference.snapshot(plan, time)
        assert counted(judge.rows(plan, time)) == expected, f"at {time}:\n{explain(plan)}"


@given(plan=plans() | st.sampled_from(DERIVED).flatmap(windows_over), content=contents())
def test_what_is_certain_does_not_depend_on_the_order_of_equal_rows(
    plan: Plan, content: Inputs
) -> None:
    assume(is_certain(plan))
    judge, order = content.lineage(), lineage._order  # noqa: SLF001 — the choice that is free
    found = [Counter(judge.rows(plan, time)) for time in HORIZON]
    with patch.object(
        lineage, "_order", lambda timed: (*order(timed)[:2], sorted(timed[1][1])[::-1])
    ):
        judge = content.lineage()
        assert found == [Counter(judge.rows(plan, time)) for time in HORIZON], explain(plan)


# Enough


@MANY
@given(
    data=st.data(),
    plan=plans().map(by_time).map(positive)
    | one_step(lambda plan: positive(by_time(plan)), SUMS + DIFFERENCES),
    content=contents(),
)
def test_nothing_else_matters(data: st.DataObject, plan: Plan, content: Inputs) -> None:
    """Plans of one step, but no outer joins: whatever else is there, a row is there as often."""
    time, rows = some_instant(data, plan, content)
    part = some_part(data, plan, content)
    for row, origins in origins_of(rows).items():
        for there in (frozenset(all_origins(content, plan)), part):
            with_others = snapshot(content, plan, there, time)
            alone = snapshot(content, plan, there & origins, time)
            assert alone[row] == with_others[row], f"{row} at {time}:\n{explain(plan)}"


@MANY
@given(
    data=st.data(),
    plan=plans().map(at_present).map(positive)
    | one_step(lambda plan: positive(at_present(plan)), (Aggregate, *DIFFERENCES, *OUTER))
    | one_step(lambda plan: positive(by_time(plan)), OUTER),
    content=contents(),
)
def test_the_origins_are_enough(data: st.DataObject, plan: Plan, content: Inputs) -> None:
    """Plans of one step, with ROWS windows that do not slide, over streams, seen at one instant."""
    time, rows = some_instant(data, plan, content)
    bag = counted(rows)
    for row, origins in origins_of(rows).items():
        alone = snapshot(content, plan, origins, time)
        assert alone[row] == bag[row], f"{row} at {time}:\n{explain(plan)}"


@MANY
@given(data=st.data(), plan=plans().map(by_time).map(positive), content=contents())
def test_a_part_makes_part_of_the_answer(data: st.DataObject, plan: Plan, content: Inputs) -> None:
    """Positive plans: what has all its origins is there, and nothing that was not there before."""
    time, rows = some_instant(data, plan, content)
    part = some_part(data, plan, content)
    found = snapshot(content, plan, part, time)
    assert counted(m for m in rows if m[1] <= part) <= found <= counted(rows), explain(plan)


@MANY
@given(
    data=st.data(),
    plan=one_step(lambda plan: linear(by_time(plan)), LONE + SUMS)
    | one_step(lambda plan: linear(at_present(plan)), (*LONE, Aggregate)),
    content=contents(),
)
def test_the_origins_make_nothing_else(data: st.DataObject, plan: Plan, content: Inputs) -> None:
    """One operator of any kind over linear plans, and filters."""
    time, rows = some_instant(data, plan, content)
    bag = counted(rows)
    for row, origins in origins_of(rows).items():
        alone = snapshot(content, plan, origins, time)
        assert alone == Counter({row: bag[row]}), f"{row} at {time}:\n{explain(plan)}"


# None too many


@MANY
@given(data=st.data(), plan=plans().map(by_time).map(simple), content=contents())
def test_a_copy_is_there_if_and_only_if_its_origins_are(
    data: st.DataObject, plan: Plan, content: Inputs
) -> None:
    """Simple plans: so a row that is made in one way is gone without any of its origins."""
    time, rows = some_instant(data, plan, content)
    whole = frozenset(all_origins(content, plan))
    for part in (some_part(data, plan, content), *(whole - {one} for one in sorted(whole))):
        found = snapshot(content, plan, part, time)
        assert found == counted(m for m in rows if m[1] <= part), explain(plan)
