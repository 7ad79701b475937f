"""Fragments: a physical plan cut at its exchanges.

Stage 0 is what is done where the rows come in: it has no memory and no time, so it only filters and
projects. Everything else is in a later stage, and each exchange leads into the next. An edge that
crosses stages without an exchange is handed on within the partition. Rows travel on channels, named
by the fingerprint of the part that makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.physical.plan import (
    Apply,
    Exchange,
    Input,
    PhysicalPlan,
    inputs,
    walk_physical,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.algebra.expr import Expr
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = [
    "Channel",
    "Fragment",
    "Graph",
    "Node",
    "Route",
    "alone_in",
    "build_graph",
    "has_no_time",
    "rows_name",
    "stages_of",
]


class Route(Enum):
    """Where the rows of a channel go."""

    STAY = auto()  # the same partition of a later stage
    HASH = auto()  # the partition their keys say
    QUERY = auto()  # the answer of a query


@dataclass(frozen=True, slots=True)
class Channel:
    """Rows on their way from one fragment to another, or out.

    Attributes:
        name: What a reader calls them.
        source: The input, channel or node of the fragment that they come from.
        route: Where they go.
        schema: Their columns.
        keys: What decides on the partition, if they are hashed; none means all go to one.
    """

    name: str
    source: str
    route: Route
    schema: Schema
    keys: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a fragment: its name, and the nodes or channels it reads, port by port."""

    name: str
    apply: Apply
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fragment:
    """The operators of one stage, inputs before what stands above them.

    Attributes:
        stage: Its number, from 0.
        nodes: The operators.
        reads: The channels and inputs it takes from outside.
        writes: The channels it fills.
        queries: The queries that each node works for, by its name; for errors.
        alone: The nodes that get rows in the first partition only.
        held: The time beyond which nodes are not told that time has come, by their names.
    """

    stage: int
    nodes: tuple[Node, ...]
    reads: frozenset[str]
    writes: tuple[Channel, ...]
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    alone: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    held: Mapping[str, Time] = field(default_factory=dict, repr=False, compare=False)

    @property
    def needs_ids(self) -> bool:
        """Whether one of its operators needs the ids of elements."""
        return any(node.apply.traits.needs_ids for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole plan of all queries.

    Attributes:
        fragments: The operators, by stage.
        inputs: What they read.
        answers: The channel that answers each query.
        plans: The plans of the queries, of which all this was made.
    """

    fragments: tuple[Fragment, ...]
    inputs: tuple[Input, ...]
    answers: Mapping[str, str]
    plans: Mapping[str, PhysicalPlan] = field(default_factory=dict, repr=False, compare=False)

    @property
    def needs_ids(self) -> bool:
        """Whether some operator orders elements of one instant by their ids, or tells these."""
        return any(fragment.needs_ids for fragment in self.fragments)

    @property
    def epoch(self) -> int:
        """The epoch in which the youngest operator, or input of a query's own, began."""
        operators = (n.apply.epoch for f in self.fragments for n in f.nodes)
        return max((*operators, *(input_.epoch for input_ in self.inputs)), default=0)

    def intake_inputs(self) -> dict[str, str]:
        """The input whose rows each operator of stage 0 gets, by their names."""
        found = {input_.rows: input_.name for input_ in self.inputs}
        for node in self.fragments[0].nodes:
            (read,) = node.reads
            found[node.name] = found[read]
        return {node.name: found[node.name] for node in self.fragments[0].nodes}

    def intake(self, name: str) -> Fragment:
        """What is done with the rows of one input where they come in."""
        first = self.fragments[0]
        known = {name}
        nodes = []
        for node in first.nodes:
            if known.issuperset(node.reads):
                known.add(node.name)
                nodes.append(node)
        used = tuple(channel for channel in first.writes if channel.source in known)
        return Fragment(0, tuple(nodes), frozenset({name}), used, first.queries)

    def groups(self) -> frozenset[frozenset[str]]:
        """The inputs that the answer of each query is made of, by name."""
        below: dict[str, set[str]] = {}
        for fragment in self.fragments:
            for node in fragment.nodes:
                below.setdefault(node.name, set()).update(node.reads)
            for channel in fragment.writes:
                below.setdefault(channel.name, set()).update({channel.source} - {channel.name})
        names = {input_.rows: input_.name for input_ in self.inputs}
        groups = set()
        for answer in self.answers.values():
            found, todo = {answer}, [answer]
            while todo:
                more = below.get(todo.pop(), set()) - found
                found |= more
                todo += more
            groups.add(frozenset(names[name] for name in found & names.keys()))
        return frozenset(groups)


def build_graph(
    queries: Mapping[str, PhysicalPlan], held: Mapping[str, Time] = MappingProxyType({})
) -> Graph:
    """The shared graph of all queries, cut into fragments.

    Args:
        queries: The plans of the queries.
        held: The time beyond which operators are not told that time has come, by fingerprint.
    """
    parts = list(walk_physical(queries.values()))
    stages = stages_of(parts)
    answers = {query: f"answer {rows_name(plan)}" for query, plan in queries.items()}
    channels: dict[int, dict[str, Channel]] = {}
    for stage, channel in [*_crossings(parts, stages), *_answers(queries, stages)]:
        channels.setdefault(stage, {})[channel.name] = channel
    users, alone = _users(queries), alone_in(parts)
    fragments = [
        _fragment(stage, parts, stages, tuple(channels.get(stage, {}).values()), users, alone)
        for stage in range(max((*stages.values(), *channels), default=0) + 1)
    ]
    read = tuple(part for part in parts if isinstance(part, Input))
    if held:
        fragments = [replace(one, held=_held_in(one, held)) for one in fragments]
    return Graph(tuple(fragments), read, answers, dict(queries))


def _held_in(fragment: Fragment, held: Mapping[str, Time]) -> dict[str, Time]:
    names = {node.name for node in fragment.nodes}
    return {name: time for name, time in held.items() if name in names}


def rows_name(part: PhysicalPlan) -> str:
    """What a reader of the part calls its rows: an input by its name, others by fingerprint."""
    return part.rows if isinstance(part, Input) else part.fingerprint


def stages_of(parts: list[PhysicalPlan]) -> dict[str, int]:
    """The stage in which each part's rows can be read; those of an exchange one stage later."""
    stages: dict[str, int] = {}
    for part in parts:
        below = max((stages[rows_name(child)] for child in inputs(part)), default=0)
        least = 0 if isinstance(part, Input) or has_no_time(part) else 1
        stages[rows_name(part)] = max(below + isinstance(part, Exchange), least)
    return stages


def has_no_time(part: PhysicalPlan) -> bool:
    """Whether rows pass one by one and keep the time they came with."""
    return isinstance(part, Apply) and part.traits.passes_through


def _crossings(parts: list[PhysicalPlan], stages: dict[str, int]) -> Iterator[tuple[int, Channel]]:
    """The channels between fragments, each with the stage that fills it."""
    for part in parts:
        for child in inputs(part):
            source = rows_name(child)
            if isinstance(part, Exchange):
                name = rows_name(part)
                yield stages[source], Channel(name, source, Route.HASH, part.schema, part.keys)
            elif stages[source] < stages[rows_name(part)]:
                yield stages[source], Channel(source, source, Route.STAY, child.schema)


def _answers(
    queries: Mapping[str, PhysicalPlan], stages: dict[str, int]
) -> Iterator[tuple[int, Channel]]:
    for plan in queries.values():
        source = rows_name(plan)
        yield stages[source], Channel(f"answer {source}", source, Route.QUERY, plan.schema)


def _users(queries: Mapping[str, PhysicalPlan]) -> dict[str, tuple[str, ...]]:
    """The queries that each part works for."""
    users: dict[str, list[str]] = {}
    for query, plan in sorted(queries.items()):
        for part in walk_physical([plan]):
            users.setdefault(rows_name(part), []).append(query)
    return {part: tuple(names) for part, names in users.items()}


def alone_in(parts: Iterable[PhysicalPlan]) -> frozenset[str]:
    """The names of parts whose rows are in the first partition only: behind an exchange to it.

    Args:
        parts: The parts of plans, inputs before what stands above them.
    """
    alone: set[str] = set()
    for part in parts:
        match part:
            case Exchange(keys=keys):
                is_alone = not keys
            case _:
                below = [rows_name(child) for child in inputs(part)]
                is_alone = bool(below) and alone.issuperset(below)
        if is_alone:
            alone.add(rows_name(part))
    return frozenset(alone)


def _fragment(  # noqa: PLR0913, PLR0917 — what all fragments are made of
    stage: int,
    parts: list[PhysicalPlan],
    stages: dict[str, int],
    writes: tuple[Channel, ...],
    users: Mapping[str, tuple[str, ...]],
    alone: frozenset[str],
) -> Fragment:
    nodes = tuple(
        Node(rows_name(part), part, tuple(map(rows_name, part.inputs)))
        for part in parts
        if isinstance(part, Apply) and stages[rows_name(part)] == stage
    )
    made = {node.name for node in nodes}
    used = {read for node in nodes for read in node.reads} | {c.source for c in writes}
    queries = {name: users[name] for name in made}
    return Fragment(stage, nodes, frozenset(used - made), writes, queries, alone & made)
