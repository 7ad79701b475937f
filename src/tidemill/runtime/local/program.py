"""The program: which queries run, with which plans, over which inputs, into which sinks.

Law: making a program changes nothing; what is refused is refused here. A query that stays has the
plan and the sink that it had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.lang.statements import ObjectKind
from tidemill.physical.fragments import build_graph
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.delivering import file_sinks
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.sinks import FormatSink, refuse_shared_places, sinks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.optimizer.planner import Planned
    from tidemill.optimizer.planning import Planning
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.local.delivering import LocalSink

__all__ = ["NOTHING", "Program", "next_program"]


@dataclass(frozen=True)
class Program:
    """What runs.

    Attributes:
        queries: The queries, by name.
        planned: How each of them is computed.
        sinks: Where their answers go that are not for memory only.
        streams: The streams that they read.
        relations: The relations that they read.
        epoch: That of the queries that began last.
        resumed: The queries that an earlier session has begun, and their sinks.
    """

    queries: Mapping[str, QueryEntry]
    planned: Mapping[str, Planned]
    sinks: Mapping[str, LocalSink]
    streams: Mapping[str, StreamEntry]
    relations: Mapping[str, RelationEntry]
    epoch: int
    resumed: frozenset[str] = frozenset()

    @cached_property
    def graph(self) -> Graph:
        """The operators of all queries."""
        return build_graph({name: planned.physical for name, planned in self.planned.items()})

    @cached_property
    def groups(self) -> frozenset[frozenset[str]]:
        """The streams that are read together: those of each query."""
        return frozenset(group.intersection(self.streams) for group in self.graph.groups())

    def new_sinks(self, before: Program) -> dict[str, LocalSink]:
        """The sinks that another program did not have, and no earlier session."""
        return {
            n: sink
            for n, sink in self.sinks.items()
            if before.sinks.get(n) is not sink and n not in self.resumed
        }


NOTHING = Program({}, {}, {}, {}, {}, epoch=-1)
"""What runs before anything does."""


def next_program(
    catalog: Catalog,
    before: Program,
    planning: Planning,
    callbacks: Mapping[str, Callback],
    run: str,
) -> Program:
    """What is to run with a catalog, given what runs; new queries begin in an epoch of their own.

    Args:
        catalog: What is registered.
        before: What runs.
        planning: How new queries are planned.
        callbacks: The functions that ``callback`` sinks name.
        run: The identity of the run, which its sinks know.

    Raises:
        RunError: A sink cannot be used.
    """
    queries = {e.name: e for e in catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)}
    new = {n: entry for n, entry in queries.items() if before.queries.get(n) != entry}
    refuse_shared_places(queries.values())
    epoch = before.epoch + 1 if new else before.epoch
    sinks = dict(_local(sinks_of(new.values(), callbacks), run, epoch))
    planned = {
        name: plan_entry(entry, planning, epoch=epoch) if name in new else before.planned[name]
        for name, entry in queries.items()
    }
    stay = {n: sink for n, sink in before.sinks.items() if n in queries and n not in new}
    made = Program(queries, planned, {**stay, **sinks}, {}, {}, epoch)
    read = {name: catalog.find(name) for name in sorted({i.name for i in made.graph.inputs})}
    for sink in file_sinks(sinks):
        sink.check_new()
    return replace(
        made,
        streams={name: e for name, e in read.items() if isinstance(e, StreamEntry)},
        relations={name: e for name, e in read.items() if isinstance(e, RelationEntry)},
    )


def _local(
    sinks: Mapping[str, LocalSink | FormatSink], run: str, epoch: int
) -> Iterator[tuple[str, LocalSink]]:
    """The sinks, none of which is a format of Spark's; files belong to this run."""
    for query, sink in sinks.items():
        assert not isinstance(sink, FormatSink), "they are refused when a query is created"
        if isinstance(sink, FileSink):
            # What cannot be taken up again need not be kept batch by batch.
            yield query, replace(sink.owned_by(run, epoch), at_end=True)
        else:
            yield query, sink
