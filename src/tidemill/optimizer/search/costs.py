"""What joining costs, and how much of it there may be: constants, ways of counting, limits.

CPU is what the elements of a unit of time cost, memory the number of rows in all states (Z20-Z23).
The printed model charges for pairs that match. A join that scans pays for every pair that it
compares, and one with a hash table for those in a bucket; which of these is counted is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.constants import OperatorCost

__all__ = ["NO_LIMITS", "Costs", "Counting", "Engine", "Limits", "Purge"]


class Counting(Enum):
    """Which pairs are compared when a row looks for its matches in a state."""

    MATCHES = "matches"
    """Those that match: the printed model, and that of a hash table without collisions."""
    PAIRS = "pairs"
    """All: the state is scanned."""
    BUCKETS = "buckets"
    """Those of the bucket; where an edge has no number of buckets, all are scanned."""
    KEYS = "keys"
    """Those with equal keys, whatever else must be true of them; all, if there are no keys."""


class Purge(Enum):
    """When a row of an intermediate state is removed."""

    MIN = "min"
    """With its oldest part: there are as many as there are results at an instant."""
    MAX = "max"
    """With its youngest part: there are as many times more as it has parts; they match nothing."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What is charged.

    Attributes:
        insert: For a row that is put in a state.
        delete: For a row that is removed from one.
        compare: For a pair that is compared.
        output: For a pair that matches, in every step of probing.
        step: For each step of probing there is, in a unit of time, however few rows come.
        counting: Which pairs are compared.
        purge: When rows of intermediate states are removed.
        buckets: For an edge, into how many buckets its values are hashed.
        apart: Whether rows are in many places, so that a stage of three and more parts is possible
            only where all agree on one value, which tells the place, or no two of them do; any
            other one costs infinitely much.
        engine: What this engine charges besides; ``None`` for the printed model.
    """

    insert: float = 1.0
    delete: float = 1.0
    compare: float = 1.0
    output: float = 0.0
    step: float = 0.0
    counting: Counting = Counting.MATCHES
    purge: Purge = Purge.MIN
    buckets: Mapping[tuple[int, int], float] = field(default_factory=dict)
    apart: bool = False
    engine: Engine | None = None

    @property
    def compared(self) -> float:
        """For a pair that is compared."""
        return self.compare

    @property
    def scanned(self) -> float:
        """For a row of state that is looked at."""
        return 0.0 if self.engine is None else self.engine.scanned

    def __post_init__(self) -> None:
        constants = (self.insert, self.delete, self.compare, self.output, self.step)
        assert min(constants) >= 0, "no work costs less than nothing"
        assert all(number >= 1 for number in self.buckets.values()), "there is one bucket at least"


@dataclass(frozen=True, slots=True)
class Engine:
    """What joins of this engine are charged besides looking up, by the formulas of ``charges.py``.

    Attributes:
        two: A join of two parts.
        many: A join of more.
        project: What chooses columns: above each join of many, and where columns are dropped.
        scanned: A row of state that is looked at.
        rounds: How often in a unit of time what has come looks for partners.
        partitions: In how many partitions.
        moved: A row that goes through an exchange; nothing does in one partition.
        moved_byte: Each byte of it.
        message: An exchange, for each partition and round.
        signed: Whether rows appear and are withdrawn, so that each is two messages.
    """

    two: OperatorCost
    many: OperatorCost
    project: OperatorCost
    scanned: float
    rounds: float
    partitions: int = 1
    moved: float = 0.0
    moved_byte: float = 0.0
    message: float = 0.0
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a plan may take.

    Attributes:
        cpu: In the unit of the costs, for a unit of time.
        memory: In rows, or in bytes where it is known how wide rows are.
    """

    cpu: float = inf
    memory: float = inf

    def allow(self, cpu: float, memory: float) -> bool:
        """Whether a plan that takes so much is qualified."""
        return cpu <= self.cpu and memory <= self.memory and cpu < inf

    def share(self, cpu: float, memory: float) -> float:
        """Of the scarcer resource, the share that is taken; more than 1 if it is not qualified."""
        if cpu == inf:
            return inf
        return max(_share(cpu, self.cpu), _share(memory, self.memory))


def _share(taken: float, limit: float) -> float:
    if limit > 0:
        return taken / limit
    return inf if taken > 0 else 0.0


NO_LIMITS = Limits()
"""All plans are qualified."""
