"""What is found for a row is what it was made of by definition, however it is computed.

Drawn are a plan, inputs, and an instant. What streams have kept is computed again with hidden
columns; the reference (``algebra/lineage.py``) says for each row of the snapshot what it was made
of. Rows that are equal are explained together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import Arrival
from laws.asking import asked, kept_by_batch
from laws.catalogue import LAST, SOURCES, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.split_plans import split_plans
from laws.strategies import plans
from physical.run import normal
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import TRUE
from tidemill.algebra.lineage import is_certain, leaves
from tidemill.algebra.plan import Relation
from tidemill.algebra.tree import share
from tidemill.control.tracing import Kept
from tidemill.errors import PlanError, RunError
from tidemill.model.batch import END, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.provenance import lines, trace
from tidemill.provenance.trace import NODE

if TYPE_CHECKING:
    import polars as pl

    from laws.arrivals import Step
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row
    from tidemill.provenance.trace import Trace

often = settings(max_examples=2 * settings().max_examples)


def kept(content: Inputs) -> Kept:
    """All rows of the streams, kept and known to the end."""
    step: Step = {one.name: (content.streams[one.name], END_OF_TIME) for one in SOURCES}
    keeping = kept_by_batch(content, Arrival((step,)), dict.fromkeys("STU"), 1)
    return Kept(asked(keeping.past()))


def places(content: Inputs, leaf: Plan) -> list[int]:
    """Where the rows of a relation stand, of those that are ever valid."""
    assert isinstance(leaf, Relation)
    rows = content.relations[leaf.name]
    if leaf.validity is None:
        return list(range(len(rows)))
    names = leaf.schema.names
    first, past = names.index(leaf.validity.start), names.index(leaf.validity.end or "")
    found = []
    for number, row in enumerate(rows):
        start, end = row[first], row[past]
        assert start is None or isinstance(start, int), "periods are numbers here"
        assert end is None or isinstance(end, int), "periods are numbers here"
        if max(start or 0, 0) < (END_OF_TIME if end is None else end):
            found.append(number)
    return found


def by_definition(content: Inputs, plan: Plan, time: int) -> dict[Row, set[tuple[str, int]]]:
    """What each row of a snapshot was made of, by the reference."""
    found: dict[Row, set[tuple[str, int]]] = {}
    there = leaves(plan)
    for row, origins in content.lineage().rows(plan, time):
        told = found.setdefault(normal(row), set())
        for number, id_ in origins:
            leaf = there[number]
            place = places(content, leaf).index(id_) if isinstance(leaf, Relation) else id_
            told.add((leaf.name, place))
    return found


def rows_by_number(found: Trace, plan: Plan) -> dict[int, Row]:
    """The rows of an answer by their numbers."""
    rows = found.answers.select(NODE, *plan.schema.names).iter_rows()
    return {number: normal(row) for number, *row in rows}


def as_found(content: Inputs, plan: Plan, time: int) -> dict[Row, set[tuple[str, int]]]:
    """The same, as it is found by computing the plan again."""
    here = kept(content)
    try:
        found = trace.trace(plan, TRUE, Time(time), here.elements)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    except RunError as error:
        if "instants together" not in str(error):
            raise
        reject()
    told: dict[Row, set[tuple[str, int]]] = {}
    rows = rows_by_number(found, plan)
    for row in rows.values():
        told.setdefault(row, set())
    flat: pl.DataFrame = lines.flattened(found, here.rows_of, {})
    for number, stream, id_ in flat.select("answer", "stream", "id").iter_rows():
        told[rows[number]].add((stream, id_))
    return told


def law(content: Inputs, plan: Plan, time: int) -> None:
    assert as_found(content, plan, time) == by_definition(content, plan, time), explain(plan)


@often
@given(inputs() | dense_inputs(), plans() | split_plans(), st.integers(0, LAST))
def test_what_is_found_is_what_it_was_made_of(content: Inputs, plan: Plan, time: int) -> None:
    plan = share(plan)
    if not is_certain(plan):
        reject()  # which of equal rows a window holds is free
    law(content, plan, time)


@often
@given(inputs() | dense_inputs(), plans() | split_plans(), st.integers(0, LAST))
def test_the_rows_that_are_explained_are_those_of_the_answer(
    content: Inputs, plan: Plan, time: int
) -> None:
    plan = share(plan)
    here = kept(content)
    try:
        found = trace.trace(plan, TRUE, Time(time), here.elements)
    except (PlanError, RunError) as error:
        if "stay for ever" not in str(error) and "instants together" not in str(error):
            raise
        reject()
    told = {
        normal(row): copies
        for *row, copies in found.answers.select(*plan.schema.names, trace.COPIES).iter_rows()
    }
    wanted: dict[Row, int] = {}
    for row, count in content.reference().snapshot(plan, time).items():
        wanted[normal(row)] = wanted.get(normal(row), 0) + count
    assert told == wanted, explain(plan)


@often
@given(inputs() | dense_inputs(), plans(), st.integers(0, LAST))
def test_when_a_row_of_the_answer_is_there_is_told_as_it_is_or_not_at_all(
    content: Inputs, plan: Plan, time: int
) -> None:
    plan = share(plan)
    here = kept(content)
    try:
        found = trace.trace(plan, TRUE, Time(time), here.elements)
    except (PlanError, RunError) as error:
        if "stay for ever" not in str(error) and "instants together" not in str(error):
            raise
        reject()
    reference = content.reference()
    told = found.answers.select(*plan.schema.names, START, END, trace.COPIES)
    for *row, start, end, copies in told.iter_rows():
        if start is None:
            continue
        past = LAST + 9 if end is None else min(end, LAST + 9)
        for instant in {start, (start + past) // 2, past - 1} & set(range(past)):
            bag = reference.snapshot(plan, instant)
            there = sum(count for one, count in bag.items() if normal(one) == normal(row))
            assert there >= copies, f"{row} is there at {instant}:\n{explain(plan)}"
