"""What it is expected to cost to share windows: the estimate of what is left, and the choice."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import tidemill
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.physical.share_windows import SUBJECT
from tidemill.optimizer.sharing import with_shared_windows
from tidemill.physical.plan import walk_physical
from tidemill.physical.smaller_windows import shortened, sizes_of, with_smaller

if TYPE_CHECKING:
    from tidemill.optimizer.planned import Planned
    from tidemill.physical.plan import PhysicalPlan

SECOND = 1_000_000


def asked(*texts: str, rate: int = 1_000, keys: int = 1_000) -> dict[str, Planned]:
    """How some queries are computed, each by itself."""
    with tidemill.connect() as session:
        for name in "abc":
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, t BIGINT) SOURCE memory('{name}') ORDERED BY t"
                f" HINT (rate => {rate}, distinct(k) => {keys})"
            )
        session.sql("CREATE RELATION r (k BIGINT) SOURCE memory('r') HINT (rows => 50)")
        names = [session.query(text).name for text in texts]
        return {name: session.planned(name) for name in names}


def joined(size: int, inputs: str = "ab") -> str:
    froms = ", ".join(f"{name} [RANGE {size} SECONDS]" for name in inputs)
    links = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(inputs))
    return f"SELECT {inputs[0]}.t AS x FROM {froms} WHERE {links}"


WITH_RELATION = "SELECT a.t AS x FROM a [RANGE 10 SECONDS], r WHERE a.k = r.k"


@pytest.mark.parametrize("text", [joined(10), joined(10, "abc"), WITH_RELATION])
@pytest.mark.parametrize("by", [1, 5, 9])
def test_what_is_left_is_estimated_as_the_smaller_join(text: str, by: int) -> None:
    (planned,) = asked(text).values()
    top = planned.physical
    sizes = sizes_of(top, ["r"])[top.fingerprint]
    assert sizes.least == 10 * SECOND
    left = _flow(planned, shortened(top, by * SECOND, sizes.least))
    smaller = _flow(planned, with_smaller(top, by * SECOND))
    assert left == pytest.approx(smaller, rel=0.01)


def _flow(planned: Planned, plan: PhysicalPlan) -> tuple[float, float]:
    """How many rows leave in a second, and for how long they stay."""
    found = estimate([plan], planned.statistics, relations=["r"])[plan.fingerprint].flow
    return SECOND * found.edge.rate, found.edge.length


def _shared(*texts: str, **known: int) -> list[bool]:
    planned = asked(*texts, **known)
    made = with_shared_windows(planned, planned)
    for name, one in made.items():
        changed = one.physical != planned[name].physical
        taken = [d for d in one.decisions if d.subject == SUBJECT]
        assert changed == any(d.chosen.startswith("the join of") for d in taken)
        assert {part.fingerprint for part in walk_physical([one.physical])} <= (
            one.labels.patterns.keys()
        )
    return [one.physical != planned[name].physical for name, one in made.items()]


def test_it_pays_if_sizes_are_of_one_kind() -> None:
    assert _shared(joined(5), joined(10), joined(7)) == [True, False, True]


def test_it_does_not_pay_to_go_through_the_rows_of_much_larger_windows() -> None:
    few = {"rate": 10_000, "keys": 10}
    assert _shared(joined(1), joined(100_000), **few) == [False, False]


def test_what_differs_in_more_than_windows_has_its_own() -> None:
    other = joined(5).replace("a.k = b.k", "a.k = b.t")
    assert _shared(other, joined(10)) == [False, False]
    with_filter = f"{joined(5)} AND a.t > 7"
    assert _shared(with_filter, joined(10)) == [False, False]


def test_parts_below_what_differs_are_shared() -> None:
    counted = joined(5).replace("a.t AS x", "COUNT(*) AS n")
    assert _shared(counted, joined(10).replace("a.t AS x", "COUNT(*) AS n")) == [True, False]
