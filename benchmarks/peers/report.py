"""The table of the peers: who is asked what, and a row for what came of it.

Law: a row has a time only if every run of the system gave the right rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.peers.compare import difference
from benchmarks.peers.queries import QUERIES
from benchmarks.peers.systems import HOME, PEERS, TIDEMILL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

    from benchmarks.harness.table import Cell
    from benchmarks.peers.asking import Answered
    from benchmarks.peers.systems import System

__all__ = ["COLUMNS", "EQUAL", "Round", "behind", "left_out", "line", "rounds"]

EQUAL = "equal"

COLUMNS = (
    "query",
    "system",
    "cores",
    "rows in",
    "seconds",
    "±%",
    "CPU s",
    "rows/s",
    "times Tidemill's rows/s",
    "by CPU",
    "answer",
)


@dataclass(frozen=True, slots=True)
class Round:
    """Those who are asked the same query about the same rows on as many cores.

    Attributes:
        query: The name of the query.
        size: The name of the input.
        cores: How many cores each may use.
        rows: How many rows come in.
        peers: Those who are asked, besides Tidemill.
    """

    query: str
    size: str
    cores: int
    rows: int
    peers: tuple[System, ...]


def rounds(peers: Sequence[System], cores: int, rows: Callable[[str, str], int]) -> list[Round]:
    """Who is asked what; Tidemill always with the large input on all cores.

    Args:
        peers: Those who take part.
        cores: How many cores there are.
        rows: How many rows a query reads of an input, both by name.
    """
    found = []
    for query in QUERIES:
        groups: dict[tuple[str, int], tuple[System, ...]] = {("large", cores): ()}
        for peer in peers:
            place = (
                "small" if query in peer.small else "large",
                cores if peer.uses_all_cores else 1,
            )
            groups[place] = (*groups.get(place, ()), peer)
        found += [
            Round(query, size, used, rows(query, size), asked)
            for (size, used), asked in groups.items()
        ]
    return found


def left_out(home: Path = HOME) -> list[tuple[Cell, ...]]:
    """A row of the table for each peer that does not take part."""
    words = [(peer.name, peer.missing(home)) for peer in PEERS]
    return [("all", name, *(None,) * 8, word) for name, word in words if word]


def line(
    round_: Round, system: System, answered: Answered, wanted: pl.DataFrame, own: Answered
) -> tuple[Cell, ...]:
    """A row of the table: what a system took for a query, if all its runs gave the right rows.

    Args:
        round_: What was asked.
        system: Who was asked.
        answered: What came of it.
        wanted: The right rows.
        own: What came of asking Tidemill, the same if it is Tidemill that was asked.
    """
    begin: tuple[Cell, ...] = (QUERIES[round_.query].title, system.name, round_.cores, round_.rows)
    wrong = answered.failure
    for run in range(len(answered.outputs)):
        wrong = wrong or difference(answered.rows(run), wanted) or ""
    if wrong:
        return (*begin, *(None,) * 6, wrong)
    assert answered.timing is not None, "a run without a time is a failure"
    assert answered.processor is not None, "likewise"
    assert own.timing is not None, "Tidemill has answered"
    assert own.processor is not None, "likewise"
    seconds, processor = answered.timing.median, answered.processor.median
    return (
        *begin,
        seconds,
        round(answered.timing.spread * 50),
        processor,
        round(round_.rows / seconds),
        own.timing.median / seconds,
        own.processor.median / processor,
        EQUAL,
    )


def behind(rows: Sequence[tuple[Cell, ...]]) -> str:
    """Where Tidemill is behind, by the clock or by the processor, in a sentence."""
    faster = [
        f"{query} ({system}: {clock:.2g} times as fast, {processor:.2g} by CPU)"
        for query, system, *_, clock, processor, _ in rows
        if isinstance(clock, float) and isinstance(processor, float) and max(clock, processor) > 1
    ]
    if not any(row[1] != TIDEMILL.name and row[4] is not None for row in rows):
        return "There is nobody to compare with."
    return f"Tidemill is behind in: {'; '.join(faster)}." if faster else "Tidemill is not behind."
