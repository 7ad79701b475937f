"""The counts of Esmaili's experiments E8 and E9, of what a session has delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tidemill.lang.statements import Change

__all__ = ["Counts", "counts", "published"]


@dataclass(frozen=True)
class Counts:
    """How a change was seen by its reader."""

    loss: int
    extra: int
    stream_disorder: int
    query_disorder: int
    duplicates: int
    response: int


def instants(frame: pl.DataFrame, until: int, every: int = 1) -> list[int]:
    """The instants at which a version has given an answer, up to one."""
    found: set[int] = set()
    for start, end in frame.select("start", "end").iter_rows():
        found.update(t for t in range(start, min(end, until)) if (t + 1) % every == 0)
    return sorted(found)


def counts(  # noqa: PLR0913 — what is counted
    old: list[int], new: list[int], at: int, sizes: tuple[int, int], last: int, *, held: bool
) -> Counts:
    """Compare what was given with what old and new windows should give (M1 to M3).

    Args:
        old: The instants that the old version has answered.
        new: Those of the new one.
        at: The instant of the change.
        sizes: The sizes of the old and the new windows.
        last: The last instant that is looked at.
        held: Whether all of the new version was given after all of the old.
    """
    before, after = sizes
    wanted_old = {t for t in range(last) if t - before + 1 < at}
    wanted_new = {t for t in range(last) if t - after + 1 >= at}
    loss = len(wanted_old - set(old)) + len(wanted_new - set(new))
    extra = len(set(old) - wanted_old) + len(set(new) - wanted_new)
    by_time = sorted([(t, 0) for t in old] + [(t, 1) for t in new])
    given = [(t, 0) for t in old] + [(t, 1) for t in new] if held else by_time
    highest, stream = -1, 0
    for time, _ in given:
        stream += time < highest
        highest = max(highest, time)
    last_old = max((n for n, (_, version) in enumerate(given) if version == 0), default=-1)
    query = sum(version for _, version in given[:last_old])
    same = len(set(old) & set(new)) if before == after else 0
    return Counts(loss, extra, stream, query, same, min(new) - max(old))


def published(using: Change, old: int, new: int) -> Counts:
    """The formulas of the digest, E8."""
    disorder = max(0, old - 1 - new)
    match using.name:
        case "IMMEDIATE":
            return Counts(old - 1, 0, 0, 0, 0, new)
        case "DRAIN":
            return Counts(old - 1, 0, 0, 0, 0, new)
        case "QUERY_ORDER":
            return Counts(0, 0, disorder, 0, 0, new - old + 1)
        case "STREAM_ORDER":
            return Counts(0, 0, 0, disorder, 0, new - old + 1)
        case "GRACEFUL":
            return Counts(max(0, old - new), max(0, new - old), 0, 0, 0, 1)
        case "EXACT":
            # A window that holds rows of both sides is the new version's: old ones lack it.
            return Counts(old - 1, new - 1, 0, 0, 0, 1)
        case _:
            same = old - 1 if old == new else 0
            return Counts(0, new - 1, 0, old - 2, same, -(old - 2))
