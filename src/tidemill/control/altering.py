"""Changing a query that lives: what becomes of it in a moment, and the verdict on that.

Nothing is changed here: the queries of the session take what is decided (``queries.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.binder.definitions import kept_with
from tidemill.catalog.durable import question
from tidemill.control.change import Changed
from tidemill.control.instances import instance_name, record_of
from tidemill.control.living import altered, carried_out, rewritten, standpoint
from tidemill.control.moving import Possible, Way, possible
from tidemill.control.recording import require_recordable
from tidemill.control.sink_text import sink_text
from tidemill.control.standpoint import Standpoint
from tidemill.control.strategies import UNPRICED, Prices
from tidemill.control.verdict import verdict_on
from tidemill.errors import RunError
from tidemill.lang.statements import AlterProvenance, Migration, ReplanQuery
from tidemill.lang.unparse import unparse
from tidemill.model.time import Time

if TYPE_CHECKING:
    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.records import Record, Version
    from tidemill.control.kept import KeptCatalog
    from tidemill.control.look import Look
    from tidemill.control.taking_over import Refusal
    from tidemill.control.verdict import Verdict
    from tidemill.lang.statements import Lifecycle, Provenance
    from tidemill.runtime.runs import Moment

__all__ = ["changed_in", "changed_text"]


def changed_in(
    moment: Moment, look: Look, statement: Lifecycle, entry: QueryEntry, version: Version | None
) -> tuple[Record, Verdict]:
    """What becomes of a query that runs, and the verdict on it.

    Args:
        moment: Between which batches.
        look: What can be seen of the queries then.
        statement: What is asked.
        entry: The query.
        version: For ALTER QUERY … AS, what it is asked from now on.

    Raises:
        RunError: It cannot be done.
    """
    before, here = record_of(entry), standpoint(entry, version, moment)
    moves = _moves(moment, look, entry) if isinstance(statement, ReplanQuery) else None
    prices = UNPRICED if moves is None else _prices(look, entry, moves)
    changed = carried_out(statement, entry, version, here, prices)
    record, plans = changed.record, None
    if changed.switch is not None:
        new = record.instances[-1]
        plan = new.begun(record.version(new.version).plan)
        plans = look.planned(entry.name), look.planner(replace(entry, plan=plan))
    state = _state_text(look, entry)
    sink = sink_text(here.sink, before, record)
    verdict = verdict_on(
        unparse(statement), before, changed, here, planned=plans, state=state, sink=sink
    )
    is_moved = changed.strategies and changed.strategies[0].using is Migration.MOVING_STATE
    if is_moved and isinstance(moves, Possible):
        verdict = moves.told(verdict)
    return record, verdict


def _moves(moment: Moment, look: Look, entry: QueryEntry) -> Possible | Refusal:
    """How another plan can take over what a query that runs remembers.

    Raises:
        RunError: It does not run, or is paused.
    """
    job = look.active
    assert job is not None, "something runs"
    return possible(look.catalog, entry, Way.of(entry, moment, job, None), moment)


def _prices(look: Look, entry: QueryEntry, moves: Possible | Refusal) -> Prices:
    """What is known of the costs of another plan for a query that runs."""
    rows, _ = _state(look, entry)
    moved = moves.strategy(rows) if isinstance(moves, Possible) else moves
    return Prices(look.planned(entry.name), look.planner(entry), moved)


def _state(look: Look, entry: QueryEntry) -> tuple[int, int]:
    """How many rows a query remembers now, and how many bytes."""
    if look.active is None:
        return 0, 0
    names = {instance_name(entry.name, one.number) for one in record_of(entry).instances}
    mine = [m for m in look.active.metrics().values() if names.intersection(m.queries)]
    rows = sum(one.figures().state_rows for one in mine)
    return rows, sum(one.figures().state_bytes for one in mine)


def _state_text(look: Look, entry: QueryEntry) -> str:
    """How much a query remembers now, and what becomes of it."""
    if look.active is None:
        return ""
    rows, size = _state(look, entry)
    return f"{rows:,} rows in {size:,} bytes, dropped when the old version has ended"


def changed_text(
    statement: Lifecycle, entry: QueryEntry, version: Version | None, kept: KeptCatalog | None
) -> tuple[QueryEntry, Verdict]:
    """The query with another text while nothing runs, and the verdict on it.

    Raises:
        RunError: It is not its text that is to change, or it has run in this checkpoint.
    """
    here = Standpoint(entry.name, Time(0))
    if isinstance(statement, AlterProvenance) and (kept is None or not kept.has_run(entry.name)):
        changed = _set_provenance(entry, statement.provenance)
        told = verdict_on(unparse(statement), record_of(entry), Changed(record_of(changed)), here)
        return changed, told
    if version is None:
        raise RunError(
            "the session is not running, so queries neither start nor stop",
            hint="call session.start() first",
        )
    changed = rewritten(entry, version)
    if kept is not None and question(version.text) == question(entry.text):
        changed = entry  # a script that is run again changes nothing
    elif kept is not None and kept.has_run(entry.name):
        raise RunError(
            f'query "{entry.name}" has run in this checkpoint, and is changed while it'
            " runs: it says then from which instant on the answer is that of the new text",
            hint="call session.start() first",
        )
    told = verdict_on(unparse(statement), record_of(entry), Changed(record_of(changed)), here)
    return changed, told


def _set_provenance(query: QueryEntry, provenance: Provenance | None) -> QueryEntry:
    """A query that has not run, of which what rows are made of is to be kept, or not any more.

    Raises:
        PlanError: A window stands over rows that other operators have made.
    """
    record = record_of(query)
    if provenance is not None:
        require_recordable(query.plan)
    keep = None if provenance is None else kept_with(provenance)
    *before, last = record.instances
    return altered(query, replace(record, instances=(*before, replace(last, provenance=keep))))
