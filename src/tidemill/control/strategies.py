"""Strategies: the ways in which another plan for the same meaning can take over, and the choice.

AUTO takes the way that costs least: the work that it takes besides that of the new plan, and a
hundred times the pause of the answer, since a pause is what a migration is there to avoid. What
differs by less than a second of work is as good as equal; then the way that is over first is taken.
Where nothing is known of costs, as in a test, all are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tidemill.catalog.records import Took
from tidemill.control.change import Changed
from tidemill.control.standpoint import live_parts
from tidemill.control.taking_over import Refusal, Strategy, Taking
from tidemill.control.variants import Switch
from tidemill.errors import RunError
from tidemill.lang.statements import Migration
from tidemill.model.time import duration_text
from tidemill.optimizer.constants import DEFAULTS
from tidemill.optimizer.migration_costs import beside, moving_pause, replaying

if TYPE_CHECKING:
    from tidemill.catalog.records import Record
    from tidemill.control.standpoint import Standpoint
    from tidemill.optimizer.planned import Planned

__all__ = ["UNPRICED", "Prices", "candidates", "chosen", "moving_state", "replan", "way_text"]

PAUSE_WEIGHT: Final = 100.0
"""So many microseconds of work are as bad as one in which no answer comes."""

EQUAL: Final = 1_000_000.0
"""What differs by less, in microseconds of work, is as good as equal."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What is known of the costs of a migration.

    Attributes:
        old: The plan that runs; ``None`` if its cost is not known.
        new: The plan that is to take over.
        rows: How many rows are remembered now.
    """

    old: Planned | None = None
    new: Planned | None = None
    rows: int = 0


UNPRICED: Final = Prices()
"""Nothing is known, so everything is equally cheap."""


def candidates(
    record: Record, here: Standpoint, prices: Prices = UNPRICED
) -> tuple[Strategy | Refusal, ...]:
    """All ways, with what each takes or why it cannot be had.

    Raises:
        RunError: The query does not run.
    """
    taking = Taking.of(record, here)
    ways = (
        taking.genmig(),
        taking.parallel_track(),
        taking.replay(),
        moving_state(taking, prices),
    )
    return tuple(_priced(one, prices) if isinstance(one, Strategy) else one for one in ways)


def moving_state(_taking: Taking, prices: Prices) -> Strategy | Refusal:
    """The way in which the new plan takes over what the old one remembers."""
    rows = prices.rows
    pause = moving_pause(rows, DEFAULTS if prices.new is None else prices.new.constants)
    return Refusal(
        Migration.MOVING_STATE,
        f"this version moves no state between plans; it would pause the answer for {pause:,.0f} us"
        f" to move {rows:,} rows",
        "write REPLAN USING AUTO",
    )


def _priced(way: Strategy, prices: Prices) -> Strategy:
    """A way with its costs: that the old plan runs on, and that rows are replayed to the new."""
    work = way.work
    if prices.old is not None:
        work += beside(prices.old, way.length)
    if prices.new is not None:
        work += replaying(prices.new, way.replays)
    return replace(way, work=work)


def chosen(ways: tuple[Strategy | Refusal, ...]) -> tuple[Strategy, str] | None:
    """The way that AUTO takes, and why; ``None`` if there is none."""
    there = [one for one in ways if isinstance(one, Strategy)]
    if not there:
        return None
    least = min(map(_cost, there))
    best = min((one for one in there if _cost(one) <= least + EQUAL), key=lambda one: one.length)
    if len(there) == 1:
        return best, "no other way is possible"
    if all(_cost(one) <= least + EQUAL for one in there):
        sooner = any(one.length > best.length for one in there)
        return best, "over first, and none is cheaper" if sooner else "all take equally long"
    return best, "the least work and pause"


def _cost(way: Strategy) -> float:
    """What AUTO compares."""
    return way.work + PAUSE_WEIGHT * way.pause


def replan(
    record: Record,
    here: Standpoint,
    using: Migration | None = None,
    prices: Prices = UNPRICED,
) -> Changed:
    """Let another plan for the same meaning take over.

    Args:
        record: What has become of the query.
        here: What is known.
        using: How; AUTO if it is not said.
        prices: What is known of the costs.

    Raises:
        RunError: It does not run, or it cannot be done so.
    """
    ways = candidates(record, here, prices)
    if using is None or using is Migration.AUTO:
        found = chosen(ways)
        if found is None:
            raise _impossible(here.query, ways)
        way, why = found
    else:
        asked = next(one for one in ways if one.using is using)
        if isinstance(asked, Refusal):
            raise RunError(
                f'REPLAN USING {using.value} is not possible for query "{here.query}": {asked.why}',
                hint=asked.hint,
            )
        way, why = asked, "it was asked for"
    others = tuple(one for one in ways if one is not way)
    return _changed(record, here, (way, *others), why)


def _changed(
    record: Record, here: Standpoint, ways: tuple[Strategy | Refusal, ...], why: str
) -> Changed:
    """What becomes of a query, with the decision written down."""
    way, *others = ways
    assert isinstance(way, Strategy), "it can be had"
    took = Took(
        way.using.value,
        way.work,
        why,
        tuple(f"{one.using.value}: {way_text(one)}" for one in others),
    )
    *before, new = way.record.instances
    decided = replace(way.record, instances=(*before, replace(new, took=took)))
    live = live_parts(record, here.known)
    at = Taking.of(record, here).fresh
    numbers = Switch(at, tuple(way.since for _ in live), new.fresh, way.since)
    return Changed(decided, numbers, at=at, strategies=ways, why=why)


def way_text(way: Strategy | Refusal) -> str:
    """What a way takes, or why it cannot be had, for people."""
    if isinstance(way, Refusal):
        return f"not possible: {way.why}"
    pause = f"a pause of {way.pause:,.0f} us" if way.pause else "no pause"
    replayed = f", rows of {duration_text(way.replays)} are replayed" if way.replays else ""
    both = f"both plans run for {duration_text(way.length)}{replayed}"
    return f"{both}; {way.work:,.0f} us of work besides, {pause}"


def _impossible(query: str, ways: tuple[Strategy | Refusal, ...]) -> RunError:
    """The error that no way can be had, with the reason of the one that most can have."""
    most = next(one for one in ways if isinstance(one, Refusal))
    return RunError(f'no other plan can take over for query "{query}": {most.why}', hint=most.hint)
