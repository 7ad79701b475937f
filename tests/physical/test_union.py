"""Union in interval form: the fixture of the paper, names and ids."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, P1, P2, assert_stream, one_by_one, together
from physical.run import Schedule, batch, run
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import VARCHAR
from tidemill.physical.operator import LEFT, RIGHT
from tidemill.physical.operators.rows.union import Union

UNION = Union(LETTERS, ("letter",))


@pytest.mark.parametrize("schedule", [together(P1, P2), one_by_one(P1, P2)], ids=["all", "single"])
def test_union_has_the_rows_of_both(schedule: Schedule) -> None:
    assert_stream(
        run(UNION, schedule),
        "c[1,8) b[1,7) d[3,9) a[4,5) a[5,11) d[6,14) b[7,15) a[9,10) e[10,18) b[12,17)",
    )


def test_the_names_are_those_of_the_left_input() -> None:
    other = Schema((Field("sign", VARCHAR),))
    union = Union(LETTERS, ("sign",))
    (out,) = union.on_batch(union.new_state(), RIGHT, batch(other, P2))
    assert out.columns == ["letter", START, END]


def test_ids_of_two_streams_do_not_compare() -> None:
    (out,) = UNION.on_batch(UNION.new_state(), LEFT, batch(LETTERS, P1).with_row_index(ID))
    assert ID not in out.columns
