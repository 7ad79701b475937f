"""How queries are run on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.history.pace import REPLAY_ROWS, REPLAY_SHARE, Pace
from tidemill.optimizer.planning import PLANNING, Planning
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.optimizer.templates import Templates
from tidemill.runtime.clock import now
from tidemill.runtime.lock import take_lock
from tidemill.runtime.planning import plan_entry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.catalog.entries import QueryEntry
    from tidemill.engine.adapting import Adapting
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.lock import Lock

__all__ = ["SparkSettings"]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How queries are run on Spark.

    Attributes:
        master: Where, as Spark writes it; ``None`` takes what ``spark-submit`` says.
        partitions: How many partitions state is kept in; ``None`` for one a task.
        planning: How queries are planned; the answers are the same.
        checkpoint: Where state is kept for a later run; ``None`` forgets it after the session.
        stages: How many stateful stages there are; ``None`` for as many as the first plan needs.
        trigger: How often a batch begins while running continuously, in seconds; 0 for as soon
            as the last one is done.
        memory: How much memory Spark's driver gets.
        cache_bytes: How many bytes the copies of state on each host may take.
        clock: What time it is, in microseconds since 1970.
        take_lock: Takes the lock of the checkpoint; a session that has it already gives a share.
        replay_rows: About how many kept rows are replayed in a batch at most.
        replay_share: Which share of the time of a batch that may take.
        templates: The plans of alike queries of the session.
        adapting: How joins adapt whose tree can change; ``None`` if they do not.
    """

    master: str | None = "local[*]"
    partitions: int | None = None
    planning: Planning = PLANNING
    checkpoint: str | None = None
    stages: int | None = None
    trigger: float = 0
    memory: str = "2g"
    cache_bytes: int = 4 << 30
    clock: Callable[[], int] = now
    take_lock: Callable[[Path], Lock] = take_lock
    replay_rows: int = REPLAY_ROWS
    replay_share: float = REPLAY_SHARE
    templates: Templates = field(default_factory=Templates, compare=False)
    adapting: Adapting | None = None

    @property
    def replay_pace(self) -> Pace:
        """How many kept rows are replayed in a batch."""
        return Pace(self.replay_rows, self.replay_share)

    def stages_with(self, partitions: int | None) -> int | None:
        """How many stages a new pipeline has; ``None`` for as many as its queries need.

        In one partition nothing is exchanged, and each stage costs a batch some time.
        """
        return 1 if self.stages is None and partitions == 1 else self.stages

    def plan(self, query: QueryEntry, statistics: Statistics = NOTHING_KNOWN) -> Planned:
        """The plan that a query would have in a new pipeline."""
        stages = self.stages_with(self.partitions)
        return plan_entry(
            query,
            self.planning,
            partitions=self.partitions,
            stages=stages,
            statistics=statistics,
            templates=self.templates,
        )
