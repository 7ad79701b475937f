"""Number: no two elements have the same."""

from __future__ import annotations

from physical.letters import LETTERS, P1, one_by_one
from physical.run import run
from tidemill.model.types import BIGINT
from tidemill.physical.operators.rows.number import NUMBER, Number


def test_numbers_are_unique_over_all_batches() -> None:
    output = run(Number(LETTERS), one_by_one(P1), reload=True)
    assert sorted(str(e.row[1]) for e in output.elements) == ["0", "1", "2", "3", "4"]
    assert [e.row[0] for e in output.elements] == ["c", "a", "d", "a", "b"]


def test_the_number_is_a_column_that_is_never_null() -> None:
    field = Number(LETTERS).schema[NUMBER]
    assert field.type == BIGINT
    assert not field.nullable
