"""Plans that take over from others with what these remember, as a runtime is told of them.

While streams are waited for, the plan that runs goes on, and its operators are not told that time
has come further than the instant at which the other one takes over. Then the other plan runs, and
its operators get their state by moves. Both plans are known until a batch has been done with the
new one, so that whoever computes that batch again finds the same moves.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.migration.compare import compared, remembering
from tidemill.migration.moves import Refusal
from tidemill.optimizer.decisions import read_decisions, write_decisions
from tidemill.physical.codec.plans import plan_version, read_physical, write_physical
from tidemill.physical.cut_answer import cut_answer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tidemill.algebra.codec.values import Json
    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.records import Moving
    from tidemill.migration.moves import Move, Moves
    from tidemill.model.time import Time
    from tidemill.optimizer.planned import Planned
    from tidemill.physical.plan import PhysicalPlan

__all__ = [
    "before_of",
    "held_by",
    "is_moving",
    "moves_between",
    "moving_queries",
    "plan_text",
    "taken_over",
]


def plan_text(planned: Planned) -> str:
    """A plan with what was chosen for it, as a text."""
    written = write_physical(planned.physical)
    written["decisions"] = write_decisions(planned.decisions)
    return json.dumps(written, separators=(",", ":"), sort_keys=True)


def is_moving(entry: QueryEntry) -> bool:
    """Whether another plan has taken over, and no batch is known to have been done with it."""
    return entry.moving is not None and entry.moving.batch is not None


def taken_over(planned: Planned, entry: QueryEntry, now: int) -> Planned:
    """How a query is computed: by the plan that takes over, if it does.

    Args:
        planned: The plan that it has.
        entry: The query.
        now: The epoch that begins now, in case its answer is cut from now on.

    Raises:
        RunError: The plan that takes over cannot be read.
    """
    if entry.moving is None or not is_moving(entry):
        return planned
    written = _read(entry.moving.after)
    physical = cut_answer(read_physical(written), entry.cut, now)
    if plan_version(physical) == planned.version:
        return planned
    decisions = read_decisions(written.get("decisions", []))
    labels = planned.labels.completed(physical)
    return replace(planned, physical=physical, labels=labels, decisions=decisions)


def moving_queries(entries: Iterable[QueryEntry]) -> dict[str, Moving]:
    """The queries that another plan is to take over, or has taken over, by name."""
    return {entry.name: entry.moving for entry in entries if entry.moving is not None}


def held_by(moving: Mapping[str, Moving]) -> dict[str, Time]:
    """The time beyond which operators are not told that time has come, by fingerprint."""
    held: dict[str, Time] = {}
    for one in moving.values():
        if one.batch is None:
            plans = (read_physical(_read(text)) for text in (one.before, one.after))
            for name in remembering(*plans):
                held[name] = min(one.at, held.get(name, one.at))
    return held


def moves_between(
    before: Mapping[str, PhysicalPlan],
    plans: Mapping[str, PhysicalPlan],
    relations: Collection[str],
    partitions: int,
) -> Moves:
    """How the operators of plans that have taken over get their state.

    Args:
        before: The plans that have run, by query.
        plans: All plans that run.
        relations: The names of the relations that are read.
        partitions: How many partitions there are.

    Raises:
        RunError: They cannot get it, although it was found out that they can.
    """
    moves: dict[str, Move] = {}
    for name, old in before.items():
        found = compared(old, plans[name], relations, partitions)
        if isinstance(found, Refusal):
            raise RunError(
                f'another plan has taken over for query "{name}", and cannot get its state:'
                f" {found.why}",
                hint="go on with the version of Tidemill that has begun it",
            )
        moves |= found
    return moves


def before_of(moving: Mapping[str, Moving]) -> dict[str, PhysicalPlan]:
    """The plans that have run of queries that others have taken over."""
    return {
        name: read_physical(_read(one.before))
        for name, one in moving.items()
        if one.batch is not None
    }


def _read(text: str) -> Json:
    return json.loads(text)
