"""Assembly: makes the deployment that workers are sent, from the plans and the catalog."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tidemill.catalog.codec import write_stream_entry
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.physical.codec.plans import write_plans
from tidemill.runtime.spark.worker.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.record import Facts

__all__ = ["deployment_of", "inputs_of"]


def inputs_of(
    graph: Graph, catalog: Catalog
) -> tuple[dict[str, StreamEntry], dict[str, RelationEntry]]:
    """The streams and the relations that the queries read, by name."""
    streams: dict[str, StreamEntry] = {}
    relations: dict[str, RelationEntry] = {}
    for name in sorted({input_.name for input_ in graph.inputs}):
        entry = catalog.find(name)
        if isinstance(entry, RelationEntry):
            relations[name] = entry
        else:
            assert isinstance(entry, StreamEntry), "plans read streams and relations"
            streams[name] = entry
    return streams, relations


def deployment_of(
    graph: Graph,
    streams: Mapping[str, StreamEntry],
    relations: Mapping[str, tuple[RelationEntry, bytes]],
    facts: Facts,
) -> Deployment:
    """What runs where, and what it reads.

    Args:
        graph: The operators of all queries.
        streams: The streams they read.
        relations: The relations they read, with their rows in Arrow's IPC format.
        facts: What the checkpoint is made for.
    """
    # A relation comes in once for the queries of each epoch.
    read = {i.rows: relations[i.name] for i in graph.inputs if i.name in relations}
    read = dict(sorted(read.items()))
    contents = {name: hashlib.sha256(rows).hexdigest() for name, (_, rows) in read.items()}
    everything = [
        write_plans(graph.plans),
        {name: write_stream_entry(stream) for name, stream in streams.items()},
        contents,
        asdict(facts),
    ]
    text = json.dumps(everything, sort_keys=True)
    version = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Deployment(graph, streams, read, facts.pids, facts.stages, version)
