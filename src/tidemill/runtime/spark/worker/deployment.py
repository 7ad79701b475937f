"""Deployment: which part of the graph runs in which step of the pipeline.

Stage 0 of the graph runs where rows come in; each later fragment in a stage of its own. The number
of stages is fixed for the life of a checkpoint, so there may be more than the graph needs, which
hand everything on; queries that would need more are folded (``engine/folding.py``).
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from tidemill.engine.fragments import Fragment, Graph, Route

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

    Spark gives a worker its function anew with every task, and to read a plan takes longer than to
    run an almost empty batch of it.

    Args:
        deployment: What is sent.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.version = deployment.version
        packed = io.BytesIO()
        _Packer(packed).dump(deployment)
        self._packed = packed.getvalue()

    def open(self) -> Deployment:
        """The deployment."""
        if self.version not in _UNPACKED:
            _UNPACKED.clear()  # a worker may live longer than many plans
            deployment = pickle.loads(self._packed)  # noqa: S301 — it comes from the driver
            assert isinstance(deployment, Deployment), "only deployments are sent"
            _UNPACKED[self.version] = deployment
        return _UNPACKED[self.version]


class _Packer(pickle.Pickler):
    """Packs what describes an operator, and not what it has made of it: that is made again."""

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401 — as pickle has it
        """How an object is packed."""
        if isinstance(obj, type) or not is_dataclass(obj):
            return NotImplemented
        if all(part.init for part in fields(obj)):
            return NotImplemented
        given = {part.name: getattr(obj, part.name) for part in fields(obj) if part.init}
        return _made, (type(obj), given)


def _made(kind: type[object], given: dict[str, object]) -> object:
    return kind(**given)


_UNPACKED: dict[str, Deployment] = {}
"""The deployment of this process that was unpacked last, by its version."""
