"""Bundles: rows of one input that several channels have in common go once, to the same partition.

Queries on one stream filter it each in its own way, and look at columns of their own. By
themselves each sends its rows, so that a row travels as often as there are queries that want it.
In a bundle a row that some channel wants travels once, with the columns that any of them needs and
a bit for each that wants it. Which bits these are is looked up (``predicate_index.py``).

Law:        what a channel gets out of a bundle is what it would get by itself, row by row.
Condition:  the channels read one input through filters and projections, go by the same keys, and
            are read in the next stage.

It is a way to send rows, not a plan: graphs have the same channels with the same names, and both
ends find the same bundles in a graph.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidemill.algebra.expr import replace_columns, used_columns
from tidemill.engine.predicate_index import WORD, PredicateIndex
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Schema
from tidemill.physical.fragments import Channel, Fragment, Route, rows_name
from tidemill.physical.frames import keep, pick
from tidemill.physical.selections import selection_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray

    from tidemill.algebra.expr import Expr
    from tidemill.engine.engine import Metrics
    from tidemill.engine.predicate_index import Words
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Graph, Node
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.physical.selections import Selection

__all__ = ["Bundle", "Member", "bundles_of", "rest_of", "sent_on"]

_MOST = 255
"""The greatest number of a byte."""

_WANTED = "@wanted by "


@dataclass(frozen=True)
class Member:
    """A channel of a bundle.

    Attributes:
        channel: Its name.
        selection: Its rows and columns.
        schema: Its columns.
        bit: The bit of the rows that it wants; ``None`` if it wants all.
        tells: The operators that it tells of; of others somebody else does.
    """

    channel: str
    selection: Selection
    schema: Schema
    bit: int | None
    tells: frozenset[str]

    def tell(self, given: int, taken: int, metrics: Mapping[str, Metrics]) -> None:
        """Tell what its operators have done."""
        steps = (
            *((name, given, given) for name in self.selection.before),
            *((name, given, taken) for name in self.selection.filters),
            *((name, taken, taken) for name in self.selection.after),
        )
        for name, came, left in steps:
            if name in self.tells:
                metrics[name].rows_in += came
                metrics[name].rows_out += left


@dataclass(frozen=True)
class Bundle:
    """Channels that go together.

    Attributes:
        channel: How they go: an input's rows on a channel of their own.
        members: The channels.
        wanted: The conditions of each bit.
        columns: The columns of the input that travel.
    """

    channel: Channel
    members: tuple[Member, ...]
    wanted: tuple[tuple[Expr, ...], ...]
    columns: tuple[str, ...]
    _index: PredicateIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", PredicateIndex(self.wanted))

    @property
    def words(self) -> list[str]:
        """The columns of the bits."""
        return [f"{_WANTED}{i}" for i in range(-(-len(self.wanted) // WORD))]

    def packed(self, batch: Batch, metrics: Mapping[str, Metrics]) -> Batch:
        """The rows that are wanted, with a bit for each bit that wants them.

        Args:
            batch: Rows of the input.
            metrics: Told what the operators have done for whom rows are packed.
        """
        words = self._index.words(batch)
        taken = _counts(words)
        counts = [batch.height if m.bit is None else int(taken[m.bit]) for m in self.members]
        for member, count in zip(self.members, counts, strict=True):
            member.tell(batch.height, count, metrics)
        times = [name for name in (START, END, ID) if name in batch.columns]
        bits = [pl.Series(name, words[:, i]) for i, name in enumerate(self.words)]
        rows = pick(batch, (*self.columns, *times)).hstack(bits)
        if max(counts) == batch.height:
            return rows
        return keep(rows, pl.Series(words.any(axis=1)))

    def unpacked(self, batch: Batch) -> NDArray[np.bool_]:
        """Which rows each bit wants, given what was packed."""
        found = np.empty((WORD * len(self.words), batch.height), np.uint8)
        for i, name in enumerate(self.words):
            bits = batch.get_column(name).to_numpy().astype("<u8").view(np.uint8)
            shaped = bits.reshape(batch.height, WORD // 8)
            part = np.unpackbits(shaped, axis=1, bitorder="little")
            found[WORD * i : WORD * (i + 1)] = part.T
        return found[: len(self.wanted)].view(bool)


def _counts(words: Words) -> NDArray[np.int64]:
    """How many rows have each bit."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    portions, whole = len(bits) // _MOST, len(bits) - len(bits) % _MOST
    # So few rows are added up in a byte, which takes a third of the time.
    bytes_ = bits[:whole].reshape(portions, _MOST, bits.shape[1]).sum(axis=1, dtype=np.uint8)
    rest = bits[whole:].sum(axis=0, dtype=np.int64)
    return bytes_.sum(axis=0, dtype=np.int64) + rest  # type: ignore[no-any-return]


# Which channels go together


def sent_on(graph: Graph) -> frozenset[str]:
    """The channels that the stage after the intake reads, and no other."""
    if len(graph.fragments) < 2:  # noqa: PLR2004 — the intake and the stage after it
        return frozenset()
    later = [fragment.reads for fragment in graph.fragments[2:]]
    return graph.fragments[1].reads.difference(*later)


def bundles_of(fragment: Fragment, among: Container[str]) -> tuple[Bundle, ...]:
    """The bundles of the channels that an intake fills.

    Args:
        fragment: The intake of one input.
        among: The channels that may be in bundles.
    """
    parts: dict[str, PhysicalPlan] = {node.name: node.apply for node in fragment.nodes}
    parts |= {rows_name(part): part for node in fragment.nodes for part in node.apply.inputs}
    groups: dict[tuple[Route, tuple[Expr, ...]], list[tuple[Channel, Selection]]] = {}
    for channel in sorted(fragment.writes, key=lambda channel: channel.name):
        part = parts.get(channel.source)
        if channel.name in among and part is not None:
            selection = selection_of(part)
            if selection is not None:
                keys = _in_input(channel.keys, selection)
                groups.setdefault((channel.route, keys), []).append((channel, selection))
    several = {kind: group for kind, group in groups.items() if len(group) > 1}
    bundled = {channel.name for group in several.values() for channel, _ in group}
    todo = {node.name for node in fragment.nodes} - {n.name for n in _left(fragment, bundled)}
    return tuple(_bundle(*kind, group, todo) for kind, group in several.items())


def rest_of(fragment: Fragment, bundles: Sequence[Bundle]) -> Fragment:
    """What is left for an intake to do besides its bundles."""
    bundled = {member.channel for bundle in bundles for member in bundle.members}
    writes = tuple(channel for channel in fragment.writes if channel.name not in bundled)
    nodes = _left(fragment, bundled)
    return Fragment(fragment.stage, nodes, fragment.reads, writes, fragment.queries)


def _left(fragment: Fragment, bundled: Container[str]) -> tuple[Node, ...]:
    """The operators that are needed for channels that go by themselves."""
    needed = {channel.source for channel in fragment.writes if channel.name not in bundled}
    for node in reversed(fragment.nodes):
        if node.name in needed:
            needed.update(node.reads)
    return tuple(node for node in fragment.nodes if node.name in needed)


def _bundle(
    route: Route,
    keys: tuple[Expr, ...],
    group: Sequence[tuple[Channel, Selection]],
    todo: set[str],
) -> Bundle:
    """A bundle; the operators that it tells of are no longer to be told of."""
    bits: dict[tuple[Expr, ...], int] = {}
    members: list[Member] = []
    used = set[str]().union(*(used_columns(key) for key in keys))
    for channel, selection in group:
        bit = bits.setdefault(selection.conditions, len(bits)) if selection.conditions else None
        own = {*selection.before, *selection.filters, *selection.after} & todo
        todo -= own
        members.append(Member(channel.name, selection, channel.schema, bit, frozenset(own)))
        used.update(*(used_columns(column.expr) for column in selection.columns))
    source = group[0][1].input
    names = "\n".join(channel.name for channel, _ in group)
    name = f"bundle {hashlib.sha256(names.encode()).hexdigest()[:16]}"
    fields = tuple(field for field in source.schema if field.name in used)
    return Bundle(
        Channel(name, source.rows, route, Schema(fields), keys),
        tuple(members),
        tuple(bits),
        tuple(field.name for field in fields),
    )


def _in_input(keys: Sequence[Expr], selection: Selection) -> tuple[Expr, ...]:
    meaning = {column.name: column.expr for column in selection.columns}
    return tuple(replace_columns(key, lambda column: meaning[column.name]) for key in keys)
