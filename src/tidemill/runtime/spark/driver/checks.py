"""The checks of a start: everything that can be refused is found out before anything is written.

Law: a start that is refused leaves the checkpoint and all sinks as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.optimizer.planner import recut
from tidemill.optimizer.sharing import with_shared_windows
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Input, walk_physical
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.sources import is_there, read_relation
from tidemill.runtime.moving import held_by, moving_queries, taken_over
from tidemill.runtime.planning import outdated_in, plan_entry
from tidemill.runtime.record import KnownQuery, asked_of
from tidemill.runtime.sinks import TableSink, is_first, owned_since
from tidemill.runtime.spark.driver.assembly import inputs_of
from tidemill.runtime.spark.driver.control import Word
from tidemill.runtime.spark.io.places import check_sources
from tidemill.runtime.spark.state.damage import require_agreement, require_words, set_aside_torn

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.fragments import Graph
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.settings import SparkSettings
    from tidemill.runtime.spark.state.checkpoint import Checkpoint

__all__ = ["Checked", "check_place", "check_queries"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a start is to do, since nothing of it is refused.

    Attributes:
        queries: The queries.
        sinks: Where their answers go, as those of this pipeline.
        known_as: What the checkpoint is to know of each query.
        planned: How each query is computed.
        new: The queries that begin now.
        graph: The operators of all queries.
        streams: The streams they read.
        declared: The relations they read.
        unshared: The streams that no query reads which has run before.
        known: The rows of relations that the checkpoint keeps.
        unread: The rows of relations that it is to keep from now on.
        outdated: The queries whose plans were made with other settings, which make others.
    """

    queries: list[QueryEntry]
    sinks: dict[str, Sink]
    known_as: dict[str, KnownQuery]
    planned: dict[str, Planned]
    new: frozenset[str]
    graph: Graph
    streams: dict[str, StreamEntry]
    declared: dict[str, RelationEntry]
    unshared: frozenset[str]
    known: dict[str, bytes]
    unread: list[tuple[str, pl.DataFrame]]
    outdated: frozenset[str]

    @property
    def resumed(self) -> frozenset[str]:
        """The queries that have run before."""
        return frozenset(self.known_as) - self.new

    def claim_sinks(self) -> None:
        """Take the directories of queries that begin."""
        for name, sink in self.sinks.items():
            if isinstance(sink, FileSink) and name in self.new and is_first(name):
                sink.claim()

    def new_tables(self) -> dict[str, TableSink]:
        """The tables of queries that begin."""
        return {
            name: sink
            for name, sink in self.sinks.items()
            if isinstance(sink, TableSink) and name in self.new and is_first(name)
        }

    def keep_plans(self, checkpoint: Checkpoint) -> None:
        """Keep the plans that the queries run with."""
        for planned in self.planned.values():
            checkpoint.keep_plan(planned)

    def keep_relations(self, checkpoint: Checkpoint) -> dict[str, tuple[RelationEntry, bytes]]:
        """The relations with their rows; those that are new to the checkpoint are kept in it."""
        declared = self.declared
        kept = {name: checkpoint.keep_relation(declared[name], rows) for name, rows in self.unread}
        return {name: (declared[name], rows) for name, rows in {**self.known, **kept}.items()}


def check_place(checkpoint: Checkpoint, *, ends: bool = False) -> None:
    """Find out whether a pipeline can be started on a checkpoint, whatever its queries are.

    Args:
        checkpoint: Where its state is; nothing runs there.
        ends: Whether the streams are to end when all is read.

    Raises:
        RunError: Something is refused.
    """
    checkpoint.require_open(ends=ends)
    set_aside_torn(checkpoint.directory)  # a loss of power leaves these, and Spark stumbles
    require_agreement(checkpoint.directory, has_begun=checkpoint.facts.begun)
    require_words(checkpoint.control, list(Word))


def check_queries(  # noqa: PLR0913 — all that is checked
    checkpoint: Checkpoint,
    catalog: Catalog,
    queries: list[QueryEntry],
    sinks: Mapping[str, Sink],
    settings: SparkSettings,
    *,
    memory: Mapping[str, pl.DataFrame],
    dropped: Collection[str],
    compared: Container[str],
    running: Mapping[str, Planned] = MappingProxyType({}),
    statistics: Statistics = NOTHING_KNOWN,
) -> Checked:
    """Find out whether queries can run; nothing is written.

    A checkpoint whose streams have ended is read only, so nothing is looked at that would be read.

    Args:
        checkpoint: Where their state is.
        catalog: What is registered.
        queries: The queries that are to run.
        sinks: Where their answers go.
        settings: How to run.
        memory: The frames that ``memory`` sources name.
        dropped: The names of queries that the session has given up.
        compared: The relations that were compared with what is kept since the job began.
        running: The plans of queries that run now.
        statistics: What is known of what new queries read.

    Raises:
        RunError: Something is refused.
    """
    facts = checkpoint.facts
    asked = {q.name: asked_of(q, sinks.get(q.name)) for q in queries}
    epochs = checkpoint.check_queries(asked, dropped)
    now = facts.latest + 1
    new = frozenset(name for name in asked if name.lower() not in facts.queries)
    planned = {
        q.name: recut(running[q.name], q.cut, now)
        if q.name not in new and q.name in running and running[q.name].bound == q.plan
        else plan_entry(
            q,
            settings.planning,
            partitions=len(facts.pids),
            stages=facts.stages,
            epoch=epochs[q.name],
            kept=checkpoint.kept_plan(q.name),
            now=now,
            statistics=statistics,
            templates=settings.templates,
        )
        for q in queries
    }
    if settings.planning.optimized:
        planned = with_shared_windows(planned, new)
    planned = {q.name: taken_over(planned[q.name], q, now) for q in queries}
    plans = {name: made.physical for name, made in planned.items()}
    if facts.ended and (new or not _any_in_files(queries, sinks)):
        raise checkpoint.has_ended_error()
    owned = _owned(sinks, checkpoint, epochs)
    _check_sinks(owned, new, checkpoint)
    graph = build_graph(plans, held_by(moving_queries(queries)))
    streams, declared = inputs_of(graph, catalog)
    checkpoint.check_streams(streams)
    shared = _names_read(plan for name, plan in plans.items() if name not in new)
    fresh = _names_read(plan for name, plan in plans.items() if name in new)
    known: dict[str, bytes] = {}
    unread: list[tuple[str, pl.DataFrame]] = []
    if not facts.ended:
        check_sources(streams, checkpoint, memory)
        for name, relation in declared.items():
            if name in shared:
                is_due = name in fresh or name not in compared
                there = _rows_now(relation, memory) if is_due else None
                known[name] = checkpoint.check_relation(relation, there)
            else:
                unread.append((name, read_relation(relation, memory)))
    recorded = {n: KnownQuery(a, epochs[n], planned[n].version) for n, a in asked.items()}
    return Checked(
        queries,
        owned,
        recorded,
        planned,
        new,
        graph,
        streams,
        declared,
        frozenset(streams) - shared,
        known,
        unread,
        outdated_in(planned, facts, settings.planning),
    )


def _rows_now(relation: RelationEntry, memory: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """The rows of a relation as they are now; ``None`` if they are not there any more."""
    if not is_there(relation.name, relation.source, memory):
        return None
    return read_relation(relation, memory)


def _names_read(plans: Iterable[PhysicalPlan]) -> set[str]:
    """The names of everything that plans read."""
    return {part.name for part in walk_physical(plans) if isinstance(part, Input)}


def _any_in_files(queries: Iterable[QueryEntry], sinks: Mapping[str, Sink]) -> bool:
    """Whether there are answers that can be read, although nothing runs any more."""
    files = FileSink | TableSink
    return any(isinstance(sinks.get(query.name), files) for query in queries)


def _owned(
    sinks: Mapping[str, Sink], checkpoint: Checkpoint, epochs: Mapping[str, int]
) -> dict[str, Sink]:
    """The sinks as those of this pipeline."""
    pipeline, place = checkpoint.facts.pipeline, checkpoint.lasting_place
    return {
        name: sink.owned_by(pipeline, owned_since(name, sink, pipeline, epochs[name]), place)
        if isinstance(sink, FileSink)
        else sink
        for name, sink in sinks.items()
    }


def _check_sinks(sinks: Mapping[str, Sink], new: Container[str], checkpoint: Checkpoint) -> None:
    """Refuse a directory that is not there for its query."""
    for name, sink in sinks.items():
        if isinstance(sink, FileSink):
            checkpoint.require_outside(name, sink)
            if name in new and is_first(name):
                sink.check_new()
            else:
                sink.require_owned()
