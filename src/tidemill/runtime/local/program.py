"""The program: which queries run, with which plans, over which inputs, into which sinks.

Law: making a program changes nothing; what is refused is refused here. A query that stays has the
plan and the sink that it had; of its plan, other instants may be wanted. Instances of a query share
its sink, and one that begins after all others have ended finds it as they have left it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.algebra.reach import begin_by_time
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.catalog.records import user_name
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.planner import recut
from tidemill.optimizer.sharing import with_shared_windows
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.physical.fragments import build_graph
from tidemill.runtime.archives import replayed_inputs
from tidemill.runtime.columns import columns_to_read, rows_to_read
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.kept_streams import kept_streams
from tidemill.runtime.local.delivering import file_sinks
from tidemill.runtime.moving import (
    before_of,
    held_by,
    moves_between,
    moving_queries,
    taken_over,
)
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.sinks import FormatSink, refuse_shared_places, sinks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.records import Moving
    from tidemill.migration.moves import Moves
    from tidemill.model.time import Time
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.planning import Planning
    from tidemill.optimizer.statistics import Statistics
    from tidemill.optimizer.templates import Templates
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.local.delivering import LocalSink
    from tidemill.runtime.reading.parquet_groups import Wanted

__all__ = ["NOTHING", "Program", "known_sinks", "next_program", "reading"]


@dataclass(frozen=True)
class Program:
    """What runs.

    Attributes:
        queries: The queries, or instances of them, by name.
        planned: How each of them is computed.
        sinks: Where answers go that are not for memory only, by what people call the query.
        idle: The sinks of queries of which nothing runs any more.
        streams: The streams that they read, and those that keep their past.
        relations: The relations that they read.
        epoch: That of the queries that began last.
        resumed: The queries that an earlier session has begun.
        owned: The queries, as people call them, whose sinks an earlier session has taken.
        reads_all: Whether all of streams is read, whatever is needed.
    """

    queries: Mapping[str, QueryEntry]
    planned: Mapping[str, Planned]
    sinks: Mapping[str, LocalSink]
    streams: Mapping[str, StreamEntry]
    relations: Mapping[str, RelationEntry]
    epoch: int
    idle: Mapping[str, LocalSink] = field(default_factory=dict)
    resumed: frozenset[str] = frozenset()
    owned: frozenset[str] = frozenset()
    reads_all: bool = False

    @cached_property
    def graph(self) -> Graph:
        """The operators of all queries."""
        plans = {name: planned.physical for name, planned in self.planned.items()}
        return build_graph(plans, held_by(self.moving))

    @cached_property
    def moving(self) -> dict[str, Moving]:
        """The queries that another plan takes over."""
        return moving_queries(self.queries.values())

    def moves(self, partitions: int) -> Moves:
        """How operators of plans that have taken over get their state."""
        plans = {name: planned.physical for name, planned in self.planned.items()}
        return moves_between(before_of(self.moving), plans, self.relations, partitions)

    def but(
        self,
        *,
        epoch: int | None = None,
        streams: Mapping[str, StreamEntry] | None = None,
        relations: Mapping[str, RelationEntry] | None = None,
    ) -> Program:
        """The program with something else that its operators do not depend on."""
        changed = replace(
            self,
            epoch=self.epoch if epoch is None else epoch,
            streams=self.streams if streams is None else streams,
            relations=self.relations if relations is None else relations,
        )
        if "graph" in vars(self):
            vars(changed)["graph"] = self.graph  # the same plans
        return changed

    @cached_property
    def needed(self) -> dict[str, frozenset[str]]:
        """The columns that are needed of each stream of which not all are."""
        return {} if self.reads_all else columns_to_read(self.streams, self.graph)

    @cached_property
    def wanted(self) -> dict[str, Wanted]:
        """The rows that are wanted of each stream of which not all are."""
        return {} if self.reads_all else rows_to_read(self.streams, self.graph)

    @cached_property
    def groups(self) -> frozenset[frozenset[str]]:
        """The streams that are read together: those of each query."""
        return frozenset(group.intersection(self.streams) for group in self.graph.groups())

    @cached_property
    def replayed(self) -> dict[str, tuple[str, Time]]:
        """The inputs that are filled with kept rows: the stream, and from which instant on."""
        plans = ((self.queries[n].plan, one.physical) for n, one in self.planned.items())
        return replayed_inputs(plans, self.streams)

    def takes_by_time(self, stream: str) -> bool:
        """Whether it is known by their times which rows of a stream are for its readers."""
        if self.streams[stream].keep is not None:
            return True  # all of them are
        plans = [entry.plan for entry in self.queries.values()]
        return self.streams[stream].time_column is not None and begin_by_time(plans, stream)

    def new_sinks(self, before: Program) -> dict[str, LocalSink]:
        """The sinks that another program did not have, and no earlier session."""
        known = {**before.idle, **before.sinks}
        return {
            n: sink
            for n, sink in self.sinks.items()
            if known.get(n) is not sink and n not in self.owned
        }

    def left_sinks(self, after: Program) -> dict[str, LocalSink]:
        """The sinks that nothing is written to in another program."""
        return {n: sink for n, sink in self.sinks.items() if after.sinks.get(n) is not sink}

    def is_recut(self, before: Program) -> bool:
        """Whether other instants are wanted of a query that stays, or another plan takes over."""
        both = self.queries.keys() & before.queries.keys()
        is_cut = any(self.queries[n].cut != before.queries[n].cut for n in both)
        return is_cut or any(before.moving.get(n) != one for n, one in self.moving.items())


NOTHING = Program({}, {}, {}, {}, {}, epoch=-1)
"""What runs before anything does."""


def next_program(  # noqa: PLR0913, PLR0917 — what a program is made of
    catalog: Catalog,
    before: Program,
    planning: Planning,
    callbacks: Mapping[str, Callback],
    run: str,
    statistics: Statistics = NOTHING_KNOWN,
    templates: Templates | None = None,
    partitions: int | None = None,
) -> Program:
    """What is to run with a catalog, given what runs; new queries begin in an epoch of their own.

    Args:
        catalog: What is registered.
        before: What runs.
        planning: How new queries are planned.
        callbacks: The functions that ``callback`` sinks name.
        run: The identity of the run, which its sinks know.
        statistics: What is known of what new queries read.
        templates: The plans of alike queries.
        partitions: How many partitions there are; ``None`` for any number.

    Raises:
        RunError: A sink cannot be used.
    """
    queries = {e.name: e for e in catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)}
    new = {n: entry for n, entry in queries.items() if before.queries.get(n) != entry}
    refuse_shared_places(queries.values())
    epoch = before.epoch + 1 if new or before is NOTHING else before.epoch
    known = known_sinks(before, new)
    begun = {
        user_name(n): entry
        for n, entry in new.items()
        if user_name(n) == n or user_name(n) not in known  # another query, or the first instance
    }
    sinks = dict(_local(sinks_of(begun.values(), callbacks), run, epoch))
    planned = {
        name: plan_entry(
            entry,
            planning,
            partitions=partitions,
            epoch=epoch,
            statistics=statistics,
            templates=templates,
        )
        if name in new
        else recut(before.planned[name], entry.cut, epoch)
        for name, entry in queries.items()
    }
    if planning.optimized:
        planned = with_shared_windows(planned, new)
    planned = {name: taken_over(one, queries[name], epoch) for name, one in planned.items()}
    users = {user_name(name) for name in queries}
    stay = {n: sink for n, sink in known.items() if n in users} | sinks
    idle = {n: sink for n, sink in known.items() if n not in users}
    reads_all = not planning.optimized
    made = Program(queries, planned, stay, {}, {}, epoch, idle, reads_all=reads_all)
    for sink in file_sinks(sinks):
        sink.check_new()
    return reading(made, catalog)


def reading(program: Program, catalog: Catalog) -> Program:
    """The program with the streams and relations that it reads; kept streams are read anyway."""
    names = {input_.name for input_ in program.graph.inputs}
    read = {name: catalog.find(name) for name in sorted(names)}
    return program.but(
        streams=kept_streams(catalog)
        | {name: e for name, e in read.items() if isinstance(e, StreamEntry)},
        relations={name: e for name, e in read.items() if isinstance(e, RelationEntry)},
    )


def known_sinks(before: Program, new: Iterable[str]) -> dict[str, LocalSink]:
    """The sinks that there are, but for those of queries whose names others have now.

    Args:
        before: What runs.
        new: The queries, or instances of them, that begin or go on in this session.
    """
    known = {**before.idle, **before.sinks}
    return {name: sink for name, sink in known.items() if name not in set(new)}


def _local(
    sinks: Mapping[str, LocalSink | FormatSink], run: str, epoch: int
) -> Iterator[tuple[str, LocalSink]]:
    """The sinks, none of which is a format of Spark's; files belong to this run."""
    for sink in sinks.values():
        assert not isinstance(sink, FormatSink), "they are refused when a query is created"
        if isinstance(sink, FileSink):
            # What cannot be taken up again need not be kept batch by batch.
            yield sink.query, replace(sink.owned_by(run, epoch), at_end=True)
        else:
            yield sink.query, sink
