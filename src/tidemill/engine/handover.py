"""Handover: the operators of another plan get the state that moves say (Z42, Z47).

It is done where a partition goes on with the state of an earlier batch, those below first. Nothing
is emitted. Until the partition has committed that batch its state at rest is that of the old plan,
so that a batch which is replayed does it again.

Law: what is filled remembers what it would remember if it had run from the start, of all that can
still matter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, assert_never

from tidemill.engine.stacks import Stack, members, move, stacked_state
from tidemill.migration.moves import Begun, Carried, Filled, Handed, Standing
from tidemill.model.time import Time
from tidemill.physical.fragments import Node
from tidemill.physical.handover import handover_of
from tidemill.physical.plan import Apply
from tidemill.physical.state.at_rest import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidemill.migration.moves import Moves
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import Operator, State
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["AtRest", "Handover", "copied", "taken_in"]


class AtRest(Protocol):
    """What an operator, or a stack of them, remembered when it was left."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """Its numbers."""
        ...

    @property
    def watermark(self) -> Time:
        """How far time had come for it."""
        ...

    def fill(self, state: State) -> None:
        """Fill a new state with it."""
        ...


@dataclass
class Handover:
    """Carries out moves in one partition.

    Attributes:
        moves: How operators get their state.
        saved: What was left, by the names of operators and stacks.
        found: What an operator remembers that is there already.
    """

    moves: Moves
    saved: Mapping[str, AtRest]
    found: Callable[[str], Remembered]
    _stacks: dict[str, str] = field(init=False)
    _left: dict[str, Remembered | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stacks = {n: name for name in self.saved for n in members(self.saved[name].numbers)}

    def of(self, node: Node) -> Remembered | None:
        """What an operator is to remember; ``None`` if it is nowhere, or there is no move.

        An operator to which nothing more will come begins as it is.
        """
        match self.moves.get(node.name):
            case None:
                return None
            case Begun():
                return Remembered(node.apply.operator.new_state(), Time(0))
            case Carried(old):
                return self._carried(node, old)
            case Filled(ports):
                return self._filled(node, ports)
            case other:
                assert_never(other)

    def _carried(self, node: Node, old: Apply) -> Remembered | None:
        left = self._old(old)
        if left is None:
            return None
        state = node.apply.operator.new_state()
        copied(left.state, state)
        return Remembered(state, left.watermark)

    def _filled(self, node: Node, ports: Sequence[Handed | Standing]) -> Remembered | None:
        operator = node.apply.operator
        taking, state = handover_of(operator), operator.new_state()
        assert taking is not None, "it takes what others remember"
        times = set(self._times(ports))
        if None in times:
            return None
        assert len(times) == 1, "all that an operator is filled from has come equally far"
        (time,) = times
        assert time is not None, "all of it is there"
        for port, source in enumerate(ports):
            for batch in self._given(source, time):
                if batch.height:
                    taking.remember(state, port, batch, time)
        return Remembered(state, time)

    def _times(self, ports: Iterable[Handed | Standing]) -> Iterator[Time | None]:
        """How far all has come from which an operator is filled; ``None`` for what is not there."""
        for source in ports:
            match source:
                case Handed(old):
                    left = self._old(old)
                    yield None if left is None else left.watermark
                case Standing(part):
                    yield from (self.found(one.fingerprint).watermark for one in _in(part))
                case _:
                    assert_never(source)

    def _given(self, source: Handed | Standing, time: Time) -> Iterator[Batch]:
        match source:
            case Handed(old, port, through):
                left, giving = self._old(old), handover_of(old.operator)
                assert left is not None, "it is there"
                assert giving is not None, "it hands over what it remembers"
                batches = [giving.remembered(left.state, port, time)]
                for operator in through:
                    batches = _passed(operator, batches)
                yield from batches
            case Standing(part):
                yield from self._standing(part, time)
            case _:
                assert_never(source)

    def _standing(self, part: PhysicalPlan, time: Time) -> Iterator[Batch]:
        assert isinstance(part, Apply), "what is computed is below in the same place"
        if part.traits.remembers:
            giving = handover_of(part.operator)
            assert giving is not None, "it tells what stands"
            yield giving.standing(self.found(part.fingerprint).state, time)
            return
        for port, below in enumerate(part.inputs):
            yield from _passed(part.operator, self._standing(below, time), port)

    def _old(self, old: Apply) -> Remembered | None:
        """What an operator of the old plan has left, by itself or in a stack."""
        name = old.fingerprint
        if name not in self._left:
            self._left[name] = self._read(old)
        return self._left[name]

    def _read(self, old: Apply) -> Remembered | None:
        name, state = old.fingerprint, old.operator.new_state()
        if name in self.saved:
            self.saved[name].fill(state)
            return Remembered(state, self.saved[name].watermark)
        if (home := self._stacks.get(name)) is None:
            return None
        node = Node(name, old, ())
        stacked = stacked_state(node)
        self.saved[home].fill(stacked)
        move(node, stacked, state)
        return Remembered(state, self.saved[home].watermark)


def taken_in(unit: Node | Stack, node: Node, given: Remembered, state: State) -> None:
    """Let an operator, or the stack that it is in, remember what it was given."""
    if isinstance(unit, Stack):
        move(node, given.state, state)
    else:
        copied(given.state, state)


def copied(old: State, new: State) -> None:
    """Fill a new state with another one of its kind; rows are shared, since none ever changes."""
    new.take_shape(old.tables.keys())
    assert new.tables.keys() == old.tables.keys(), "it is the same operator"
    new.numbers = dict(old.numbers)
    for name, table in new.tables.items():
        # As it is when it is kept in a store, so that both ways lead to the same.
        manifest = json.loads(json.dumps(old.tables[name].manifest()))
        table.restore(manifest, [segment.frame for segment in old.tables[name].segments()])


def _passed(operator: Operator, batches: Iterable[Batch], port: int = 0) -> list[Batch]:
    """What an operator without memory makes of batches."""
    state = operator.new_state()
    given = (batch for batch in batches if batch.height)
    return [out for batch in given for out in operator.on_batch(state, port, batch)]


def _in(part: PhysicalPlan) -> Iterator[Apply]:
    """The operators whose rows a part is made of without memory."""
    assert isinstance(part, Apply), "what is computed is below in the same place"
    if part.traits.remembers:
        yield part
        return
    for below in part.inputs:
        yield from _in(below)
