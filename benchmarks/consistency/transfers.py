"""Transfers between accounts, the queries over them, and what must be true at every instant.

Money only moves: whatever one account gets, another one pays. Credits and debits are summed by
account, each by itself; a balance is what both say of an account, and 0 for what one does not
know; the total is the sum of all balances. Law: the total is 0 at every instant.

The balances of every instant are computed here in plain Python as well. Nothing of this knows
Tidemill, only what a window means: from when on, and up to when, a transfer counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DISORDER", "FOREVER", "SECOND", "VARIANTS", "Balances", "Variant", "arrivals", "truth"]

SECOND = 1_000_000
FOREVER = 2**63 - 1

DISORDER = 3 * SECOND
"""How much later than a younger one a transfer may come."""

Balances: TypeAlias = dict[int, int]
"""The balance of each account that has one."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A window over the transfers.

    Attributes:
        name: What it is called in queries.
        window: As it is written.
        counts: From when on, and up to when, a transfer of some instant counts.
    """

    name: str
    window: str
    counts: Callable[[int], tuple[int, int]]

    def views(self) -> str:
        """The streams: the last one, named as the variant, has the balances."""
        credit, debit = f"credit_{self.name}", f"debit_{self.name}"
        return f"""
CREATE STREAM {credit} AS
  SELECT to_account AS account, SUM(amount) AS amount
  FROM transfer {self.window} GROUP BY to_account;
CREATE STREAM {debit} AS
  SELECT from_account AS account, SUM(amount) AS amount
  FROM transfer {self.window} GROUP BY from_account;
CREATE STREAM {self.name} AS
  SELECT COALESCE(c.account, d.account) AS account,
    COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance
  FROM {credit} c FULL JOIN {debit} d ON c.account = d.account;
"""

    def queries(self, into: str = "") -> str:
        """The queries: all balances, and their total.

        Args:
            into: Where the answers go, with ``{name}`` for the name of the query.
        """
        balances, total = f"balances_{self.name}", f"total_{self.name}"
        return f"""
CREATE QUERY {balances} {into.format(name=balances)} AS SELECT * FROM {self.name};
CREATE QUERY {total} {into.format(name=total)} AS SELECT SUM(balance) AS total FROM {self.name};
"""


def _slid(at: int) -> tuple[int, int]:
    """A window that slides by 5 seconds moves one microsecond before the full 5 seconds."""
    begin = (at // (5 * SECOND) + 1) * 5 * SECOND - 1
    return begin, begin + 20 * SECOND


VARIANTS = (
    Variant("ever", "[RANGE UNBOUNDED]", lambda at: (at, FOREVER)),
    Variant("lately", "[RANGE 20 SECONDS]", lambda at: (at, at + 20 * SECOND)),
    Variant("by_slide", "[RANGE 20 SECONDS SLIDE 5 SECONDS]", _slid),
)


def arrivals(count: int, *, accounts: int, seed: int) -> pl.DataFrame:
    """Four transfers a second, in the order in which they arrive: by up to ``DISORDER`` late."""
    chance = Random(seed)  # noqa: S311 — nothing is to be kept secret
    rows = []
    for number in range(count):
        at = number * SECOND // 4
        payer, payee = chance.randrange(accounts), chance.randrange(accounts)
        arrives = at + chance.randrange(DISORDER)
        rows.append((arrives, payer, payee, chance.randint(1, 100), at))
    columns = ["from_account", "to_account", "amount", "at"]
    types = dict.fromkeys(columns, pl.Int64)
    return pl.DataFrame([row[1:] for row in sorted(rows)], schema=types, orient="row")


def truth(transfers: pl.DataFrame, variant: Variant) -> dict[int, Balances]:
    """The balances from each instant on at which they change.

    >>> one = pl.DataFrame({"from_account": [1], "to_account": [2], "amount": [5], "at": [0]})
    >>> truth(one, VARIANTS[1])
    {0: {1: -5, 2: 5}, 20000000: {}}
    """
    moves: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for payer, payee, amount, at in transfers.iter_rows():
        begin, end = variant.counts(at)
        moves[begin] += [(payer, -amount, 1), (payee, amount, 1)]
        moves[end] += [(payer, amount, -1), (payee, -amount, -1)]
    moves.pop(FOREVER, None)
    sums, counts, found = defaultdict[int, int](int), defaultdict[int, int](int), {}
    before: Balances = {}
    for time in sorted(moves):
        for account, amount, count in moves[time]:
            sums[account] += amount
            counts[account] += count
        now = {account: sums[account] for account in sorted(counts) if counts[account]}
        if now != before:
            found[time] = before = now
    return found
