"""Which rows of a sink wait, and for whom; what an instance needs that is to withdraw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laws.catalogue import S
from laws.living import version
from tidemill.algebra.plan import RowWindow, TimeWindow, Window
from tidemill.catalog.records import Instance, Part, Record
from tidemill.connectors.forms import Delivered
from tidemill.control.counting import counting
from tidemill.control.delivered import cut_of, got, marked, released
from tidemill.control.lifecycle import stop
from tidemill.control.standpoint import Standpoint
from tidemill.control.strategies import replan
from tidemill.errors import RunError
from tidemill.lang.statements import StopMode
from tidemill.model.spans import Leaves, Span
from tidemill.model.time import END_OF_TIME, Time

RECORD = Record((version(1, Window(S, TimeWindow(7))),))
HERE = Standpoint("q", Time(20), sink=Delivered.CHANGES)


def test_an_instance_that_counts_goes_on_where_the_same_rows_stand() -> None:
    """From 26 on windows of 7 hold nothing from before 20; at 26 both have the same rows."""
    found = counting(RECORD, HERE)
    assert found.parts == (
        Part(1, until=Time(27), hands_on=True),
        Part(2, Time(27), joins=True),
    )
    assert found.instances[1] == Instance(2, 1, Time(20), counts=True)
    assert counting(found, HERE) == found, "once is enough"
    assert counting(RECORD, replace(HERE, sink=Delivered.RESULTS)) == RECORD


def test_windows_that_do_not_forget_by_time_cannot_be_taken_over() -> None:
    with pytest.raises(RunError, match="what its sink has to be told to withdraw"):
        counting(Record((version(1, Window(S, RowWindow(3))),)), HERE)


def test_a_part_that_was_released_stays_so() -> None:
    """Some of its rows may have left, whatever is known after a restart."""
    record = counting(RECORD, HERE)
    first = released(Delivered.CHANGES, record, {1: Time(26)})
    assert [part.released for part in first.parts] == [True, False]
    later = released(Delivered.CHANGES, first, {1: Time(27)})
    assert [part.released for part in later.parts] == [True, True]
    assert released(Delivered.CHANGES, later, {}) == later


def test_what_is_withdrawn_at_an_instant_leaves_when_it_has_passed() -> None:
    assert got(Delivered.CHANGES, Time(81)) == 80
    assert got(Delivered.RESULTS, Time(81)) == 81
    assert got(Delivered.UPSERTS, END_OF_TIME) == END_OF_TIME
    assert got(Delivered.CHANGES, Time(0)) == 0


def test_rows_of_results_do_not_wait_but_for_query_order() -> None:
    instances = (Instance(1, 1), Instance(2, 1, Time(20)))
    parts = (Part(1, until=Time(30)), Part(2, Time(30)))
    record = marked(replace(RECORD, instances=instances, parts=parts))
    for held, how in ((0, Leaves.AT_ONCE), (30, Leaves.HELD)):
        changed = replace(record, parts=(parts[0], replace(parts[1], held=Time(held))))
        cut = cut_of("q", Delivered.RESULTS, changed, changed.instances[1], {})
        assert cut is not None
        assert cut.spans == (Span(Time(30), leaves=how),)
    assert cut_of("q", None, record, record.instances[1], {}) is None


def test_a_query_that_drains_has_no_plan_to_be_replaced() -> None:
    """It would begin to answer again."""
    for sink in (None, Delivered.RESULTS, Delivered.CHANGES):
        here = replace(HERE, sink=sink)
        stopped = stop(RECORD, StopMode.DRAIN, None, here).record
        with pytest.raises(RunError, match="has no plan to be replaced"):
            replan(stopped, here)
