"""Numbers for the virtual partitions, such that Spark spreads them evenly over its own.

Spark hashes the number of a partition to choose the task that keeps its state. Of the first
integers those are taken whose hashes fall on task 0, 1, 2 … in turn.
"""

from __future__ import annotations

from itertools import count

__all__ = ["partition_ids", "spark_hash"]

_MASK = 0xFFFFFFFF
_SEED = 42


def partition_ids(partitions: int, tasks: int) -> tuple[int, ...]:
    """So many numbers, which ``tasks`` tasks share as evenly as can be.

    >>> ids = partition_ids(4, 2)
    >>> [spark_hash(number) % 2 for number in ids]
    [0, 1, 0, 1]
    """
    found: list[int] = []
    for number in count():
        if len(found) == partitions:
            return tuple(found)
        if spark_hash(number) % tasks == len(found) % tasks:
            found.append(number)
    raise AssertionError("there is always another number")


def spark_hash(number: int) -> int:
    """Spark's hash of a non-negative INT: 32-bit Murmur3 with its seed, as a signed number."""
    k = number * 0xCC9E2D51 & _MASK
    k = _rotated(k, 15) * 0x1B873593 & _MASK
    h = _rotated(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4  # the length in bytes
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (h >> 31 << 32)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
