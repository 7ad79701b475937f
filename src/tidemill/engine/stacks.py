"""Stacks: aggregations that are alike but for what they are applied to run as one.

People register the same query again with other constants: another threshold, another window. To
work on a few rows takes as long as to work on a thousand, so ten such aggregations by themselves
take ten times as long as one. In a stack they are one aggregation with one more key: the member
that an element belongs to.

Law:        what a member gives is, at every instant, what it would give by itself.
Condition:  the members have the same keys and aggregates, and read the same input with nothing in
            between that holds time back, so that they always have the same watermark. None reads
            what another one gives.
State:      that of the one aggregation. It belongs to the members: when there are more or fewer of
            them, each finds its own, from by itself into a stack, out of one, or into another.

A stack gains where steps are small. When a step brings very many rows for each member, sorting all
of them together takes longer than one after the other: then the engine splits the stack for good.

What a member holds back does not hold others back: the reader of one of them is told how far that
one has come. To find it out takes time for all groups, so it is done only where somebody needs it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import START, Form, time_columns
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import SINCE
from tidemill.physical.operators.aggregate.crowd import (
    Contributed,
    Crowd,
    Panes,
    crowd_contributions,
)
from tidemill.physical.operators.aggregate.tagged import (
    TAG,
    aggregation,
    tag_key,
    tagged,
    taken_by,
)
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, inputs
from tidemill.physical.selections import stays_small
from tidemill.physical.traits import Emission

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from tidemill.algebra.expr import Expr, Named
    from tidemill.engine.flows import Flow
    from tidemill.engine.views import Arrived, View
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Node
    from tidemill.physical.grouping.contributions import Contributions
    from tidemill.physical.operator import State
    from tidemill.physical.operators.aggregate.aggregate import Aggregate
    from tidemill.physical.operators.aggregate.tagged import Taken
    from tidemill.physical.traits import Traits

__all__ = ["Stack", "members", "move", "stacked_state", "stacks_of"]

_MEMBER = "member "


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came for the members of a stack.

    Attributes:
        batch: Rows with the member they are for.
        crowd: Rows that several members look at.
    """

    batch: Batch | None
    crowd: Crowd | None

    @property
    def rows(self) -> int:
        """How many rows there are, each as often as it is remembered."""
        own = 0 if self.batch is None else self.batch.height
        return own + (0 if self.crowd is None else self.crowd.rows)


@dataclass(frozen=True, slots=True)
class Stack:
    """Aggregations that run as one.

    Attributes:
        nodes: The members.
        name: Its name; other members make another.
        operator: The one aggregation.
    """

    nodes: tuple[Node, ...]
    name: str = field(init=False)
    operator: Aggregate = field(init=False)
    _taken: tuple[Taken, ...] = field(init=False, repr=False, compare=False)
    _contributions: Contributions = field(init=False, repr=False, compare=False)
    _known: dict[tuple[str, tuple[Named, ...]], Taken | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _times: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = " ".join(sorted(node.name for node in self.nodes))
        short = hashlib.sha256(names.encode()).hexdigest()[:16]
        assert len({_tag(node) for node in self.nodes}) == len(self.nodes), "tags differ"
        object.__setattr__(self, "name", f"stack-{short}")
        every = [aggregation(node.apply.operator) for node in self.nodes]
        operator = replace(tagged(every[0]), members=len(every))
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "_taken", tuple(map(taken_by, every)))
        object.__setattr__(self, "_contributions", crowd_contributions(operator))
        form = operator.traits.gives or Form.INTERVAL
        object.__setattr__(self, "_times", time_columns(form))

    def new_state(self) -> State:
        """The state before any input; it says who the members are."""
        state = self.operator.new_state()
        state.numbers |= {_MEMBER + node.name: 1 for node in self.nodes}
        return state

    def gathered(self, flows: Sequence[Flow]) -> Gathered:
        """What came for all members, given what came for each.

        Rows of a bundle are gone through together by all members that look at them alike; others
        become one batch, with the member that each came for.
        """
        apart: list[tuple[Node, Taken, Sequence[Batch]]] = []
        views: list[tuple[Node, Taken, View]] = []
        for node, taken, flow in zip(self.nodes, self._taken, flows, strict=True):
            view = flow.view
            over = None if view is None else self._over(node, taken, view.member.selection.columns)
            if view is None or view.validity is None or over is None:
                apart.append((node, taken, flow.taken()))
            else:
                views.append((node, over, view))
        return Gathered(self._batch(apart), self._crowd(views) if views else None)

    def _crowd(self, views: Sequence[tuple[Node, Taken, View]]) -> Crowd:
        looks: dict[tuple[Taken, Arrived], int] = {}
        for _, over, view in views:
            looks.setdefault((over, view.arrived), len(looks))
        looked_at = [over.of(arrived.rows) for over, arrived in looks]
        given = Contributed(self.operator, self._contributions, looked_at)
        crowd = Crowd(self.operator, given)
        for node, over, view in views:
            look = looks[over, view.arrived]
            panes = self._panes(view, over.keys, given.keys_of(look))
            crowd.add(look, panes, view.arrived.wanted(view.member.bit), _tag(node))
        return crowd

    def _panes(self, view: View, keys: tuple[Expr, ...], values: pl.DataFrame) -> Panes:
        """Which rows become one; found out once for all stacks."""
        assert view.validity is not None, "what is looked at together is in a window"
        window = view.arrived.windowed(view.validity)
        has_panes = self.operator.has_panes(window.times[START])
        key = (keys if has_panes else None), view.validity
        if key not in view.arrived.panes:
            made = Panes.of(values, *window) if has_panes else Panes.single(*window)
            view.arrived.panes[key] = made
        return view.arrived.panes[key]

    def _over(self, node: Node, taken: Taken, columns: tuple[Named, ...]) -> Taken | None:
        """What a member looks at, in columns of a bundle; ``None`` if it must be its own rows."""
        key = node.name, columns
        if key not in self._known:
            over = None if aggregation(self.operator).combined else taken.over(columns)
            is_plain = over is not None and all(map(stays_small, over.exprs))
            self._known[key] = over if is_plain else None
        return self._known[key]

    def _batch(self, given: Sequence[tuple[Node, Taken, Sequence[Batch]]]) -> Batch | None:
        is_combined = self.operator.combined
        columns: list[str] = []
        frames: list[pl.DataFrame] = []
        for node, taken, batches in given:
            for batch in (some for some in batches if some.height):
                rows = taken.renamed(batch) if is_combined else taken.of(batch)
                columns = columns or rows.columns  # in one order, whatever that of others is
                tags = pl.Series(TAG, [_tag(node)], pl.Int64).new_from_index(0, batch.height)
                frames.append(pick(rows, columns).hstack([tags]))
        return pl.concat(frames, rechunk=True) if frames else None

    def separated(self, batches: Sequence[Batch]) -> dict[str, list[Batch]]:
        """What each member gives, given what the one aggregation gives."""
        out: dict[str, list[Batch]] = {node.name: [] for node in self.nodes}
        by_tag = {_tag(node): node for node in self.nodes}
        for batch in batches:
            parts = batch.partition_by(TAG, as_dict=True, include_key=False)
            for (tag,), part in parts.items():
                node = by_tag[tag]
                part.columns = [*node.apply.schema.names, *self._times]
                out[node.name].append(part)
        return out

    def held(self, state: State, names: Container[str]) -> dict[str, Time]:
        """The start of the oldest segment that is still open, for each of some members."""
        if self.operator.traits.gives is Form.SIGNED:
            return {node.name: END_OF_TIME for node in self.nodes if node.name in names}
        key = tag_key(aggregation(self.nodes[0].apply.operator))
        oldest: dict[int, int] = {}
        for table, column in (("totals", SINCE), ("pending", START)):
            starts = state.tables[table].all().group_by(key).agg(pl.col(column).min())
            for tag, start in starts.iter_rows():
                oldest[tag] = min(start, oldest.get(tag, start))
        return {
            node.name: Time(oldest.get(_tag(node), END_OF_TIME))
            for node in self.nodes
            if node.name in names
        }

    def rows(self, state: State) -> dict[str, int]:
        """How many rows are remembered for each member."""
        key = tag_key(aggregation(self.nodes[0].apply.operator))
        tags = [part for table in state.tables.values() for part in table.values(key)]
        found = dict(pl.concat(tags).value_counts().iter_rows()) if tags else {}
        return {node.name: found.get(_tag(node), 0) for node in self.nodes}


# Whose state is where


def members(numbers: Mapping[str, int]) -> list[str]:
    """The members of a stack whose state has these numbers; none of what is no stack."""
    return [name.removeprefix(_MEMBER) for name in numbers if name.startswith(_MEMBER)]


def stacked_state(node: Node) -> State:
    """The state of a stack, before any input, of which the node is a member."""
    return tagged(aggregation(node.apply.operator)).new_state()


def move(node: Node, old: State, new: State) -> None:
    """Move what is remembered for a node, alone or in a stack, to where it is remembered now."""
    operator = aggregation(node.apply.operator)
    key, tag = tag_key(operator), _tag(node)
    for name, table in old.tables.items():
        rows = table.all()
        if key in table.schema:
            rows = rows.filter(pl.col(key) == tag)
        target = new.tables[name]
        if key in target.schema:
            rows = rows.with_columns(pl.lit(tag, pl.Int64).alias(key))
        target.insert(rows)
    new.numbers["watermark"] = old.numbers["watermark"]


# Which nodes are alike


def stacks_of(nodes: Sequence[Node]) -> tuple[Stack, ...]:
    """The stacks that nodes of a fragment form."""
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        traits = node.apply.traits
        if traits.alike is not None:
            origin = _origin(node.apply.inputs[0])
            if isinstance(origin, Input):
                kind = f"{origin.fingerprint} {traits.gives} {traits.alike}"
                groups.setdefault(kind, []).append(node)
    return tuple(Stack(tuple(group)) for group in groups.values() if len(group) > 1)


def _origin(part: PhysicalPlan) -> PhysicalPlan:
    """What decides on the time of a part."""
    while isinstance(part, Exchange) or (isinstance(part, Apply) and _keeps_up(part.traits)):
        (part,) = inputs(part)
    return part


def _keeps_up(traits: Traits) -> bool:
    """Whether what leaves has always come as far as what comes."""
    is_alone = len(traits.takes) == 1
    return is_alone and traits.emits is Emission.AT_ONCE and not traits.remembers


def _tag(node: Node) -> int:
    """A number for a member, in every process and version of a plan the same."""
    return int(node.name[:15], 16)
