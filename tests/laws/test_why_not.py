"""Where a candidate has ended, it is in what the operator reads, and not in what it gives.

The judge is the reference (``algebra/lineage.py``): a candidate is in what an operator gives if a
row of it, at one of the instants that matter for the one that is asked about, was made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import LAST, Inputs, S, inputs
from laws.derived_streams import dense_inputs
from laws.split_plans import split_plans
from laws.strategies import plans, predicates
from laws.test_why import kept, places
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Call, Column
from tidemill.algebra.lineage import is_certain, leaves
from tidemill.algebra.plan import Distinct, Relation, SessionWindow, Window
from tidemill.algebra.snapshot import Element
from tidemill.algebra.tree import children, share
from tidemill.errors import PlanError, RunError
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.provenance import missing
from tidemill.provenance.missing import CANDIDATE, span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.algebra.plan import Plan
    from tidemill.provenance.missing import Candidates
    from tidemill.provenance.paths import Place

often = settings(max_examples=2 * settings().max_examples)


def number_of(places_: Sequence[Place]) -> int:
    """Which leaf of the first place, as a tree, the path leads to."""
    number = 0
    for place in places_[:-1]:
        number += sum(len(leaves(one)) for one in children(place.plan)[: place.input])
    return number


def is_in(content: Inputs, path: Sequence[Place], number: int, id_: int, time: int) -> bool:
    """Whether something that an operator gives was made of a candidate."""
    origin = number_of(path[number:]), id_
    first, last = span_of(path, number, Time(time))
    reference = content.lineage()
    instants = range(first, min(last, LAST) + 1)
    return any(
        origin in origins
        for instant in instants
        for _, origins in reference.rows(path[number].plan, instant)
    )


def check(content: Inputs, found: Candidates, time: int) -> None:
    path = found.path.places
    leaf = found.path.leaf
    seen: list[int] = []
    for ended in found.ended:
        at = next((i for i, place in enumerate(path) if place.plan is ended.operator), None)
        for id_ in ended.ids.to_list():
            seen.append(id_)
            real = places(content, leaf)[id_] if isinstance(leaf, Relation) else id_
            if at is None:
                assert is_in(content, path, 0, real, time), "it is part of the answer"
            else:
                assert not is_in(content, path, at, real, time), ended.reason
            if at is not None and at < len(path) - 1 and not isinstance(ended.operator, Window):
                assert is_in(content, path, at + 1, real, time), "it is in the input"
    assert sorted(seen) == sorted(found.rows[CANDIDATE].to_list()), "each has ended somewhere, once"


@often
@given(inputs() | dense_inputs(), plans() | split_plans(), st.integers(0, LAST), st.data())
def test_a_candidate_has_ended_where_it_is_said(
    content: Inputs, plan: Plan, time: int, more: st.DataObject
) -> None:
    plan = share(plan)
    if not is_certain(plan):
        reject()  # which of equal rows a window holds is free
    condition = more.draw(predicates(plan.schema))
    here = kept(content)
    since = dict.fromkeys("STU", Time(0))
    try:
        found = missing.missing(plan, condition, Time(time), here.elements, since)
    except (PlanError, RunError) as error:
        if "stay for ever" not in str(error) and "instants together" not in str(error):
            raise
        reject()
    for one in found:
        for ended in one.ended:
            event(type(ended.operator).__name__)
        try:
            check(content, one, time)
        except AssertionError as error:
            error.add_note(explain(plan))
            raise


def test_a_row_that_was_there_at_another_instant_is_not_followed() -> None:
    """DISTINCT makes equal rows of both, and the session holds that of the second alone."""
    rows = (Element(0, 0, (None, None)), Element(11, 1, (None, None)))
    content = Inputs({"S": rows, "T": (), "U": ()}, {"R": (), "P": ()})
    plan = Window(Distinct(S), SessionWindow(1))
    condition = Call("is_null", (Column("a", BIGINT),), BOOLEAN)
    since = dict.fromkeys("STU", Time(0))
    (found,) = missing.missing(plan, condition, Time(11), kept(content).elements, since)
    check(content, found, 11)
    assert {one.operator: one.ids.to_list() for one in found.ended} == {plan: [0], None: [1]}
