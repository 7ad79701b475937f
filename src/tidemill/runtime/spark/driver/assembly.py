"""Assembly: makes the deployment that workers are sent, from the plans and the catalog."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.runtime.columns import columns_to_read
from tidemill.runtime.kept_streams import kept_streams
from tidemill.runtime.moving import before_of, held_by
from tidemill.runtime.spark.worker.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.records import Moving
    from tidemill.engine.adapting import Adapting
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.spark.state.checkpoint import Checkpoint
    from tidemill.runtime.spark.worker.sink_writer import SinkWriter

__all__ = ["deployment_of", "inputs_of"]


def inputs_of(
    graph: Graph, catalog: Catalog
) -> tuple[dict[str, StreamEntry], dict[str, RelationEntry]]:
    """The streams and the relations that are read, by name: by queries, or to be kept."""
    streams = kept_streams(catalog)
    relations: dict[str, RelationEntry] = {}
    for name in sorted({input_.name for input_ in graph.inputs}):
        entry = catalog.find(name)
        if isinstance(entry, RelationEntry):
            relations[name] = entry
        else:
            assert isinstance(entry, StreamEntry), "plans read streams and relations"
            streams[name] = entry
    return dict(sorted(streams.items())), relations


def deployment_of(  # noqa: PLR0913 — what a deployment is made of
    graph: Graph,
    streams: Mapping[str, StreamEntry],
    relations: Mapping[str, tuple[RelationEntry, bytes]],
    checkpoint: Checkpoint,
    sink_writer: SinkWriter,
    *,
    moving: Mapping[str, Moving] = MappingProxyType({}),
    reads_all: bool = False,
    adapting: Adapting | None = None,
) -> Deployment:
    """What runs where, what it reads, and where its answers go.

    Args:
        graph: The operators of all queries.
        streams: The streams they read.
        relations: The relations they read, with their rows in Arrow's IPC format.
        checkpoint: Where the rows of relations are kept.
        sink_writer: Where answers are let out.
        moving: The queries that another plan takes over.
        reads_all: Whether all of streams is read, whatever is needed.
        adapting: How joins adapt whose tree can change; ``None`` if they do not.
    """
    # A relation comes in once for the queries of each epoch.
    read = {i.rows: relations[i.name] for i in graph.inputs if i.name in relations}
    files = {
        relation.name: checkpoint.relation_file(relation.name, r) for relation, r in read.values()
    }
    facts, read = checkpoint.facts, dict(sorted(read.items()))
    needed = {} if reads_all else columns_to_read(streams, graph)
    own = None if adapting is None else adapting.shared(len(facts.pids))
    return Deployment(
        graph,
        streams,
        read,
        facts.pids,
        facts.stages,
        sink_writer,
        files,
        needed,
        held_by(moving),
        before_of(moving),
        own,
        reads_all,
    )
