"""Deployment: which part of the graph runs in which step of the pipeline.

Stage 0 of the graph runs where rows come in; each later fragment in a stage of its own. The number
of stages is fixed for the life of a checkpoint, so there may be more than the graph needs, which
hand everything on; queries that would need more are folded (``optimizer/physical/fold.py``).

A deployment is a text: plans, streams and sinks are written as JSON, and no code is sent. What a
plan is made into is made by each worker. Of connectors it has the names only, so that no secret is
in it. Its version is the digest of that text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tidemill.catalog.codec import (
    read_relation_entry,
    read_stream_entry,
    write_relation_entry,
    write_stream_entry,
)
from tidemill.engine.adapting import Adapting
from tidemill.engine.bundles import bundles_of, sent_on
from tidemill.engine.entrance import Entrance
from tidemill.lang.statements import ConnectorCall
from tidemill.model.time import Time
from tidemill.physical.codec.plans import read_plans, write_plans
from tidemill.physical.fragments import Graph, Route, build_graph
from tidemill.runtime.columns import rows_to_read
from tidemill.runtime.moving import moves_between
from tidemill.runtime.spark.worker.sink_writer import SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.catalog.entries import RelationEntry, StreamEntry
    from tidemill.engine.bundles import Bundle
    from tidemill.migration.moves import Moves
    from tidemill.physical.fragments import Fragment
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.reading.parquet_groups import Wanted

__all__ = ["Deployment", "digest", "read_deployment"]

_Entry = TypeVar("_Entry", "StreamEntry", "RelationEntry")


@dataclass(frozen=True)
class Deployment:
    """What every worker is told.

    Attributes:
        graph: The operators of all queries.
        streams: The streams they read.
        relations: The relations they read, with their rows in Arrow's IPC format.
        pids: The partitions, by the numbers Spark knows them by.
        stages: How many stateful stages there are.
        sink_writer: Where answers are let out.
        files: The files that the rows of the relations are in, by the names of the relations.
        needed: The columns that are needed of each stream of which not all are.
        held: The time beyond which operators are not told that time has come, by fingerprint.
        before: The plans that have run of queries that others have taken over.
        adapting: How joins adapt whose tree can change; ``None`` if they do not.
        reads_all: Whether all rows of streams are read, wanted or not.
    """

    graph: Graph
    streams: Mapping[str, StreamEntry]
    relations: Mapping[str, tuple[RelationEntry, bytes]]
    pids: tuple[int, ...]
    stages: int
    sink_writer: SinkWriter = field(default_factory=lambda: SinkWriter({}, (), ()))
    files: Mapping[str, str] = field(default_factory=dict)
    needed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    held: Mapping[str, Time] = field(default_factory=dict)
    before: Mapping[str, PhysicalPlan] = field(default_factory=dict)
    adapting: Adapting | None = None
    reads_all: bool = True

    @cached_property
    def text(self) -> str:
        """All of it but the rows of relations, as JSON."""
        written: dict[str, object] = {
            "plans": write_plans(self.graph.plans),
            "streams": {name: write_stream_entry(_bare(s)) for name, s in self.streams.items()},
            "relations": {
                rows: [write_relation_entry(_bare(relation)), self.files.get(relation.name, "")]
                for rows, (relation, _) in self.relations.items()
            },
            "pids": self.pids,
            "stages": self.stages,
            "sinks": self.sink_writer.write(),
            "needed": {name: sorted(columns) for name, columns in self.needed.items()},
            "reads_all": self.reads_all,
        }
        if self.held:
            written["held"] = dict(self.held)
        if self.before:
            written["before"] = write_plans(self.before)
        if self.adapting is not None:
            written["adapting"] = self.adapting.written()
        return json.dumps(written, separators=(",", ":"), sort_keys=True)

    @cached_property
    def moves(self) -> Moves:
        """How operators of plans that have taken over get their state."""
        relations = {relation.name for relation, _ in self.relations.values()}
        return moves_between(self.before, self.graph.plans, relations, len(self.pids))

    @cached_property
    def fed_again(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """For each relation of a plan that has taken over: its channels before, and those now.

        What has come on the first is in the state that is moved, and must not come again.
        """
        found: list[tuple[frozenset[str], frozenset[str]]] = []
        for query, plan in self.before.items():
            old, new = build_graph({query: plan}), build_graph({query: self.graph.plans[query]})
            for rows in self.relations:
                sides = [
                    frozenset(channel.name for channel in graph.intake(rows).writes)
                    for graph in (old, new)
                    if any(input_.rows == rows for input_ in graph.inputs)
                ]
                if len(sides) > 1:
                    found.append((sides[0], sides[1]))
        return tuple(found)

    @cached_property
    def version(self) -> str:
        """A name for it; one that differs in anything has another."""
        return digest(self.text.encode())

    @cached_property
    def last_writer(self) -> SinkWriter:
        """Where the last stage lets answers out; some have been let out before."""
        return self.sink_writer.after(self.early)

    def intake(self, name: str) -> Fragment:
        """What is done with the rows of one input where they come in."""
        return self.graph.intake(name)

    def entrance(self, rows: str) -> Entrance:
        """Where the rows of an input come in."""
        return Entrance(self.intake(rows), self._bundled[rows])

    @cached_property
    def wanted(self) -> Mapping[str, Wanted]:
        """The rows that are wanted of each stream of which not all are."""
        return {} if self.reads_all else rows_to_read(self.streams, self.graph)

    @cached_property
    def bundles(self) -> Mapping[str, Bundle]:
        """The bundles in which rows of streams arrive, by their channels."""
        return {bundle.channel.name: bundle for some in self._bundled.values() for bundle in some}

    @cached_property
    def _bundled(self) -> Mapping[str, tuple[Bundle, ...]]:
        """The bundles of each input that is read from a stream."""
        among = sent_on(self.graph)
        inputs = (*self.streams, *self.replayed)
        return {rows: bundles_of(self.intake(rows), among) for rows in inputs}

    @cached_property
    def replayed(self) -> Mapping[str, str]:
        """The inputs that are filled with kept rows, with their streams."""
        inputs = (i for i in self.graph.inputs if i.epoch and i.name in self.streams)
        return {input_.rows: input_.name for input_ in inputs}

    def read_by(self, stream: str) -> tuple[str, ...]:
        """The inputs that get what comes on a stream."""
        return (stream, *(rows for rows, name in self.replayed.items() if name == stream))

    @property
    def groups(self) -> frozenset[frozenset[str]]:
        """The streams that are read together: those of each query."""
        return frozenset(group.intersection(self.streams) for group in self.graph.groups())

    @property
    def early(self) -> frozenset[str]:
        """The channels of answers that are let out where the rows of streams come in."""
        inputs = (*self.streams, *self.replayed)
        writes = (channel for name in inputs for channel in self.intake(name).writes)
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


def digest(content: bytes) -> str:
    """The version of a deployment, given its text."""
    return hashlib.sha256(content).hexdigest()[:16]


def read_deployment(text: str, rows_of: Callable[[str], bytes]) -> Deployment:
    """The deployment that was written.

    Args:
        text: What was written.
        rows_of: The rows of a relation, by the file that they are in.
    """
    written = json.loads(text)
    read = {
        rows: (read_relation_entry(entry), file)
        for rows, (entry, file) in written["relations"].items()
    }
    held = {name: Time(time) for name, time in written.get("held", {}).items()}
    before = read_plans(written["before"]) if "before" in written else {}
    return Deployment(
        build_graph(read_plans(written["plans"]), held),
        {name: read_stream_entry(stream) for name, stream in written["streams"].items()},
        {rows: (entry, rows_of(file)) for rows, (entry, file) in read.items()},
        tuple(written["pids"]),
        written["stages"],
        SinkWriter.read(written["sinks"]),
        {entry.name: file for entry, file in read.values()},
        # A version that did not write it down has read all columns, or all rows.
        {name: frozenset(columns) for name, columns in written.get("needed", {}).items()},
        held,
        before,
        Adapting.read(written["adapting"]) if "adapting" in written else None,
        written.get("reads_all", True),
    )


def _bare(entry: _Entry) -> _Entry:
    """A stream or relation without what its connector is told: workers do not ask for it."""
    return replace(entry, source=ConnectorCall(entry.source.name))
