"""Deployment: which part of the graph runs in which step of the pipeline.

Stage 0 of the graph runs where rows come in; each later fragment in a stage of its own. The number
of stages is fixed for the life of a checkpoint, so there may be more than the graph needs, which
hand everything on; queries that would need more are folded (``optimizer/physical/fold.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.catalog.codec import (
    read_relation_entry,
    read_stream_entry,
    write_relation_entry,
    write_stream_entry,
)
from tidemill.physical.codec.plans import read_plans, write_plans
from tidemill.physical.fragments import Fragment, Graph, Route, build_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import RelationEntry, StreamEntry

__all__ = ["Deployment", "PackedDeployment"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is sent to everyone who takes part.

    Attributes:
        graph: The operators of all queries.
        streams: The streams they read.
        relations: The relations they read, with their rows in Arrow's IPC format.
        pids: The partitions, by the numbers Spark knows them by.
        stages: How many stateful stages there are.
        version: A name for this plan; a changed plan has another.
    """

    graph: Graph
    streams: Mapping[str, StreamEntry]
    relations: Mapping[str, tuple[RelationEntry, bytes]]
    pids: tuple[int, ...]
    stages: int
    version: str

    def intake(self, name: str) -> Fragment:
        """What is done with the rows of one input where they come in."""
        first = self.graph.fragments[0]
        known = {name}
        nodes = []
        for node in first.nodes:
            if known.issuperset(node.reads):
                known.add(node.name)
                nodes.append(node)
        used = tuple(channel for channel in first.writes if channel.source in known)
        return Fragment(0, tuple(nodes), frozenset({name}), used, first.queries)

    @property
    def groups(self) -> frozenset[frozenset[str]]:
        """The streams that are read together: those of each query."""
        return frozenset(group.intersection(self.streams) for group in self.graph.groups())

    @property
    def early(self) -> frozenset[str]:
        """The channels of answers that are let out where the rows of streams come in."""
        writes = (channel for name in self.streams for channel in self.intake(name).writes)
        return frozenset(channel.name for channel in writes if channel.route is Route.QUERY)

    def fragment(self, stage: int) -> Fragment | None:
        """What a stage, from 1, runs, if it does not only hand on."""
        everything = self.graph.fragments
        assert len(everything) <= self.stages + 1, "plans have been folded"
        return everything[stage] if stage < len(everything) else None

    def later(self, stage: int) -> frozenset[str]:
        """The channels that stages after this one read."""
        if stage >= self.stages:
            return frozenset()
        after = self.graph.fragments[stage + 1 :]
        return frozenset(name for fragment in after for name in fragment.reads)


class PackedDeployment:
    """A deployment on its way to the workers, each of which unpacks it once.

    It is a text, and the rows of relations: plans and streams are written as JSON, and no code is
    sent. What a plan is made into is made by each worker.

    Spark gives a worker its function anew with every task, and to read a plan takes longer than to
    run an almost empty batch of it.

    Args:
        deployment: What is sent.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.version = deployment.version
        self._text = json.dumps(
            {
                "plans": write_plans(deployment.graph.plans),
                "streams": {
                    name: write_stream_entry(stream) for name, stream in deployment.streams.items()
                },
                "relations": {
                    name: write_relation_entry(relation)
                    for name, (relation, _) in deployment.relations.items()
                },
                "pids": deployment.pids,
                "stages": deployment.stages,
            },
            separators=(",", ":"),
        )
        self._rows = {name: rows for name, (_, rows) in deployment.relations.items()}

    def open(self) -> Deployment:
        """The deployment."""
        if self.version not in _UNPACKED:
            _UNPACKED.clear()  # a worker may live longer than many plans
            _UNPACKED[self.version] = self._unpacked()
        return _UNPACKED[self.version]

    def _unpacked(self) -> Deployment:
        written = json.loads(self._text)
        relations = {
            name: (read_relation_entry(relation), self._rows[name])
            for name, relation in written["relations"].items()
        }
        return Deployment(
            build_graph(read_plans(written["plans"])),
            {name: read_stream_entry(stream) for name, stream in written["streams"].items()},
            relations,
            tuple(written["pids"]),
            written["stages"],
            self.version,
        )


_UNPACKED: dict[str, Deployment] = {}
"""The deployment of this process that was unpacked last, by its version."""
