"""The laws of moving state find what is wrong; and the traps of Zhu's thesis, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from laws import test_moving_state
from laws.arrivals import Arrival
from laws.catalogue import S, T, U
from laws.moving import Moving, Star, emitted_while_moving
from laws.test_engine import snapshot
from laws.test_moving_state import SCHEMAS
from laws.test_mutants import fails
from plans import physical
from tidemill.algebra.expr import Call, Column, Literal, Named
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Project, TimeWindow, Window
from tidemill.algebra.snapshot import Element, Reference
from tidemill.engine.handover import Handover
from tidemill.migration import compare, ports
from tidemill.migration.compare import compared
from tidemill.migration.moves import Handed, Refusal
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.planning import Planning
from tidemill.physical import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidemill.migration.moves import Standing
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan

GIVEN, TIMES, TAKEN = Handover._given, Handover._times, ports._taken  # noqa: SLF001 — mutants
LAW = test_moving_state.test_any_plan_of_a_join_goes_over_to_any_other
TABLES = test_moving_state.test_state_is_that_of_a_plan_that_ran_from_the_start


def test_what_is_not_matched_is_left_empty() -> None:
    with patch.object(Handover, "_standing", lambda *_: iter(())):
        fails(LAW)


def test_what_stands_is_taken_twice() -> None:
    def twice(self: Handover, source: Handed | Standing, time: Time) -> Iterator[Batch]:
        yield from GIVEN(self, source, time)
        if not isinstance(source, Handed):
            yield from GIVEN(self, source, time)

    with patch.object(Handover, "_given", twice):
        fails(LAW)


def test_what_new_conditions_do_not_want_is_taken() -> None:
    def unfiltered(*given: object, anywhere: bool) -> Handed | str:
        taken = TAKEN(*given, anywhere=anywhere)  # type: ignore[arg-type] # all that it takes
        if isinstance(taken, str):
            return taken
        kept = (one for one in taken.through if not isinstance(one, interval.Filter))
        return replace(taken, through=tuple(kept))

    with patch.object(ports, "_taken", unfiltered):
        fails(LAW)


def test_what_has_fewer_rows_than_are_needed_is_taken() -> None:
    with patch.object(ports, "_is_asked", lambda *_: True):
        fails(LAW)


def test_what_is_in_other_partitions_is_taken() -> None:
    def anywhere(*given: object, anywhere: bool) -> Handed | str:  # noqa: ARG001 — the mistake
        return TAKEN(*given, anywhere=True)  # type: ignore[arg-type] # all that it takes

    with patch.object(ports, "_taken", anywhere):
        fails(LAW)


def test_it_is_asked_for_what_stands_at_another_time() -> None:
    def later(self: Handover, source: Handed | Standing, time: Time) -> Iterator[Batch]:
        return GIVEN(self, source, Time(time + 1))

    with patch.object(Handover, "_given", later):
        fails(TABLES)


def test_operators_are_not_held() -> None:
    def any_of(self: Handover, sources: Iterable[Handed | Standing]) -> Iterator[Time | None]:
        yield max(time for time in TIMES(self, sources) if time is not None)

    with (
        patch.object(Moving, "held", lambda *_: {}),
        patch.object(Handover, "_times", any_of),
    ):
        fails(LAW)
