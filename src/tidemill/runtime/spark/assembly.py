"""Assembly: what everyone who takes part is sent, made of the plans and the catalog."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.runtime.local.sources import read_relation
from tidemill.runtime.spark.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.fragments import Graph
    from tidemill.runtime.spark.checkpoint import Checkpoint

__all__ = ["deployment_of"]


def deployment_of(
    graph: Graph, catalog: Catalog, checkpoint: Checkpoint, memory: Mapping[str, pl.DataFrame]
) -> Deployment:
    """What runs where, and what it reads.

    Args:
        graph: The operators of all queries.
        catalog: What is registered.
        checkpoint: Where relations are kept as they were when they were first read.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: A relation cannot be read.
    """
    streams: dict[str, StreamEntry] = {}
    relations: dict[str, tuple[RelationEntry, bytes]] = {}
    for input_ in sorted(graph.inputs, key=lambda input_: input_.rows):
        entry = catalog.find(input_.name)
        if isinstance(entry, RelationEntry):
            rows = checkpoint.relation(input_.rows, partial(read_relation, entry, memory))
            relations[input_.rows] = entry, rows
        else:
            assert isinstance(entry, StreamEntry), "plans read streams and relations"
            streams[input_.name] = entry
    facts = checkpoint.facts
    contents = {name: hashlib.sha256(rows).hexdigest() for name, (_, rows) in relations.items()}
    everything = graph, streams, sorted(contents.items()), facts
    version = hashlib.sha256(repr(everything).encode()).hexdigest()[:16]
    return Deployment(graph, streams, relations, facts.pids, facts.stages, version)
