"""Moves: how each operator that another plan brings gets its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tidemill.physical.operator import Operator
    from tidemill.physical.plan import Apply, PhysicalPlan

__all__ = ["Begun", "Carried", "Filled", "Handed", "Move", "Moves", "Refusal", "Standing"]


@dataclass(frozen=True, slots=True)
class Carried:
    """The operator is what another one was, over inputs of the same meaning: it takes all of it.

    Attributes:
        old: The other one.
    """

    old: Apply


@dataclass(frozen=True, slots=True)
class Handed:
    """What another operator remembered of an input that means the same.

    Attributes:
        old: The other one.
        port: Its input.
        through: What is done with it: what has not been chosen yet is, and columns are computed.
    """

    old: Apply
    port: int
    through: tuple[Operator, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What the part below has given and is still there.

    Attributes:
        part: That part, of the new plan.
    """

    part: PhysicalPlan


@dataclass(frozen=True, slots=True)
class Filled:
    """The operator remembers, port by port, what is found elsewhere.

    Attributes:
        ports: Where it is found.
    """

    ports: tuple[Handed | Standing, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """Nothing will come to the operator, and what it gave is where it is needed: it is empty."""


Move: TypeAlias = Carried | Filled | Begun
Moves: TypeAlias = Mapping[str, Move]
"""By the fingerprint of an operator that remembers something and was not there."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why state cannot be moved.

    Attributes:
        why: The reason, to stand behind a colon.
    """

    why: str
