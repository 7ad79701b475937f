"""Levels: which of the newest segments of a log are merged.

Law of ``merge_from``: after merging, every segment is larger than all newer ones together, so there
are no more of them than the number of rows has bits. A row that is merged stands in a segment twice
as large as before, unless the segments shrink: each row is written about as often as that number
has bits.

Law of ``merge_tier``, for rows that come and go in order: what it merges is no more than a part of
all rows, so that rows are never kept long after their time for the sake of others in their segment.
Rows are written once for each tier, and where segments come that are alike, there are few of each
tier but the last. Where rows in the middle go first, segments shrink that are not merged any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["merge_from", "merge_tier"]

_TIER_SEGMENTS = 4
"""So many segments of a tier make one of the next; so many, at least, hold all rows."""


def merge_from(sizes: Sequence[int]) -> int:
    """The place of the first segment, oldest first, that is merged with all newer ones.

    >>> merge_from([100, 7, 2, 2]), merge_from([100, 7, 4, 2]), merge_from([8, 7, 1, 1])
    (2, 3, 0)
    """
    first = len(sizes) - 1
    together = sizes[first]
    for place in range(first - 1, -1, -1):
        if sizes[place] <= together:
            first = place
        together += sizes[place]
    return first


def merge_tier(sizes: Sequence[int], least: int) -> int | None:
    """The place of the first segment, oldest first, that is merged with all newer ones, if any is.

    >>> merge_tier([9, 9, 1, 1, 1, 1], 1), merge_tier([9, 9, 1, 1, 1], 1), merge_tier([1] * 16, 1)
    (2, None, 12)
    >>> merge_tier([4, 1, 1, 1, 1], 1), merge_tier([99, 4, 1, 4, 4, 1, 4], 1)
    (None, 1)

    Args:
        sizes: How many rows each has.
        least: How many rows a segment of the first tier has at least.
    """
    limit, together, greatest, count = sum(sizes) // _TIER_SEGMENTS, 0, 0, 0
    for place in range(len(sizes) - 1, -1, -1):
        together += sizes[place]
        if together > limit:
            return None
        tier = _tier(sizes[place], least)
        if tier >= greatest:
            greatest, count = tier, count + 1 if tier == greatest else 1
        if count == _TIER_SEGMENTS:
            return place
    return None


def _tier(size: int, least: int) -> int:
    """Of how many digits, each two bits, the size is."""
    return ((size // least).bit_length() + 1) // 2
