"""The laws of stored sets find mistakes that one could make in storing them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

from laws import test_provenance_encodings as laws
from laws.test_mutants import fails
from tidemill.provenance import encode
from tidemill.provenance.encode import Encoding
from tidemill.provenance.encoding import changes, runs
from tidemill.provenance.encoding.lists import Lists

if TYPE_CHECKING:
    from tidemill.provenance.encoding.changes import Changes
    from tidemill.provenance.encoding.lists import Ints
    from tidemill.provenance.encoding.runs import Runs

CHANGES_OF, DIFFERENCE, RUNS_OF = changes.changes_of, changes._difference, runs.runs_of  # noqa: SLF001

DECODED = laws.test_what_is_stored_is_decoded


def test_a_run_goes_on_in_the_next_set() -> None:
    def of_all(sets: Lists) -> Runs:
        whole = Lists(np.array([0, len(sets.values)]), sets.values)
        starts = RUNS_OF(whole).starts
        begins = np.isin(np.arange(len(sets.values)), starts)
        return RUNS_OF(whole)._replace(sets=sets, counts=sets.sums(begins))

    with patch.object(encode, "runs_of", of_all):
        fails(DECODED, encoding=Encoding.INTERVAL)


def test_ids_are_dropped_at_the_front_only() -> None:
    def at_the_front(sets: Lists, full_every: int) -> Changes:
        found = CHANGES_OF(sets, full_every)
        places = found.dropped.values.copy()
        places[::2] = 0
        return replace(found, dropped=Lists(found.dropped.bounds, places))

    with patch.object(encode, "changes_of", at_the_front):
        fails(DECODED, encoding=Encoding.DELTA)


def test_a_change_is_told_from_the_set_before() -> None:
    def one_back(sets: Lists, full_every: int) -> Changes:
        found = CHANGES_OF(sets, full_every)
        rows = np.arange(len(sets))
        return replace(found, bases=np.where(found.bases < rows, rows - 1, rows))

    with patch.object(encode, "changes_of", one_back):
        fails(DECODED, encoding=Encoding.DELTA)


def test_ids_of_neighbouring_blocks_are_taken_for_one_another() -> None:
    def ids(sets: Lists, _block: int) -> Ints:
        return sets.values

    with patch.object(changes, "_keys", ids):
        fails(DECODED, encoding=Encoding.DELTA)


def test_every_run_is_told_by_its_ends() -> None:
    with patch.object(runs, "LONG", 1):
        fails(laws.test_adaptive_takes_no_more_than_any_other_and_a_byte_a_set)


def test_what_is_dropped_costs_nothing() -> None:
    def cheap(others: Lists, sets: Lists) -> changes._Difference:
        found = DIFFERENCE(others, sets)
        return replace(found, bytes=8 * sets.sums(found.is_new))

    with patch.object(changes, "_difference", cheap):
        fails(laws.test_changes_and_blocks_take_no_more_than_ids)
