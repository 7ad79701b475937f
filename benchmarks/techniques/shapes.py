"""Shapes: what others have found, and whether it is found here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Shape", "listed", "table_of"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Something others have found.

    Attributes:
        says: What it is.
        found: Whether it is found here, too.
        seen: What is seen here.
        why: If it is not, why.
    """

    says: str
    found: bool
    seen: str = ""
    why: str = ""


def table_of(title: str, shapes: Iterable[Shape]) -> Table:
    """Which of some shapes are found."""
    return Table(
        title,
        ("others have found", "here, too", "seen", "why not"),
        tuple((s.says, s.found, s.seen, "" if s.found else s.why) for s in shapes),
    )


def listed(numbers: Sequence[float]) -> str:
    """Numbers for a reader.

    >>> listed([1, 2.345])
    '1.0, 2.3'
    """
    return ", ".join(f"{number:.1f}" for number in numbers)
