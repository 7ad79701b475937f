"""Filter in interval form: the fixture of the paper, and NULL."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, P1, assert_stream, one_by_one, together
from physical.run import Element, Schedule, batch, run
from streams import LETTER, equal, text
from tidemill.model.batch import ID
from tidemill.physical.operators.rows.filter import Filter

ONLY_A = Filter(LETTERS, equal(LETTER, text("a")))


@pytest.mark.parametrize("schedule", [together(P1), one_by_one(P1)], ids=["all", "single"])
def test_filter_keeps_the_letter_a(schedule: Schedule) -> None:
    assert_stream(run(ONLY_A, schedule), "a[5,11) a[9,10)")


def test_a_condition_that_is_null_is_not_true() -> None:
    assert_stream(run(ONLY_A, together([Element((None,), 0, 5)])), "")


def test_ids_stay() -> None:
    rows = batch(LETTERS, P1).with_row_index(ID)
    (kept,) = ONLY_A.on_batch(ONLY_A.new_state(), 0, rows)
    assert kept[ID].to_list() == [1, 3]


def test_equal_filters_are_equal_and_have_one_text() -> None:
    again = Filter(LETTERS, equal(LETTER, text("a")))
    assert again == ONLY_A
    assert hash(again) == hash(ONLY_A)
    assert repr(again) == repr(ONLY_A)
