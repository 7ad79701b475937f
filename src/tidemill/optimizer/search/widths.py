"""How wide the rows of intermediate results are: columns that nothing above asks for are gone.

A column is carried by a set of inputs if the answer has it, or a condition that reads inputs
outside of the set. Of inputs that must agree on a value, one holds it for all of them.

>>> widths = Widths(((8.0, 0, True, ()), (24.0, 1, False, (0b111,))), (), overhead=16.0)
>>> widths.of(0b011), widths.of(0b111), widths.of(0b010)
(48.0, 24.0, 40.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Carried", "Widths"]

Carried: TypeAlias = tuple[float, int, bool, tuple[int, ...]]
"""A column: its bytes, its input, whether the answer has it, the inputs of conditions with it."""

Member: TypeAlias = tuple[int, tuple[int, ...]]
"""What must be equal to others: its input, and the numbers of the columns that it reads."""


@dataclass(frozen=True, slots=True)
class Widths:
    """The columns of some inputs that are joined.

    Attributes:
        columns: All of them.
        classes: What must be equal, in the order in which it is asked for.
        overhead: How many bytes a row has besides: its times, or how often it is there.
    """

    columns: tuple[Carried, ...]
    classes: tuple[tuple[Member, ...], ...]
    overhead: float = 0.0

    def of(self, mask: int) -> float:
        """How many bytes a row of a set of inputs has."""
        held = {
            number
            for number, (_, owner, is_asked, readers) in enumerate(self.columns)
            if mask >> owner & 1 and (is_asked or any(inputs & ~mask for inputs in readers))
        }
        for members in self.classes:
            inside = next((reads for owner, reads in members if mask >> owner & 1), ())
            if any(not mask >> owner & 1 for owner, _ in members):
                held.update(inside)
        return self.overhead + sum(self.columns[number][0] for number in held)
