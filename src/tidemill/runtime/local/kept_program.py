"""The program of a checkpoint: queries that it knows go on with the plans and sinks they had.

Law: making it writes nothing, neither to the checkpoint nor to a sink; what is refused is refused
here, or when its sources are opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import user_name
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.planner import recut
from tidemill.optimizer.sharing import with_shared_windows
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.physical.plan import Input, walk_physical
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.frames import check_frame
from tidemill.runtime.local.program import Program, known_sinks, reading
from tidemill.runtime.local.sources import is_there, read_relation
from tidemill.runtime.moving import taken_over
from tidemill.runtime.planning import outdated_in, plan_entry
from tidemill.runtime.record import (
    KeptRelation,
    KnownQuery,
    asked_of,
    content_digest,
    relation_digest,
)
from tidemill.runtime.sinks import (
    FormatSink,
    TableSink,
    is_first,
    owned_since,
    refuse_shared_places,
    sinks_of,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.statistics import Statistics
    from tidemill.optimizer.templates import Templates
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.local.checkpoint import LocalCheckpoint
    from tidemill.runtime.local.delivering import LocalSink
    from tidemill.runtime.record import Facts
    from tidemill.runtime.sinks import Sink

__all__ = ["Kept", "kept_program"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A program, and what its checkpoint is to know of it.

    Attributes:
        program: What is to run.
        known_as: What is to be known of each query.
        shared: The rows of relations that queries have read which the checkpoint knows.
        fresh: The queries that begin.
        changed: The queries whose plans were made or cut anew.
        planning: The settings that plans are made with; ``None`` if some are still to be made.
    """

    program: Program
    known_as: Mapping[str, KnownQuery]
    shared: Mapping[str, pl.DataFrame]
    fresh: frozenset[str]
    changed: frozenset[str]
    planning: Mapping[str, int | str | None] | None

    def keep(
        self, checkpoint: LocalCheckpoint, relations: Mapping[str, pl.DataFrame]
    ) -> dict[str, KeptRelation]:
        """Keep plans, and the rows of relations that are new, before anyone is told of them.

        Args:
            checkpoint: Where they are kept.
            relations: The rows of all relations that are read.

        Returns:
            What the checkpoint is to know of relations.
        """
        for name in sorted(self.changed):
            checkpoint.keep_plan(self.program.planned[name])
        kept = {name: checkpoint.facts.relations[name.lower()] for name in self.shared}
        for name in relations.keys() - kept.keys():
            entry = self.program.relations[name]
            rows = checkpoint.keep_relation(entry, relations[name])
            kept[name] = KeptRelation(relation_digest(entry), content_digest(rows))
        return kept


def kept_program(  # noqa: PLR0913, PLR0917 — all that is compared
    catalog: Catalog,
    before: Program,
    checkpoint: LocalCheckpoint,
    planning: Planning,
    callbacks: Mapping[str, Callback],
    memory: Mapping[str, pl.DataFrame],
    statistics: Statistics = NOTHING_KNOWN,
    templates: Templates | None = None,
    partitions: int | None = None,
) -> Kept:
    """What is to run with a catalog, given what runs and what the checkpoint knows.

    Args:
        catalog: What is registered.
        before: What runs; nothing at the start of a session.
        checkpoint: What is known.
        planning: How new queries are planned.
        callbacks: The functions that ``callback`` sinks name.
        memory: The frames that ``memory`` sources name.
        statistics: What is known of what new queries read.
        templates: The plans of alike queries.
        partitions: How many partitions there are; ``None`` for any number.

    Raises:
        RunError: Something is refused.
    """
    facts, now = checkpoint.facts, checkpoint.facts.latest + 1
    queries = {e.name: e for e in catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)}
    opened = {n: entry for n, entry in queries.items() if before.queries.get(n) != entry}
    refuse_shared_places(queries.values())
    known = known_sinks(before, opened)
    made = sinks_of(_sinking(opened, known), callbacks)
    by_user = known | {user_name(name): sink for name, sink in made.items()}
    asked = {
        n: asked_of(entry, by_user.get(user_name(n)))
        if n in opened or n.lower() not in facts.queries
        else facts.queries[n.lower()].asked  # it runs, and asks what it asked
        for n, entry in queries.items()
    }
    epochs = checkpoint.check_queries(asked, before.queries.keys() - queries.keys())
    fresh = frozenset(name for name in queries if name.lower() not in facts.queries)
    kept = {name: checkpoint.kept_plan(name) for name in opened}
    planned = {
        name: plan_entry(
            entry,
            planning,
            partitions=partitions,
            epoch=epochs[name],
            kept=kept[name],
            now=now,
            statistics=statistics,
            templates=templates,
        )
        if name in opened
        else recut(before.planned[name], entry.cut, now)
        for name, entry in queries.items()
    }
    if planning.optimized:
        planned = with_shared_windows(planned, [n for n, one in kept.items() if one is None])
    planned = {name: taken_over(one, queries[name], now) for name, one in planned.items()}
    owned = {name: _owned(name, sink, checkpoint, epochs[name]) for name, sink in made.items()}
    sinks = known | {user_name(name): sink for name, sink in owned.items()}
    users = {user_name(name) for name in queries}
    program = Program(
        queries,
        planned,
        {n: sink for n, sink in sinks.items() if n in users},
        {},
        {},
        _latest(facts, epochs),
        {n: sink for n, sink in sinks.items() if n not in users},
        frozenset(opened.keys() - fresh),
        frozenset(user_name(n) for n in owned if n not in fresh or not is_first(n)),
        reads_all=not planning.optimized,
    )
    program = reading(program, catalog)
    program = program.but(epoch=max(program.epoch, program.graph.epoch))
    if facts.ended and (fresh or not _all_in_files(program)):
        raise checkpoint.has_ended_error()
    _check(program, owned, fresh, checkpoint)
    known_as = {n: KnownQuery(asked[n], epochs[n], planned[n].version) for n in queries}
    shared = {} if facts.ended else _shared(program, fresh, before, checkpoint, memory)
    is_due = not before.queries and outdated_in(planned, facts, planning)
    changed = frozenset(n for n, one in planned.items() if one is not before.planned.get(n))
    return Kept(program, known_as, shared, fresh, changed, None if is_due else planning.facts())


def _sinking(opened: Mapping[str, QueryEntry], known: Container[str]) -> list[QueryEntry]:
    """An instance of each query whose sink is to be made: another query, or the first instance."""
    by_user: dict[str, QueryEntry] = {}
    for name, entry in opened.items():
        user = user_name(name)
        if is_first(name):
            by_user[user] = entry
        elif user not in known:
            by_user.setdefault(user, entry)
    return list(by_user.values())


def _latest(facts: Facts, epochs: Mapping[str, int]) -> int:
    return max((facts.latest, *epochs.values()))


def _owned(instance: str, sink: Sink, checkpoint: LocalCheckpoint, epoch: int) -> LocalSink:
    """A sink as one of this checkpoint."""
    assert not isinstance(sink, FormatSink), "they are refused when a query is created"
    if isinstance(sink, FileSink):
        pipeline = checkpoint.facts.pipeline
        since = owned_since(instance, sink, pipeline, epoch)
        return sink.owned_by(pipeline, since, checkpoint.lasting_place)
    return sink


def _all_in_files(program: Program) -> bool:
    """Whether all answers can be read, although nothing runs any more."""
    files = FileSink | TableSink
    return all(isinstance(program.sinks.get(user_name(n)), files) for n in program.queries)


def _check(
    program: Program,
    opened: Mapping[str, LocalSink],
    fresh: Container[str],
    checkpoint: LocalCheckpoint,
) -> None:
    """Refuse sinks that are not there for their queries, and streams that are others."""
    for name, sink in opened.items():
        if not isinstance(sink, FileSink):
            continue
        checkpoint.require_outside(name, sink)
        if name in fresh and is_first(name):
            sink.check_new()
        else:
            sink.require_owned()
    checkpoint.check_streams(program.streams)


def _shared(
    program: Program,
    fresh: Container[str],
    before: Program,
    checkpoint: LocalCheckpoint,
    memory: Mapping[str, pl.DataFrame],
) -> dict[str, pl.DataFrame]:
    """The rows of relations that queries read which have run before, as they were then.

    They are compared with what they are now, at the start and whenever a query begins to read them.
    """
    for name, stream in program.streams.items():
        if name not in before.streams:
            check_frame(name, stream, checkpoint, memory)
    read = {name: _names_read(p) for name, p in program.planned.items()}
    found: dict[str, pl.DataFrame] = {}
    for name, relation in program.relations.items():
        readers = [query for query, names in read.items() if name in names]
        if all(query in fresh for query in readers):
            continue
        is_due = name not in before.relations or any(query in fresh for query in readers)
        is_looked_at = is_due and is_there(name, relation.source, memory)
        now = read_relation(relation, memory) if is_looked_at else None
        found[name] = pl.read_ipc_stream(checkpoint.check_relation(relation, now))
    return found


def _names_read(planned: Planned) -> frozenset[str]:
    """The names of everything that a query reads."""
    parts = walk_physical([planned.physical])
    return frozenset(part.name for part in parts if isinstance(part, Input))
