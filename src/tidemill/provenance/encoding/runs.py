"""Runs: ids that follow one another, as the first and the last of them (P13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidemill.provenance.encoding.lists import Lists, counted

if TYPE_CHECKING:
    from tidemill.provenance.encoding.lists import Flags, Ints

__all__ = ["ID_BYTES", "LONG", "Runs", "ids_of_runs", "mixed_bytes", "runs_of", "split"]

ID_BYTES = 8
LONG = 3
"""A run of so many ids takes less as its two ends."""


class Runs(NamedTuple):
    """The runs of some sets.

    Attributes:
        sets: The sets.
        starts: Where among the values of the sets runs begin.
        lengths: How many ids each run has.
        counts: How many runs each set has.
    """

    sets: Lists
    starts: Ints
    lengths: Ints
    counts: Ints

    def ends(self, wanted: Flags) -> Lists:
        """The first and the last id of the wanted runs, one after the other, by set."""
        starts, lengths = self.starts[wanted], self.lengths[wanted]
        both = np.stack([starts, starts + lengths - 1], axis=1).ravel()
        return Lists.with_lengths(2 * self._sums(wanted), self.sets.values[both])

    def ids(self, wanted: Flags) -> Lists:
        """The ids of the wanted runs, by set."""
        return self.sets.where(np.repeat(wanted, self.lengths))

    def bytes(self) -> Ints:
        """How many bytes each set takes if long runs are told by their ends, and others by ids."""
        short = np.where(self.lengths < LONG, self.lengths, 2)
        return ID_BYTES * self._sums(short)

    def _sums(self, figures: Ints | Flags) -> Ints:
        return Lists.with_lengths(self.counts, self.starts).sums(figures)


def runs_of(sets: Lists) -> Runs:
    """The runs of each set, each as long as can be."""
    begins = sets.firsts
    begins[1:] |= np.diff(sets.values) != 1
    starts = np.flatnonzero(begins)
    return Runs(sets, starts, np.diff(starts, append=len(sets.values)), sets.sums(begins))


def split(runs: Runs) -> tuple[Lists, Lists]:
    """The ids of short runs, and the ends of long ones."""
    is_long = runs.lengths >= LONG
    return runs.ids(~is_long), runs.ends(is_long)


def mixed_bytes(sets: Lists) -> Ints:
    """How many bytes each set takes as it is split."""
    return runs_of(sets).bytes()


def ids_of_runs(ends: Lists) -> Lists:
    """The ids of runs that are told by their first and last ids."""
    low, high = ends.values[::2], ends.values[1::2]
    lengths = high - low + 1
    by_set = Lists(ends.bounds // 2, lengths).sums(lengths)
    return Lists.with_lengths(by_set, counted(low, lengths))
