"""Adaptations: what a join has decided about its tree in one partition, as a value that travels.

Law: ``Adaptation.read(adaptation.written()) == adaptation``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import StrEnum

__all__ = ["Adaptation", "Kind"]


class Kind(StrEnum):
    """What was decided."""

    CHANGED = "changed"
    """It goes on in another tree."""
    ADVISED = "advised"
    """It would have, if it were to."""
    KEPT = "kept"
    """A change has had its effect, and stays."""
    UNDONE = "undone"
    """A change has made it worse, and was taken back."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A decision.

    Attributes:
        kind: What was decided.
        time: How far the join had come, in microseconds.
        old: The tree that it had.
        new: The tree that was taken, or would have been.
        cause: Why it was looked for.
        own: What the old tree was expected to take, in microseconds a second of the streams.
        best: What the new one was.
        price: What the change was expected to take, in microseconds.
        before: For how many nanoseconds the join worked for a row before.
        after: For how many it does since; 0 as long as that is not known.
    """

    kind: Kind
    time: int
    old: str
    new: str
    cause: str
    own: float = 0.0
    best: float = 0.0
    price: float = 0.0
    before: int = 0
    after: int = 0

    def written(self) -> list[str | int | float]:
        """It as JSON."""
        return [str(self.kind), *astuple(self)[1:]]

    @classmethod
    def read(cls, written: object) -> Adaptation:
        """What was written.

        Raises:
            ValueError: It is something else.
        """
        match written:
            case [
                str(kind),
                int(time),
                str(old),
                str(new),
                str(cause),
                int() | float() as own,
                int() | float() as best,
                int() | float() as price,
                int(before),
                int(after),
            ]:
                numbers = (float(own), float(best), float(price))
                return cls(Kind(kind), time, old, new, cause, *numbers, before, after)
            case _:
                raise ValueError(f"{written} is no adaptation")
