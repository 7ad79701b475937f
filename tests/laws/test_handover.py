"""An operator that hands over its state goes on in another one as if nothing had happened.

Operators are those of any plan, and each kind by itself, on what is drawn for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.handing_over import LAWS, Run, alone, changes, handed_over
from laws.kinds import KINDS, joins
from laws.test_traits import DRAWN, noted
from tidemill.model.batch import Form
from tidemill.physical import interval, signed

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from laws.catalogue import Inputs
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.physical.techniques import Technique

CANNOT = {
    "Number": "how many rows have come is no row, and one number must not be given twice",
    "Stretch": "what waits belongs to its spans, and was given as often as they said",
    "Coalesce": "what is long enough passes at once, and nothing says until when it stands",
    "Split": "what is short enough passes at once, and nothing says until when it stands",
    "Hold": "what it has let go stands, and it does not remember that",
    "MultiJoin": "of elements that wait for an evaluation nothing but their place says so",
}
"""Operators that remember and do not hand over, all or some of them, and why."""

KEPT = st.sets(st.integers(0, 9), max_size=4)
"""At which watermarks a state is not handed over."""


@settings(max_examples=max(1, settings().max_examples // 2))
@given(**DRAWN, kept=KEPT)
def test_every_operator_that_remembers_hands_over_or_says_why_not(  # noqa: PLR0913 — all drawn
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    kept: AbstractSet[int],
    *,
    technique: Technique,
    multiway: bool,
    lazy: int,
) -> None:
    for note in noted(plan, content, data, technique=technique, multiway=multiway, lazy=lazy):
        name = type(note.part.operator).__name__
        if note.traits.hands_over:
            assert note.traits.remembers, f"{name} has nothing to hand over"
            for law in LAWS:
                law(note, kept)
        else:
            assert not note.traits.remembers or name in CANNOT, f"{name} does not hand over"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(1, settings().max_examples // 6))
@given(data=st.data(), kept=KEPT)
def test_what_is_handed_over_goes_on(
    kind: str, data: st.DataObject, kept: AbstractSet[int]
) -> None:
    operator, schedule = data.draw(KINDS[kind])
    note = alone(operator, schedule, ids=operator.traits.needs_ids)
    assert note.traits.hands_over
    for law in LAWS:
        law(note, kept)


@pytest.mark.parametrize("form", Form)
@settings(max_examples=max(1, settings().max_examples // 4))
@given(data=st.data(), kept=KEPT)
def test_joins_hand_over_to_each_other(
    form: Form, data: st.DataObject, kept: AbstractSet[int]
) -> None:
    """A join of two inputs, and one of many inputs that has two."""
    two, schedule = data.draw(joins(form))
    assert isinstance(two, interval.Join | signed.Join)
    kind = interval.MultiJoin if form is Form.INTERVAL else signed.MultiJoin
    many = kind((two.left, two.right), two.names, two.condition, ((1,), (0,)))
    for one, other in ((two, many), (many, two)):
        note = alone(one, schedule)
        run = Run(one)
        for number, time in run.steps(note):
            if number not in kept:
                run.state = handed_over(run.operator, run.state, time, other)
                run.operator = other
        assert changes(run.out) == changes(note.out())
