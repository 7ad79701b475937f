"""Levels: which of the newest segments of a log are merged.

Law: after merging, every segment is larger than all newer ones together, so there are no more of
them than the number of rows has bits. A row that is merged stands in a segment twice as large as
before, unless the segments shrink: each row is written about as often as that number has bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["merge_from"]


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
