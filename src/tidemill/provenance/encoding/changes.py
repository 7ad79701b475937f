"""Changes: what a set has less and more than the last one that was told in full (P14).

A set is told in full if that takes less, if the changes since the last full set would together take
more than it does (they grow as sets move on: to go on would cost more than to begin again), or if
a certain number of sets have come since. What a set has less is told by runs of places in the full
set: where a run begins, and how long it is. For windows that slide that is one run, at the front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidemill.provenance.encoding.lists import Lists, counted
from tidemill.provenance.encoding.runs import ID_BYTES

if TYPE_CHECKING:
    from tidemill.provenance.encoding.lists import Flags, Ints

__all__ = ["DROP_BYTES", "Changes", "changes_of", "kept"]

DROP_BYTES = 8
"""Of a run of places."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How sets differ from full ones.

    Attributes:
        bases: The full set of each set: its number; its own, if it is told in full.
        is_new: Of each id, whether it is told: its set is full, or the base does not have it.
        dropped: For each set runs of places in its base, the place and the length by turns.
    """

    bases: Ints
    is_new: Flags
    dropped: Lists

    @property
    def are_changes(self) -> Flags:
        """Of each set, whether it is told as a change."""
        return self.back > 0

    @property
    def back(self) -> Ints:
        """How many rows before each set its base stands; 0, if it is full."""
        return np.arange(len(self.bases)) - self.bases


@dataclass(frozen=True, slots=True)
class _Difference:
    """What sets have less and more than others, of which each is there once.

    Attributes:
        is_new: Of each id of the sets, whether the other does not have it.
        places: Where among the ids of the others runs begin that the sets do not have.
        lengths: How long these runs are.
        counts: How many of them there are in each.
        bytes: How many bytes that takes, for each set.
    """

    is_new: Flags
    places: Ints
    lengths: Ints
    counts: Ints
    bytes: Ints


def changes_of(sets: Lists, full_every: int) -> Changes:
    """How sets differ from the last full one.

    Args:
        sets: The sets.
        full_every: The first of so many sets is full.
    """
    keys = Lists(sets.bounds, _keys(sets, full_every))
    lengths = sets.lengths
    bases = np.arange(len(sets))
    is_new = np.ones(len(sets.values), dtype=np.bool_)
    last = np.arange(0, len(sets), full_every)
    spent = np.zeros(len(last), dtype=np.int64)
    dropped: list[tuple[Ints, Ints, Ints]] = []
    # Which set is full depends on the sets before it in its block, but not on other blocks: the
    # second sets of all blocks are looked at together, then the third ones.
    for step in range(1, min(full_every, len(sets))):
        rows = np.arange(step, len(sets), full_every)
        blocks = len(rows)  # the last block may be shorter
        places = sets.places(rows)
        found = _difference(
            keys.at(last[:blocks]), Lists(places.bounds, keys.values[places.values])
        )
        full = ID_BYTES * lengths[rows]
        pays = (found.bytes < full) & (spent[:blocks] + found.bytes <= full)
        spent[:blocks] = np.where(pays, spent[:blocks] + found.bytes, 0)
        last[:blocks] = np.where(pays, last[:blocks], rows)
        bases[rows] = last[:blocks]
        is_new[places.values] = found.is_new | ~np.repeat(pays, places.lengths)
        told = np.repeat(pays, found.counts)
        dropped.append(
            (np.repeat(rows, found.counts)[told], found.places[told], found.lengths[told])
        )
    return Changes(bases, is_new, _by_row(dropped, len(sets)))


def _keys(sets: Lists, block: int) -> Ints:
    """Numbers for ids, in the same order in a block, and greater than those of blocks before."""
    shifts = sets.shifts(block)
    if shifts is not None:
        return sets.values + shifts
    known, ranks = np.unique(sets.values, return_inverse=True)  # ids are far apart
    return ranks + np.repeat(np.arange(len(sets)) // block * len(known), sets.lengths)


def _difference(others: Lists, sets: Lists) -> _Difference:
    """What sets have less and more than others, by keys that rise through all sets."""
    at = np.searchsorted(others.values, sets.values)
    is_new = at == len(others.values)
    is_new[~is_new] = others.values[at[~is_new]] != sets.values[~is_new]
    is_gone = np.ones(len(others.values), dtype=np.bool_)
    is_gone[at[~is_new]] = False
    firsts = others.firsts
    begins = is_gone & (firsts | ~np.concatenate([[False], is_gone[:-1]]))
    number = np.cumsum(begins)[is_gone] - 1
    counts = others.sums(begins)
    starts = np.flatnonzero(begins)
    places = starts - np.repeat(others.bounds[:-1], counts)
    lengths = np.bincount(number, minlength=len(starts))
    cost = DROP_BYTES * counts + ID_BYTES * sets.sums(is_new)
    return _Difference(is_new, places, lengths, counts, cost)


def _by_row(runs: list[tuple[Ints, Ints, Ints]], height: int) -> Lists:
    """Runs of places as a list for each row."""
    none = np.zeros(0, dtype=np.int64)
    rows, places, lengths = (np.concatenate([none, *(part[i] for part in runs)]) for i in range(3))
    order = np.argsort(rows, kind="stable")
    both = np.stack([places[order], lengths[order]], axis=1).ravel()
    return Lists.with_lengths(2 * np.bincount(rows, minlength=height), both)


def kept(full: Lists, bases: Ints, dropped: Lists) -> Lists:
    """What sets have of their bases.

    Args:
        full: Sets; those that are bases have all their ids.
        bases: For each set its base; its own number, if it has none.
        dropped: Runs of places in the bases.
    """
    rows = np.flatnonzero(bases != np.arange(len(bases)))
    found = full.at(bases[rows])
    pairs = dropped.at(rows)
    starts = np.repeat(found.bounds[:-1], pairs.lengths // 2) + pairs.values[::2]
    is_kept = np.ones(len(found.values), dtype=np.bool_)
    is_kept[counted(starts, pairs.values[1::2])] = False
    some = found.where(is_kept)
    lengths = np.zeros(len(bases), dtype=np.int64)
    lengths[rows] = some.lengths
    return Lists.with_lengths(lengths, some.values)
