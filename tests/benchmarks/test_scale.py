"""What an event costs: only of answers that are right, and with a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.harness.measure import WrongAnswerError
from benchmarks.scale.curves import Curves
from benchmarks.scale.load import Load, cost_of, distinct, greatest, joined, summed

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Load(rate=40, keys=3, steps=3)


@pytest.mark.parametrize("partitions", [1, 2])
def test_the_queries_are_answered_and_cost_something(partitions: int) -> None:
    load = replace(SMALL, partitions=partitions)
    cost = cost_of(
        load, [summed(2), summed(2, slide=0.5, least=500), joined(2), distinct(1), greatest(30, 40)]
    )
    assert cost.microseconds > 0
    assert cost.state_rows > 0


def test_a_wrong_answer_costs_nothing() -> None:
    query = summed(2)
    wrong = replace(query, at=lambda rows, time: query.at(rows, time).head(1))
    with pytest.raises(WrongAnswerError):
        cost_of(SMALL, [wrong])


def test_the_rows_of_a_load_do_not_depend_on_its_steps() -> None:
    parts = [SMALL.rows("s", begin, begin + 70_000) for begin in range(0, 700_000, 70_000)]
    assert pl.concat(parts).equals(SMALL.rows("s", 0, 700_000))


def test_curves_are_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "new" / "curves.png"
    Curves("title", "x", "y", (1, 10), {"a": (1.0, 2.0), "b": (2.0, 1.0)}).save(path)
    assert path.read_bytes().startswith(b"\x89PNG")
