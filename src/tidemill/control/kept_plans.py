"""Plans of a checkpoint: how a query is computed that runs on it, whoever runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.records import instance_name
from tidemill.control.checkpoint_past import engine_of
from tidemill.runtime.checkpoint import CheckpointDirectory
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.record import read_record

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.catalog.entries import QueryEntry
    from tidemill.optimizer.planned import Planned

__all__ = ["plan_kept"]


def plan_kept(directory: Path, query: QueryEntry) -> Planned | None:
    """The plan that a query goes on with; ``None`` if the checkpoint has none.

    Raises:
        RunError: Its plan is damaged, or cannot be read.
    """
    engine = engine_of(directory)
    facts = None if engine is None else read_record(directory, engine.value)
    instances = () if query.record is None else query.record.instances
    name = instance_name(query.name, instances[-1].number) if instances else query.name
    known = None if facts is None else facts.queries.get(name.lower())
    if facts is None or known is None:
        return None
    kept = CheckpointDirectory(directory, facts).kept_plan(name)
    stages, count = facts.stages, len(facts.pids)
    return plan_entry(query, partitions=count, stages=stages, epoch=known.epoch, kept=kept)
