"""Which way AUTO takes, and what is said of it."""

from __future__ import annotations

import pytest

from laws.catalogue import S
from laws.living import version
from tidemill.algebra.plan import TimeWindow, Unbounded, Window
from tidemill.catalog.records import Record
from tidemill.control.standpoint import Standpoint
from tidemill.control.strategies import EQUAL, Prices, candidates, chosen, replan, way_text
from tidemill.control.taking_over import Refusal, Strategy
from tidemill.errors import RunError
from tidemill.lang.statements import Migration
from tidemill.model.time import Time
from tidemill.optimizer.migration_costs import beside, replaying
from tidemill.optimizer.planned import Context
from tidemill.optimizer.planner import plan
from tidemill.optimizer.statistics import Edge, Statistics

RECORD = Record((version(1, Window(S, TimeWindow(10))),))
HERE = Standpoint("q", Time(20), came={S.name: Time(20)})
FOREVER = Record((version(1, Window(S, Unbounded())),))


def way(using: Migration, length: int, work: float, pause: float = 0.0) -> Strategy:
    return Strategy(using, RECORD, Time(length), length, work=work, pause=pause)


GENMIG, REPLAY = Migration.GENMIG, Migration.REPLAY
MOVING = Migration.MOVING_STATE


@pytest.mark.parametrize(
    ("ways", "expected", "why"),
    [
        ([way(GENMIG, 9, 0)], GENMIG, "no other way is possible"),
        ([way(GENMIG, 9, 0), way(REPLAY, 9, 0)], GENMIG, "all take equally long"),
        ([way(GENMIG, 9, 0), way(REPLAY, 1, EQUAL)], REPLAY, "over first, and none is cheaper"),
        ([way(GENMIG, 9, 0), way(REPLAY, 1, EQUAL + 1)], GENMIG, "the least work and pause"),
        # A pause of 20 ms is as bad as two seconds of work, and better than an hour of it.
        ([way(GENMIG, 9, 0), way(MOVING, 0, 0, 20_000.0)], GENMIG, "the least work and pause"),
        ([way(GENMIG, 9, 3.6e9), way(MOVING, 0, 0, 20_000.0)], MOVING, "the least work and pause"),
    ],
)
def test_the_cheapest_is_taken_and_of_equals_the_shortest(
    ways: list[Strategy], expected: Migration, why: str
) -> None:
    found = chosen((*ways, Refusal(Migration.PARALLEL_TRACK, "of a reason", "do it otherwise")))
    assert found is not None
    assert (found[0].using, found[1]) == (expected, why)


def test_there_may_be_none() -> None:
    assert chosen((Refusal(GENMIG, "of a reason", "do it otherwise"),)) is None
    with pytest.raises(RunError, match='no other plan can take over for query "q": it has a w'):
        replan(FOREVER, HERE)


def test_kept_rows_fill_windows_that_keep_everything() -> None:
    """Where nothing forgets by time, rows that are kept are the only way without moving state."""
    here = Standpoint("q", Time(20), came={S.name: Time(20)}, kept={S.name: Time(0)})
    ways = {one.using: one for one in candidates(FOREVER, here)}
    assert isinstance(ways[Migration.REPLAY], Strategy)
    assert isinstance(ways[Migration.GENMIG], Refusal)
    took = replan(FOREVER, here).record.instances[-1].took
    assert took is not None
    assert (took.using, took.why) == ("REPLAY", "no other way is possible")


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("length", "why"),
    [(HOUR, "over first, and none is cheaper"), (2 * HOUR, "the least work and pause")],
)
def test_costs_are_those_of_the_plans(length: int, why: str) -> None:
    """In an hour the steps of the old plan take less than a second, and in two hours more."""
    asked = Window(S, TimeWindow(length))
    record = Record((version(1, asked),))
    now = Time(4 * HOUR)
    here = Standpoint("q", now, came={S.name: now}, kept={S.name: Time(0)})
    known = Statistics({S.name: Edge(10_000_000.0)})
    planned = plan(asked, context=Context(statistics=known))
    prices = Prices(planned, planned, rows=5)
    ways = {one.using: one for one in candidates(record, here, prices)}
    genmig, replay = ways[GENMIG], ways[REPLAY]
    assert isinstance(genmig, Strategy)
    assert isinstance(replay, Strategy)
    assert genmig.work == beside(planned, genmig.length) > 0
    assert replay.replays == length - 1
    assert replay.work == replaying(planned, length - 1) + beside(planned, 1)
    assert replay.work < genmig.work
    took = replan(record, here, None, prices).record.instances[-1].took
    assert took is not None
    assert (took.using, took.why) == ("REPLAY", why)


def test_every_way_is_told() -> None:
    told = {one.using: way_text(one) for one in candidates(RECORD, HERE)}
    both = "both plans run for 10us; 0 us of work besides, no pause"
    assert told[GENMIG] == told[Migration.PARALLEL_TRACK] == both
    assert told[REPLAY].startswith("not possible: its streams do not keep")
    assert told.keys() == {*Migration} - {Migration.AUTO}


def test_no_plan_takes_over_from_a_part_before_that_begins() -> None:
    """Found by the law: REPLAY right after GENMIG answered what the first part still answered."""
    window = Record((version(1, Window(S, TimeWindow(2))),))
    here = Standpoint("q", Time(1), came={S.name: Time(1)}, kept={S.name: Time(0)})
    first = replan(window, here, GENMIG).record
    second = replan(first, here, REPLAY).record
    assert first.parts[0].until == second.parts[0].until == 3
    assert [part.instance for part in second.parts] == [1, 3]
