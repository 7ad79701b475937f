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

What a member holds back does not hold others back: whoever reads one of them is told how far that
one has come. To find it out takes time for all groups, so it is done only where somebody needs it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column, Named, used_columns
from tidemill.model.batch import END, START, Form, time_columns
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.physical import interval, signed
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import SINCE
from tidemill.physical.plan import Apply, Exchange, Input, PhysicalPlan, inputs

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from tidemill.engine.fragments import Node
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import State

__all__ = ["Stack", "members", "move", "stacked_state", "stacks_of"]

_TAG = "@tag"
_MEMBER = "member "
_WITHOUT_TIME = interval.Filter | interval.Project | interval.TimeWindow | interval.Combine


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
    operator: interval.Aggregate = field(init=False)

    def __post_init__(self) -> None:
        names = " ".join(sorted(node.name for node in self.nodes))
        short = hashlib.sha256(names.encode()).hexdigest()[:16]
        assert len({_tag(node) for node in self.nodes}) == len(self.nodes), "tags differ"
        object.__setattr__(self, "name", f"stack-{short}")
        operator = _tagged(_aggregate(self.nodes[0]))
        object.__setattr__(self, "operator", replace(operator, members=len(self.nodes)))

    def new_state(self) -> State:
        """The state before any input; it says who the members are."""
        state = self.operator.new_state()
        state.numbers |= {_MEMBER + node.name: 1 for node in self.nodes}
        return state

    def gathered(self, batches: Sequence[Sequence[Batch]]) -> Batch | None:
        """What came for all members, given what came for each, with the member it came for."""
        operator = _aggregate(self.nodes[0])
        # What was combined where it came in has columns for keys already, if it has keys.
        tag = _tag_key(operator) if operator.combined else _TAG
        columns = _columns(operator)
        frames: list[pl.DataFrame] = []
        for node, given in zip(self.nodes, batches, strict=True):
            for batch in given:
                columns = columns or batch.columns  # in one order, whatever that of others is
                tags = pl.Series(tag, [_tag(node)], pl.Int64).new_from_index(0, batch.height)
                frames.append(pick(batch, columns).hstack([tags]))
        return pl.concat(frames, rechunk=True) if frames else None

    def separated(self, batches: Sequence[Batch]) -> dict[str, list[Batch]]:
        """What each member gives, given what the one aggregation gives."""
        out: dict[str, list[Batch]] = {node.name: [] for node in self.nodes}
        by_tag = {_tag(node): node for node in self.nodes}
        for batch in batches:
            parts = batch.partition_by(_TAG, as_dict=True, include_key=False)
            for (tag,), part in parts.items():
                node = by_tag[tag]
                part.columns = [*node.apply.schema.names, *self._times]
                out[node.name].append(part)
        return out

    def held(self, state: State, names: Container[str]) -> dict[str, Time]:
        """The start of the oldest segment that is still open, for each of some members."""
        if isinstance(self.operator, signed.Aggregate):
            return {node.name: END_OF_TIME for node in self.nodes if node.name in names}
        key = _tag_key(_aggregate(self.nodes[0]))
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

    @property
    def _times(self) -> tuple[str, str]:
        is_signed = isinstance(self.operator, signed.Aggregate)
        return time_columns(Form.SIGNED if is_signed else Form.INTERVAL)

    def rows(self, state: State) -> dict[str, int]:
        """How many rows are remembered for each member."""
        key = _tag_key(_aggregate(self.nodes[0]))
        tags = [part for table in state.tables.values() for part in table.values(key)]
        found = dict(pl.concat(tags).value_counts().iter_rows()) if tags else {}
        return {node.name: found.get(_tag(node), 0) for node in self.nodes}


# Whose state is where


def members(numbers: Mapping[str, int]) -> list[str]:
    """The members of a stack whose state has these numbers; none of what is no stack."""
    return [name.removeprefix(_MEMBER) for name in numbers if name.startswith(_MEMBER)]


def stacked_state(node: Node) -> State:
    """The state of a stack, before any input, of which the node is a member."""
    return _tagged(_aggregate(node)).new_state()


def move(node: Node, old: State, new: State) -> None:
    """Move what is remembered for a node, alone or in a stack, to where it is remembered now."""
    operator = _aggregate(node)
    key, tag = _tag_key(operator), _tag(node)
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
        operator = node.apply.operator
        if isinstance(operator, interval.Aggregate) and operator.takes is Form.INTERVAL:
            origin = _origin(node.apply.inputs[0])
            if isinstance(origin, Input):
                groups.setdefault(f"{origin.fingerprint} {_kind(node)}", []).append(node)
    return tuple(Stack(tuple(group)) for group in groups.values() if len(group) > 1)


def _kind(node: Node) -> str:
    """What alike aggregations have in common."""
    operator = _aggregate(node)
    keys = tuple(key.expr for key in operator.keys)
    calls = tuple(aggregate.call for aggregate in operator.aggregates)
    form = type(operator).__module__
    return repr((form, keys, calls, operator.panes, operator.max_delay, operator.combined))


def _origin(part: PhysicalPlan) -> PhysicalPlan:
    """What decides on the time of a part."""
    while isinstance(part, Exchange) or (
        isinstance(part, Apply) and isinstance(part.operator, _WITHOUT_TIME)
    ):
        (part,) = inputs(part)
    return part


# One aggregation for all


def _aggregate(node: Node) -> interval.Aggregate:
    operator = node.apply.operator
    assert isinstance(operator, interval.Aggregate), "only aggregations are stacked"
    return operator


def _tagged(operator: interval.Aggregate) -> interval.Aggregate:
    """The aggregation with the member as its last key."""
    tag = Named(_TAG, Column(_TAG, BIGINT))
    field_ = Field(_TAG, BIGINT, nullable=False)
    count = len(operator.keys)
    keys = (Named(f"@{i}", key.expr) for i, key in enumerate(operator.keys))
    values = (replace(a, name=f"@@{i}") for i, a in enumerate(operator.aggregates))
    names = [*(f"@{i}" for i in range(count)), *(f"@@{i}" for i in range(len(operator.aggregates)))]
    columns = [replace(f, name=n) for f, n in zip(operator.schema, names, strict=True)]
    return replace(
        operator,
        keys=(*keys, tag),
        aggregates=tuple(values),
        input_schema=Schema((*operator.input_schema, field_)),
        schema=Schema((*columns[:count], field_, *columns[count:])),
    )


def _columns(operator: interval.Aggregate) -> list[str]:
    """The columns that an aggregation looks at; none of what is already combined."""
    if operator.combined:
        return []
    calls = [aggregate.call for aggregate in operator.aggregates]
    parts = (
        *(k.expr for k in operator.keys),
        *(e for c in calls for e in (c.argument, c.condition)),
    )
    looked_at = [expr for expr in parts if expr is not None]
    return [*sorted({name for expr in looked_at for name in used_columns(expr)}), START, END]


def _tag(node: Node) -> int:
    """A number for a member, in every process and version of a plan the same."""
    return int(node.name[:15], 16)


def _tag_key(operator: interval.Aggregate) -> str:
    """The column of the tag in state."""
    return f"@key{len(operator.keys)}"
