"""An operator that hands over its state goes on in another one as if nothing had happened.

Operators are those of any plan, and each kind by itself, on what is drawn for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.handing_over import LAWS, alone
from laws.kinds import KINDS
from laws.test_traits import DRAWN, noted

if TYPE_CHECKING:
    from collections.abc import Set

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


@given(**DRAWN, kept=KEPT)
def test_every_operator_that_remembers_hands_over_or_says_why_not(  # noqa: PLR0913 — all drawn
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    kept: Set[int],
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
@settings(max_examples=max(1, settings().max_examples // 4))
@given(data=st.data(), kept=KEPT)
def test_what_is_handed_over_goes_on(kind: str, data: st.DataObject, kept: Set[int]) -> None:
    operator, schedule = data.draw(KINDS[kind])
    note = alone(operator, schedule, ids=operator.traits.needs_ids)
    assert note.traits.hands_over
    for law in LAWS:
        law(note, kept)
