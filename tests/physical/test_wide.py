"""Sums of wide numbers: exact, and in time for their endpoints, however long they overlap."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

import pytest

from physical.run import Advance, Arrive, Element, Schedule, run
from physical.test_aggregate import aggregation, of
from tidemill.model.schema import Field, Schema
from tidemill.model.types import DOUBLE
from tidemill.physical.kernels import wide

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBER = Schema((Field("x", DOUBLE),))
COUNT, LENGTH = 2000, 500
OPERATOR = aggregation(
    NUMBER, of("sum", DOUBLE), of("avg", DOUBLE), of("var_pop", DOUBLE), of("stddev_samp", DOUBLE)
)
SCALES: dict[str, Callable[[Random], float]] = {
    "tiny": lambda chance: 1e-18 * chance.random(),
    "microseconds": lambda chance: 1.7e15 + chance.randrange(10**9),
    "both signs": lambda chance: chance.choice((-1e300, 5e-324, 0.1, 1e300)) * chance.random(),
}


def schedule(values: list[float]) -> Schedule:
    """Each value for a while, one an instant, and a watermark half way."""
    elements = [Element((value,), t, t + LENGTH) for t, value in enumerate(values)]
    half = COUNT // 2
    return Schedule(
        (NUMBER,),
        (Arrive(0, tuple(elements[:half])), Advance(half), Arrive(0, tuple(elements[half:]))),
    )


def rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@pytest.mark.parametrize("name", SCALES)
def test_sums_of_wide_numbers_are_rounded_once(name: str) -> None:
    chance = Random(3)  # noqa: S311 — the same numbers every time
    values = [SCALES[name](chance) for _ in range(COUNT)]
    output = run(OPERATOR, schedule(values), tight=False)
    found = {t: e.row for e in output.elements for t in range(e.start, e.end)}
    assert found.keys() == set(range(COUNT + LENGTH - 1))
    total = squares = Fraction(0)
    for t, row in sorted(found.items()):
        for at, sign in ((t, 1), (t - LENGTH, -1)):
            if 0 <= at < COUNT:
                total += sign * Fraction(values[at])
                squares += sign * Fraction(values[at]) ** 2
        n = min(t, COUNT - 1) - max(t - LENGTH, -1)
        spread = squares - total**2 / n
        assert row[:2] == (rounded(total), rounded(total / n)), t
        assert row[2] == pytest.approx(rounded(spread / n), rel=1e-9), t
        wanted = math.sqrt(rounded(spread / (n - 1))) if n > 1 else None
        assert row[3] == (pytest.approx(wanted, rel=1e-9) if n > 1 else None), t


def test_a_wide_number_is_looked_at_when_it_comes_and_when_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, units = list[float](), wide.units

    def counted(value: float) -> int:
        looked.append(value)
        return units(value)

    monkeypatch.setattr(wide, "units", counted)
    run(OPERATOR, schedule([float(t) * 2.0**-200 for t in range(1, COUNT + 1)]), tight=False)
    # Those that are there at a watermark are looked at before it, and again after it.
    assert len(looked) <= 2 * (COUNT + LENGTH + 1)
