"""Small random contents for the streams and relations of the auction example."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from streams import assert_same
from tidemill.algebra.snapshot import Element, Reference
from tidemill.model.time import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row

__all__ = ["HORIZON", "SEEDS", "assert_same_answers", "contents"]

LAST = 8
HORIZON = range(LAST + 8)
SEEDS = range(12)


def contents(seed: int) -> Reference:
    """The evaluator for contents with NULLs, duplicates and ties."""
    random = Random(seed)  # noqa: S311 — no secret

    def key() -> int | None:
        return random.choice((None, 1, 1, 2, 3))

    def price() -> float | None:
        return random.choice((None, 1.0, 2.0, 2.0, 5.0))

    def name() -> str | None:
        return random.choice((None, "ann", "bob"))

    def stream(*values: Callable[[], int | float | None]) -> list[Element]:
        times = [random.randint(0, LAST) for _ in range(random.randint(0, 9))]
        return [
            Element(time, number, (*(value() for value in values), to_datetime(time)))
            for number, time in enumerate(times)
        ]

    def relation(row: Callable[[], Row]) -> list[Row]:
        return [row() for _ in range(random.randint(0, 4))]

    return Reference(
        {
            "OpenAuction": stream(key, key, price),
            "ClosedAuction": stream(key, key),
            "Bid": stream(key, price, key),
        },
        {
            "Person": relation(lambda: (random.randint(1, 3), name(), name())),
            "Category": relation(lambda: (random.randint(1, 3), name(), random.randint(0, 4), 6)),
        },
    )


def assert_same_answers(before: Plan, after: Plan) -> None:
    """Fail unless both plans have the same answer at every instant, for many contents."""
    for seed in SEEDS:
        assert_same(contents(seed), before, after, HORIZON)
