"""A ledger: applies the changes of an answer as they are delivered, and looks at every instant.

It knows the engine only by its output: rows with a time and a sign, batch by batch. The changes of
an instant are applied together, in the order of time; then the rows that are there must be those of
the truth, and what they hold must come to 0. A change of an instant that was looked at before makes
that instant wrong, since somebody has seen it without the change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.consistency.transfers import Balances

__all__ = ["Ledger", "Totals", "wrong_results"]


@dataclass(slots=True)
class Ledger:
    """The balances as a reader of their changes knows them.

    Attributes:
        truth: The balances from each instant on at which they change.
        instants: How many instants were looked at.
        wrong: At how many of them the total was not 0, or the balances were not the true ones.
    """

    truth: Mapping[int, Balances]
    instants: int = 0
    wrong: int = 0
    _rows: Counter[tuple[int, int]] = field(default_factory=Counter)
    _latest: int = -1

    def take(self, changes: pl.DataFrame) -> None:
        """Apply what was delivered: account, balance, time and sign."""
        for time, group in groupby(changes.iter_rows(), key=lambda row: row[2]):
            for account, balance, _, sign in group:
                self._rows[account, balance] += sign
            there = {row: count for row, count in self._rows.items() if count}
            self._rows = Counter(there)
            is_once = all(count == 1 for count in there.values())
            total = sum(balance * count for (_, balance), count in there.items())
            is_true = dict(there.keys()) == self.truth.get(time)
            self.instants += 1
            self.wrong += total != 0 or not is_once or not is_true or time <= self._latest
            self._latest = max(self._latest, time)

    @property
    def missing(self) -> int:
        """How many instants of the truth were not delivered."""
        return len(self.truth) - self.instants


@dataclass(slots=True)
class Totals:
    """The total as a reader of its changes knows it.

    Attributes:
        truth: The balances from each instant on at which they change.
        instants: How many instants were looked at.
        wrong: At how many of them the total was not 0: not NULL either, if there are balances.
    """

    truth: Mapping[int, Balances]
    instants: int = 0
    wrong: int = 0
    _rows: Counter[int | None] = field(default_factory=Counter)
    _latest: int = -1

    def take(self, changes: pl.DataFrame) -> None:
        """Apply what was delivered: total, time and sign."""
        for time, group in groupby(changes.iter_rows(), key=lambda row: row[1]):
            for total, _, sign in group:
                self._rows[total] += sign
            there = {total: count for total, count in self._rows.items() if count}
            self._rows = Counter(there)
            allowed = ({0: 1},) if self.truth.get(time) else ({}, {None: 1})
            self.instants += 1
            self.wrong += there not in allowed or time <= self._latest
            self._latest = max(self._latest, time)

    @property
    def missing(self) -> int:
        """How many instants of the truth were not delivered: where balances come or are gone."""
        is_there, expected = False, 0
        for balances in self.truth.values():
            expected += bool(balances) is not is_there
            is_there = bool(balances)
        return expected - self.instants


def wrong_results(results: pl.DataFrame) -> tuple[int, int]:
    """How many instants balances with a start and an end have, and where the total is not 0."""
    moves = pl.concat(
        [
            results.select(at="start", balance="balance"),
            results.select(at="end", balance=-pl.col("balance")),
        ]
    )
    totals = moves.group_by("at").agg(pl.col("balance").sum()).sort("at")
    return totals.height, totals.filter(pl.col("balance").cum_sum() != 0).height
